"""Every card that no longer says what the database says is found, and drawn by one process."""

from __future__ import annotations

from typing import Any

from storage import board
from storage.endings import end_tree
from tests.storage.scene import BEN, MINUTE, SECOND, Scene


def stale(scene: Scene, *scopes: Any) -> list[tuple[str, str, str]]:
    found = board.stale(scene.database, scopes=scopes or ("run", "approval", "ending"))
    return [(card.scope, card.subject, card.ts) for card in found]


def draw(scene: Scene, scope: Any, subject: str, ts: str = "17.1") -> None:
    (card,) = [c for c in board.stale(scene.database, scopes=(scope,)) if c.subject == subject]
    assert board.take(scene.database, scope, subject) is not None
    board.drawn(scene.database, scope, subject, channel="C0HIKES01", ts=ts, fingerprint=card.fingerprint)


def end(scene: Scene) -> None:
    scene.within("hike-1", lambda tx: end_tree(tx, "hike-1", "cancelled"))


def test_what_has_no_card_yet_gets_one(scene: Scene) -> None:
    scene.ask()
    assert stale(scene) == [("run", "hike-1", ""), ("approval", "ask-1", "")]
    draw(scene, "approval", "ask-1")
    draw(scene, "run", "hike-1")
    assert stale(scene) == []
    card = board.find(scene.database, "approval", "ask-1")
    assert card is not None and (card.channel, card.ts, card.drawn) == ("C0HIKES01", "17.1", "0:pending")


def test_a_decision_a_vote_or_a_new_draft_makes_a_card_stale(scene: Scene) -> None:
    scene.ask()
    for act in (
        lambda: scene.edit("Sunday", verdict="save"),
        lambda: scene.decide("approve", BEN, version=2),
        lambda: scene.take(scene.hold_claim()),
    ):
        draw(scene, "approval", "ask-1")
        assert stale(scene, "approval") == []
        act()
        assert stale(scene, "approval") == [("approval", "ask-1", "17.1")]


def test_refused_clicks_leave_cards_alone(scene: Scene) -> None:
    scene.ask()
    draw(scene, "approval", "ask-1")
    scene.decide("approve", version=7)
    assert stale(scene, "approval") == []


def test_a_review_settled_before_it_had_a_card_gets_none(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve")
    assert stale(scene, "approval") == []


def test_signals_are_for_machines_and_get_no_card(scene: Scene) -> None:
    scene.ask({"wait": 1}, asks="signal")
    assert stale(scene, "approval") == []


def test_an_end_closes_the_cards_and_is_told(scene: Scene) -> None:
    scene.ask()
    draw(scene, "approval", "ask-1")
    draw(scene, "run", "hike-1")
    end(scene)
    assert stale(scene) == [("run", "hike-1", "17.1"), ("approval", "ask-1", "17.1"), ("ending", "hike-1", "")]
    draw(scene, "ending", "hike-1")
    assert stale(scene, "ending") == []
    assert stale(scene, "told") == [("told", "hike-1", "")]


def test_children_and_runs_without_a_channel_have_no_card(scene: Scene) -> None:
    scene.run(channel="")
    scene.run("child-1", parent="hike-1")
    assert stale(scene) == []


def test_one_process_has_a_card_at_a_time(scene: Scene) -> None:
    scene.ask()
    assert board.take(scene.database, "approval", "ask-1") is not None
    assert board.take(scene.database, "approval", "ask-1") is None
    assert stale(scene, "approval") == []
    scene.clock.pass_(MINUTE)
    assert stale(scene, "approval") == [("approval", "ask-1", "")]
    assert board.take(scene.database, "approval", "ask-1") is not None


def test_a_card_that_failed_waits_and_remembers_why(scene: Scene) -> None:
    scene.ask()
    for _ in range(2):
        assert board.take(scene.database, "approval", "ask-1") is not None
        until = scene.now + 30 * SECOND
        board.failed(scene.database, "approval", "ask-1", until=until, note="channel_not_found")
        assert (stale(scene, "approval"), board.take(scene.database, "approval", "ask-1")) == ([], None)
        scene.clock.pass_(30 * SECOND)
    card = board.find(scene.database, "approval", "ask-1")
    assert card is not None and (card.failures, card.note) == (2, "channel_not_found")
    draw(scene, "approval", "ask-1")
    card = board.find(scene.database, "approval", "ask-1")
    assert card is not None and (card.failures, card.not_before, card.busy_until) == (0, None, None)


def test_a_deleted_message_is_posted_again(scene: Scene) -> None:
    scene.ask()
    draw(scene, "approval", "ask-1")
    board.lost(scene.database, "approval", "ask-1")
    assert stale(scene, "approval") == [("approval", "ask-1", "")]


def test_no_more_than_the_limit(scene: Scene) -> None:
    for n in range(3):
        scene.ask(run=scene.run(f"hike-{n}"), id=f"ask-{n}")
    assert [card.subject for card in board.stale(scene.database, limit=4)] == ["hike-0", "hike-1", "hike-2", "ask-0"]
