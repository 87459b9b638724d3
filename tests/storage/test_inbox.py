"""What arrives is kept once, until it is dealt with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from storage import inbox
from storage.tables import from_micros
from tests.storage.scene import MINUTE, SECOND, Scene


def receive(scene: Scene, delivery: str, payload: Any = None) -> bool:
    return bool(scene.within("", lambda tx: inbox.receive(tx, delivery, "command", payload)))


def done(scene: Scene, delivery: str) -> bool:
    return bool(scene.within("", lambda tx: inbox.done(tx, delivery)))


def waiting(scene: Scene, **kwargs: Any) -> list[str]:
    return [row.id for row in inbox.open_ones(scene.database, **kwargs)]


def test_the_same_delivery_is_received_once(scene: Scene) -> None:
    assert [receive(scene, "E1", {"a": 1}), receive(scene, "E1", {"a": 2}), receive(scene, "E2")] == [True, False, True]
    row = inbox.find(scene.database, "E1")
    assert row is not None and (row.payload, row.attempts, row.kind) == ({"a": 1}, 0, "command")


def test_what_is_dealt_with_leaves_only_its_id(scene: Scene) -> None:
    receive(scene, "E1", {"text": "secret"})
    assert [done(scene, "E1"), done(scene, "E1")] == [True, False]
    row = inbox.find(scene.database, "E1")
    assert row is not None and (row.payload, row.done_at) == (None, from_micros(scene.now))
    assert not receive(scene, "E1", {"text": "again"})
    assert waiting(scene) == []


def test_the_oldest_open_delivery_comes_first_and_young_ones_are_left_alone(scene: Scene) -> None:
    for n in range(3):
        receive(scene, f"E{n}")
        scene.clock.pass_(10 * SECOND)
    assert waiting(scene, older_than=timedelta(seconds=15)) == ["E0", "E1"]
    assert waiting(scene, limit=1) == ["E0"]


def test_what_failed_waits_and_is_counted(scene: Scene) -> None:
    receive(scene, "E1")
    scene.within("", lambda tx: inbox.retry_later(tx, "E1", scene.now + MINUTE))
    assert waiting(scene) == []
    scene.clock.pass_(MINUTE)
    assert waiting(scene) == ["E1"]
    row = inbox.find(scene.database, "E1")
    assert row is not None and row.attempts == 1


def test_a_delivery_is_kept_together_with_what_it_caused_or_not_at_all(scene: Scene) -> None:
    def half(tx: Any) -> None:
        inbox.receive(tx, "E1", "command", {})
        raise ValueError("the start failed")

    try:
        scene.within("", half)
    except ValueError:
        assert inbox.find(scene.database, "E1") is None
    else:
        raise AssertionError("the error was swallowed")


def test_ids_are_forgotten_when_nobody_delivers_them_again(scene: Scene) -> None:
    receive(scene, "E1")
    receive(scene, "E2")
    done(scene, "E1")
    scene.clock.pass_(MINUTE)
    assert scene.within("", lambda tx: inbox.forget(tx, from_micros(scene.now))) == 1
    assert (inbox.find(scene.database, "E1"), waiting(scene)) == (None, ["E2"])
