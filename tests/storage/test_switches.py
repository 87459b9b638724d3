"""Switches hold for every process and are told in the audit."""

from __future__ import annotations

from storage import audit, switches
from storage.tables import from_micros
from tests.storage.scene import HOUR, POST, Scene


def test_effects_may_go_out_until_somebody_holds_them(scene: Scene) -> None:
    assert switches.held(scene.database) is None
    switches.hold(scene.database, "UOPS", "wrong channel")
    held = switches.held(scene.database)
    assert held is not None
    assert (held.by, held.reason, held.since) == ("UOPS", "wrong channel", from_micros(scene.now))
    switches.release(scene.database, "UANA")
    assert switches.held(scene.database) is None


def test_holding_and_releasing_are_told(scene: Scene) -> None:
    switches.hold(scene.database, "UOPS")
    switches.release(scene.database, "UANA")
    rows = audit.rows(scene.database, switches.CHAIN)
    assert [(row.kind, row.data["by"]) for row in rows] == [("held", "UOPS"), ("released", "UANA")]
    assert audit.verify(scene.database) == []


def test_releasing_wakes_only_what_has_something_to_send(scene: Scene) -> None:
    scene.run()
    scene.run("hike-2", due=False)
    scene.commit(scene.hold_claim(), POST)
    switches.hold(scene.database, "UOPS")
    switches.release(scene.database, "UOPS")
    assert (scene.due(), scene.due("hike-2")) == (scene.now, None)


def test_the_last_sweep_is_remembered(scene: Scene) -> None:
    assert switches.last_sweep(scene.database) is None
    switches.mark_sweep(scene.database)
    scene.clock.pass_(HOUR)
    switches.mark_sweep(scene.database)
    assert switches.last_sweep(scene.database) == from_micros(scene.now)
