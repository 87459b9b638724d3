"""The audit chain shows what was changed, what is missing and what was cut off."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import sqlalchemy as sa

from storage import audit
from storage.audit import Head
from storage.endings import end_tree
from tests.storage.scene import BEN, SMS, TEXT, Scene


@pytest.fixture
def story(scene: Scene) -> Scene:
    """A run with a story of seven rows, and another beside it."""
    claim, (sms,) = scene.approved(SMS)
    sending = scene.begin(claim, sms)
    assert sending is not None
    scene.outcome(sending)
    scene.decide("approve", BEN)
    scene.within("hike-1", lambda tx: end_tree(tx, "hike-1", "finished"))
    scene.ask(run=scene.run("hike-2"), id="ask-2")
    return scene


def tamper(scene: Scene, statement: str, **values: Any) -> None:
    with scene.database.engine.begin() as connection:
        connection.execute(sa.text(statement), values)


def faults(scene: Scene, kept: Any = (), root: str | None = None) -> list[tuple[str, int, str]]:
    return [(f.root, f.seq, f.damage) for f in audit.verify(scene.database, root, kept)]


def test_an_untouched_chain_has_no_faults(story: Scene) -> None:
    assert story.story() == ["asked", "decided", "taken", "sending", "sent", "decided", "ended"]
    assert faults(story) == faults(story, audit.heads(story.database)) == []


def test_every_chain_counts_from_one_by_itself(story: Scene) -> None:
    assert [(h.root, h.seq) for h in audit.heads(story.database)] == [("hike-1", 7), ("hike-2", 1)]
    assert audit.heads(story.database, "hike-2")[0].seq == 1


def test_texts_stand_in_it_by_their_hash_only(story: Scene) -> None:
    sending = audit.rows(story.database, "hike-1")[3]
    assert sending.content_hash == hashlib.sha256(TEXT.encode()).hexdigest()
    assert all(TEXT not in str(row.data) for row in audit.rows(story.database, "hike-1"))


@pytest.mark.parametrize(
    ("column", "value"),
    [("data", '{"decision":"x"}'), ("kind", "approved"), ("content_hash", "0" * 64), ("at", 1), ("hash", "0" * 64)],
)
def test_a_changed_row_is_found(story: Scene, column: str, value: Any) -> None:
    tamper(story, f"UPDATE audit SET {column} = :value WHERE root = 'hike-1' AND seq = 3", value=value)
    assert ("hike-1", 3, "changed") in faults(story)


def test_a_row_changed_together_with_its_hash_breaks_the_next_one(story: Scene) -> None:
    before, row = audit.rows(story.database, "hike-1")[1:3]
    forged = audit.chained(before.hash, ["hike-1", 3, "taken", {}, row.content_hash, 1])
    tamper(story, "UPDATE audit SET data='{}', at=1, hash=:hash WHERE root='hike-1' AND seq=3", hash=forged)
    assert faults(story) == [("hike-1", 4, "changed")]


def test_a_missing_row_is_found(story: Scene) -> None:
    tamper(story, "DELETE FROM audit WHERE root = 'hike-1' AND seq = 3")
    assert faults(story) == [("hike-1", 3, "missing")]


def test_a_missing_first_row_is_found(story: Scene) -> None:
    tamper(story, "DELETE FROM audit WHERE root = 'hike-1' AND seq = 1")
    assert faults(story) == [("hike-1", 1, "missing")]


def test_a_cut_at_the_end_is_found_by_what_other_tables_tell(story: Scene) -> None:
    tamper(story, "DELETE FROM audit WHERE root = 'hike-1' AND seq >= 4")
    assert faults(story) == [("hike-1", 0, "cut off")] * 3
    sentences = [fault.sentence for fault in audit.verify(story.database)]
    assert any("ended" in s for s in sentences) and any("sending hike-1:4:0" in s for s in sentences)


def test_a_cut_at_the_end_is_found_by_a_head_kept_elsewhere(story: Scene) -> None:
    kept = audit.heads(story.database)
    tamper(story, "DELETE FROM audit WHERE root = 'hike-2'")
    assert faults(story, kept) == [("hike-2", 1, "cut off")]
    tamper(story, "DELETE FROM audit WHERE root = 'hike-1' AND seq = 7")
    assert ("hike-1", 7, "cut off") in faults(story, kept)
    assert ("hike-2", 1, "cut off") not in faults(story, kept, root="hike-1")


def test_a_chain_forged_as_a_whole_is_found_by_a_head_kept_elsewhere(story: Scene) -> None:
    kept = [Head("hike-2", 1, "0" * 64)]
    assert faults(story, kept) == [("hike-2", 1, "changed")]


def test_a_chain_may_have_grown_since_its_head_was_kept(story: Scene) -> None:
    kept = audit.heads(story.database)
    story.decide("approve", id="ask-2")
    assert faults(story, kept) == []


def test_odd_texts_are_hashed_as_they_are(scene: Scene) -> None:
    scene.run()
    scene.within("hike-1", lambda tx: audit.append(tx, "hike-1", "odd", {"x": "a\x00\ud800ä"}, "\x00\ud800"))
    assert audit.rows(scene.database, "hike-1")[0].data == {"x": "a\x00\ud800ä"}
    assert faults(scene) == []
