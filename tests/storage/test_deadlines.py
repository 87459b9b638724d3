"""Reminders come once each and collapse; what nobody settled in time ends its run."""

from __future__ import annotations

import pytest

from graphs.flow import Policy
from storage import approvals
from storage.deadlines import next_stage
from storage.tables import from_micros
from tests.storage.scene import BEN, HOUR, MINUTE, POST, SMS, Scene, hours

LADDER = Policy(remind_after=(hours(4), hours(8)), expires_after=hours(24))


def test_reminders_come_at_their_times_and_once_each(scene: Scene) -> None:
    scene.ask(policy=LADDER)
    assert approvals.remind_due(scene.database) == []
    scene.clock.pass_(4 * HOUR)
    (first,) = approvals.remind_due(scene.database)
    assert (first.approval_id, first.stage, first.last, first.root) == ("ask-1", 1, False, "hike-1")
    assert approvals.remind_due(scene.database) == []
    scene.clock.pass_(4 * HOUR)
    (second,) = approvals.remind_due(scene.database)
    assert (second.stage, second.last) == (2, True)
    scene.clock.pass_(4 * HOUR)
    assert approvals.remind_due(scene.database) == []
    assert scene.story() == ["asked", "reminded", "reminded"]


def test_missed_reminders_collapse_into_one(scene: Scene) -> None:
    scene.ask(policy=LADDER)
    scene.clock.pass_(9 * HOUR)
    (only,) = approvals.remind_due(scene.database)
    assert (only.stage, only.last) == (2, True)


def test_after_a_late_reminder_the_next_keeps_its_distance(scene: Scene) -> None:
    scene.ask(policy=LADDER)
    scene.clock.pass_(8 * HOUR - MINUTE)
    approvals.remind_due(scene.database)
    assert scene.approval().remind_at == from_micros(scene.now + 4 * HOUR)


@pytest.mark.parametrize(
    ("after", "reminded", "now", "expected"),
    [
        ([4, 8], 0, 4, (1, 8)),
        ([4, 8], 0, 7, (1, 11)),
        ([4, 8], 0, 8, (2, None)),
        ([4, 8], 1, 12, (2, None)),
        ([4, 8, 24], 0, 9, (2, 25)),
        ([4], 0, 100, (1, None)),
    ],
)
def test_the_stage_follows_from_the_time(
    after: list[int], reminded: int, now: int, expected: tuple[int, int | None]
) -> None:
    assert next_stage(after, 0, reminded, now) == expected


def test_a_reminder_does_not_void_the_buttons_or_ask_for_a_new_card(scene: Scene) -> None:
    scene.ask(policy=LADDER)
    rev = scene.approval().rev
    scene.clock.pass_(4 * HOUR)
    approvals.remind_due(scene.database)
    assert scene.approval().rev == rev
    assert scene.decide("approve").result == "settled"


def test_nobody_is_reminded_of_what_is_settled_or_expired(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run, policy=LADDER)
    scene.ask(run=run, id="ask-2", policy=LADDER)
    scene.decide("approve")
    scene.clock.pass_(24 * HOUR)
    assert approvals.remind_due(scene.database) == []


def test_expiry_ends_the_whole_run(scene: Scene) -> None:
    run = scene.run()
    child = scene.run("child-1", parent="hike-1")
    scene.ask(run=child, policy=Policy(expires_after=hours(1)))
    scene.ask(run=run, id="ask-2")
    scene.ask(run=run, id="ask-3", policy=Policy(expires_after=hours(2)))
    scene.decide("approve", BEN, id="ask-2")
    claim = scene.hold_claim()
    sms, post = scene.commit(claim, SMS, POST, guarded=False)
    sending = scene.begin(claim, sms)
    scene.clock.pass_(HOUR)
    assert approvals.expire_due(scene.database) == ["hike-1"]
    assert [scene.record(root).ending for root in ("hike-1", "child-1")] == ["expired", "expired"]
    assert [scene.status(i) for i in ("ask-1", "ask-2", "ask-3")] == ["expired", "cancelled", "cancelled"]
    assert (scene.record().claim, scene.due()) == (None, None)
    assert (sending is not None, scene.effects()) == (True, {sms: "sending", post: "cancelled"})
    assert approvals.expire_due(scene.database) == []


def test_expired_and_declined_are_different_ends(scene: Scene) -> None:
    scene.ask(policy=Policy(expires_after=hours(1)))
    scene.decide("decline")
    scene.clock.pass_(2 * HOUR)
    assert approvals.expire_due(scene.database) == []
    assert (scene.status(), scene.record().ending) == ("declined", "")


def test_a_sweep_takes_no_more_than_its_limit(scene: Scene) -> None:
    for n in range(3):
        scene.ask(run=scene.run(f"hike-{n}"), id=f"ask-{n}", policy=Policy(expires_after=hours(8)))
    scene.clock.pass_(4 * HOUR)
    assert [r.root for r in approvals.remind_due(scene.database, limit=2)] == ["hike-0", "hike-1"]
    scene.clock.pass_(4 * HOUR)
    assert approvals.expire_due(scene.database, limit=2) == ["hike-0", "hike-1"]
    assert approvals.expire_due(scene.database, limit=2) == ["hike-2"]
