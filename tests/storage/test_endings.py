"""Every end is whole: the tree, its claim, its questions and what it had not sent yet."""

from __future__ import annotations

import pytest

from graphs.engine.errors import ClaimLost
from storage import audit, roots
from storage.endings import end_tree
from tests.storage.scene import POST, SMS, Scene


def end(scene: Scene, how: str, root: str = "hike-1") -> bool:
    return bool(scene.within(root, lambda tx: end_tree(tx, root, how, "because", by="UANA")))


@pytest.mark.parametrize("how", ["finished", "declined", "gave_up", "expired", "cancelled", "failed"])
def test_an_end_is_the_end_of_the_whole_tree(scene: Scene, how: str) -> None:
    run = scene.run()
    child = scene.run("child-1", parent="hike-1")
    scene.run("hike-2")
    scene.ask(run=run)
    scene.ask(run=child, id="ask-2")
    scene.decide("approve")
    claim = scene.hold_claim()
    pending = scene.commit(claim, SMS, POST)[0]
    scene.within("hike-1", lambda tx: roots.lower_due(tx, "hike-1"))
    assert end(scene, how)
    root, lower = scene.record(), scene.record("child-1")
    assert (root.ending, root.error, root.claim, root.lease_until, root.due_at) == (how, "because", None, None, None)
    assert (lower.ending, lower.error, root.ended_at) == (how, "", lower.ended_at)
    assert (scene.status(), scene.status("ask-2"), scene.effect(pending).status) == (
        "cancelled", "cancelled", "cancelled",
    )  # fmt: skip
    assert scene.record("hike-2").ending == ""
    assert audit.rows(scene.database, "hike-1")[-1].data["ending"] == how


def test_a_run_ends_once(scene: Scene) -> None:
    scene.run()
    assert end(scene, "cancelled")
    assert not end(scene, "expired")
    assert not end(scene, "expired", root="nothing")
    assert scene.record().ending == "cancelled"


def test_the_owner_of_an_ended_run_saves_nothing_more(scene: Scene) -> None:
    scene.run()
    claim = scene.hold_claim()
    end(scene, "cancelled")
    with pytest.raises(ClaimLost):
        scene.save(claim, lambda tx: None)
    assert scene.claim() is None


def test_what_was_decided_stays_decided(scene: Scene) -> None:
    scene.ask()
    scene.decide("decline")
    end(scene, "declined")
    assert scene.status() == "declined"
