"""Exactly the approved thing goes out, once: what the performer lets pass, and what becomes of each attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphs.engine.errors import ClaimLost
from graphs.flow import Policy, Release
from storage import approvals, audit, ledger, switches
from storage.doubts import question_id
from storage.endings import end_tree
from tests.storage.scene import ANA, BEN, HOUR, MINUTE, POST, SECOND, SMS, TEXT, Scene, hours

OTHER = "Sunday 8:00, Oak Ridge."


def end(scene: Scene, how: str = "cancelled") -> bool:
    return bool(scene.within("hike-1", lambda tx: end_tree(tx, "hike-1", how)))


# -- the way out ------------------------------------------------------------------------------------------------------


def test_an_approved_effect_is_sent_under_its_release(scene: Scene) -> None:
    claim, (sms, _post) = scene.approved()
    sending = scene.begin(claim, sms)
    assert sending is not None
    assert (sending.kind, sending.address, sending.content, sending.attempt) == ("sms", SMS.to, TEXT, 1)
    assert sending.send_until == scene.now + 120 * SECOND
    assert ledger.may_send(scene.database, sending)
    assert scene.outcome(sending, ref="SM1", detail="queued")
    row = scene.effect(sms)
    assert (row.status, row.receipt["status"], row.receipt["ref"], row.receipt["detail"]) == (
        "sent", "sent", "SM1", "queued",
    )  # fmt: skip
    assert [(r.kind, r.used_by) for r in scene.releases()] == [("sms", sms), ("post", None)]
    told = [row.data for row in audit.rows(scene.database, "hike-1") if row.kind == "sending"]
    assert told == [{"effect": sms, "attempt": 1, "release": scene.releases()[0].id}]


def test_both_effects_of_one_review_go_out_each_under_its_own_release(scene: Scene) -> None:
    claim, keys = scene.approved()
    for key in keys:
        sending = scene.begin(claim, key)
        assert sending is not None and scene.outcome(sending)
    assert set(scene.effects().values()) == {"sent"}


def test_an_unguarded_effect_needs_no_review(scene: Scene) -> None:
    scene.run()
    claim = scene.hold_claim()
    (key,) = scene.commit(claim, POST, guarded=False)
    assert scene.begin(claim, key) is not None


def test_an_edited_text_goes_out_under_the_edit_only(scene: Scene) -> None:
    scene.ask()
    scene.edit(OTHER)
    claim = scene.hold_claim()
    scene.take(claim)
    (old,) = scene.commit(claim, SMS, text=TEXT)
    (new,) = scene.commit(claim, SMS, text=OTHER, first=1)
    assert (scene.begin(claim, old), scene.effect(old).status) == (None, "failed")
    assert scene.begin(claim, new) is not None


# -- what never goes out ----------------------------------------------------------------------------------------------


def refused(scene: Scene, claim: Any, key: str) -> bool:
    sending = scene.begin(claim, key)
    row = scene.effect(key)
    told = row.status == "failed" and row.receipt["detail"] == ledger.UNRELEASED
    return sending is None and told and [r.used_by for r in scene.releases() if r.used_by == key] == []


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (SMS, TEXT + " "),
        (SMS, ""),
        (Release(kind="sms", to="+15035550135", content="text"), TEXT),
        (Release(kind="post", to=SMS.to, content="text"), TEXT),
        (Release(kind="sms", to=POST.to, content="text"), TEXT),
    ],
)
def test_another_content_address_or_kind_is_not_released(scene: Scene, release: Release, text: str) -> None:
    scene.ask()
    scene.decide("approve")
    claim = scene.hold_claim()
    scene.take(claim)
    (key,) = scene.commit(claim, release, text=text)
    assert refused(scene, claim, key)


def test_one_release_serves_one_effect(scene: Scene) -> None:
    claim, (first, second) = scene.approved(SMS, SMS)
    assert scene.begin(claim, first) is not None
    assert scene.begin(claim, second) is not None  # two releases, two effects
    (third,) = scene.commit(claim, SMS, step=5)
    assert refused(scene, claim, third)


def test_a_graph_that_sends_the_same_twice_sends_it_once(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve")
    claim = scene.hold_claim()
    scene.take(claim)
    first, second = scene.commit(claim, POST, POST)
    assert scene.begin(claim, first) is not None
    assert refused(scene, claim, second)


def test_a_release_stays_bound_when_its_effect_has_failed(scene: Scene) -> None:
    claim, (first,) = scene.approved(POST)
    sending = scene.begin(claim, first)
    assert sending is not None and scene.outcome(sending, "failed", detail="channel is archived")
    (second,) = scene.commit(claim, POST, step=5)
    assert refused(scene, claim, second)


@pytest.mark.parametrize("verdict", [None, "approve", "decline", "changes"])
def test_only_a_final_review_lets_anything_out(scene: Scene, verdict: str | None) -> None:
    scene.ask(policy=Policy(undo_for=hours(1)))
    if verdict:
        scene.decide(verdict, reason="x")
    claim = scene.hold_claim()
    scene.take(claim)
    (key,) = scene.commit(claim, SMS)
    assert refused(scene, claim, key)


def test_an_approval_that_was_taken_back_lets_nothing_out(scene: Scene) -> None:
    scene.ask(policy=Policy(undo_for=hours(1)))
    scene.decide("approve")
    scene.decide("undo", BEN)
    scene.clock.pass_(2 * HOUR)
    claim = scene.hold_claim()
    assert scene.take(claim) == 0
    (key,) = scene.commit(claim, SMS)
    assert refused(scene, claim, key)


def test_the_approval_of_another_run_lets_nothing_out(scene: Scene) -> None:
    scene.approved()
    scene.ask(run=scene.run("hike-2"), id="ask-2")
    claim = scene.hold_claim("hike-2")
    (key,) = scene.commit(claim, SMS)
    assert refused(scene, claim, key)


def test_a_review_in_a_child_releases_for_its_whole_tree(scene: Scene) -> None:
    scene.run()
    scene.ask(run=scene.run("child-1", parent="hike-1"))
    scene.decide("approve")
    claim = scene.hold_claim()
    scene.take(claim)
    (key,) = scene.commit(claim, SMS, thread="child-1")
    assert scene.begin(claim, key) is not None


def test_an_effect_of_another_tree_is_not_begun_under_this_claim(scene: Scene) -> None:
    _, (sms, _) = scene.approved()
    scene.run("hike-2")
    claim = scene.hold_claim("hike-2")
    assert scene.begin(claim, sms) is None
    assert scene.effect(sms).status == "pending"


# -- the claim --------------------------------------------------------------------------------------------------------


def test_a_late_owner_sends_nothing(scene: Scene) -> None:
    late, (sms, _) = scene.approved()
    scene.hold_claim()
    with pytest.raises(ClaimLost):
        scene.begin(late, sms)
    assert (late.lost, scene.effect(sms).status) == (True, "pending")
    with pytest.raises(ClaimLost):
        scene.begin(late, sms)


def test_a_run_that_was_ended_sends_nothing_more(scene: Scene) -> None:
    claim, (sms, post) = scene.approved()
    sending = scene.begin(claim, sms)
    end(scene)
    with pytest.raises(ClaimLost):
        scene.begin(claim, post)
    assert (sending is not None, scene.effects()) == (True, {sms: "sending", post: "cancelled"})


def test_what_is_sending_is_not_begun_again(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    assert scene.begin(claim, sms) is not None
    assert scene.begin(claim, sms) is None
    assert scene.effect(sms).attempt == 1
    assert scene.begin(claim, "hike-1:4:7") is None


# -- the bound --------------------------------------------------------------------------------------------------------


def test_no_request_leaves_after_its_bound(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    assert sending is not None
    scene.clock.pass_(120 * SECOND - 1)
    assert ledger.may_send(scene.database, sending)
    scene.clock.pass_(1)
    assert not ledger.may_send(scene.database, sending)


def test_no_request_leaves_for_an_attempt_that_is_over(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    first = scene.begin(claim, sms)
    assert first is not None and scene.outcome(first, "not_accepted")
    assert not ledger.may_send(scene.database, first)
    second = scene.begin(claim, sms)
    assert second is not None and second.attempt == 2
    assert ledger.may_send(scene.database, second) and not ledger.may_send(scene.database, first)


def test_a_lost_answer_is_looked_up_only_when_no_request_can_be_under_way(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    scene.clock.pass_(150 * SECOND - 1)
    assert ledger.lookups_due(scene.database) == []
    scene.clock.pass_(1)
    assert ledger.lookups_due(scene.database) == [sending]
    end(scene)
    assert ledger.lookups_due(scene.database) == [sending]


# -- outcomes ---------------------------------------------------------------------------------------------------------


def test_an_outcome_needs_no_claim_but_its_own_attempt(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    first = scene.begin(claim, sms)
    assert first is not None
    scene.hold_claim()
    assert not scene.outcome(replace(first, attempt=2))
    assert scene.outcome(first)
    assert not scene.outcome(first, "failed")
    assert scene.effect(sms).status == "sent"
    assert scene.story()[-3:] == ["told too late", "sent", "told too late"]


def test_a_late_outcome_does_not_touch_the_next_attempt(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    first = scene.begin(claim, sms)
    assert first is not None and scene.outcome(first, "not_accepted")
    second = scene.begin(claim, sms)
    assert second is not None
    assert not scene.outcome(first, "failed")
    assert scene.effect(sms).status == "sending"
    assert scene.outcome(second)


def test_surely_not_accepted_waits_as_long_as_the_other_side_asks(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    later = scene.now + 30 * SECOND
    assert sending is not None and scene.outcome(sending, "not_accepted", until=later)
    assert (scene.effect(sms).status, scene.due()) == ("pending", later)
    claim = scene.hold_claim()
    assert (scene.begin(claim, sms), scene.due()) == (None, later)  # whoever came too early arms it again
    scene.clock.pass_(30 * SECOND)
    again = scene.begin(claim, sms)
    assert again is not None and again.attempt == 2
    assert again.first_sent_at == sending.first_sent_at


def test_surely_not_accepted_is_cancelled_when_the_run_has_ended(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    end(scene)
    assert sending is not None and scene.outcome(sending, "not_accepted")
    assert (scene.effect(sms).status, scene.due()) == ("cancelled", None)


def test_the_outcome_of_an_ended_run_is_kept_and_wakes_nobody(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    end(scene)
    assert sending is not None and scene.outcome(sending, ref="SM1")
    assert (scene.effect(sms).status, scene.due()) == ("sent", None)


@pytest.mark.parametrize("status", ["sent", "failed", "unknown", "not_accepted"])
def test_every_outcome_makes_the_run_due(scene: Scene, status: str) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    assert sending is not None and scene.due() is None
    scene.outcome(sending, status)
    assert scene.due() == scene.now


def test_an_outcome_of_nothing_is_dropped(scene: Scene) -> None:
    assert not ledger.outcome(scene.database, "nothing:1:0", 1, ledger.Result("sent"))


# -- in doubt ---------------------------------------------------------------------------------------------------------


def in_doubt(scene: Scene) -> tuple[Any, str, str]:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    assert sending is not None and scene.outcome(sending, "unknown", detail="timeout")
    return claim, sms, question_id(sms, 1)


def test_an_unknown_outcome_asks_a_person(scene: Scene) -> None:
    _, sms, question = in_doubt(scene)
    row = scene.approval(question)
    assert (scene.effect(sms).status, row.kind, row.status, row.root) == ("unknown", "effect", "pending", "hike-1")
    assert [choice["label"] for choice in row.ask["choices"]] == ["It went out", "Send again", "Stop"]
    assert row.expires_at is None


def test_a_person_says_that_it_went_out(scene: Scene) -> None:
    claim, sms, question = in_doubt(scene)
    assert scene.decide("answer", BEN, value="sent", id=question).result == "settled"
    row = scene.effect(sms)
    assert (row.status, row.receipt["status"], row.receipt["detail"]) == (
        "sent", "sent", "<@UBEN> says that it went out.",
    )  # fmt: skip
    assert scene.due() == scene.now
    assert scene.take(claim) == 0  # no node waits for this answer


def test_a_person_stops_it(scene: Scene) -> None:
    claim, sms, question = in_doubt(scene)
    scene.decide("answer", BEN, value="stop", id=question)
    assert (scene.effect(sms).status, scene.effect(sms).receipt["status"]) == ("failed", "failed")
    assert scene.begin(claim, sms) is None


def test_sent_again_under_the_release_it_has_already(scene: Scene) -> None:
    claim, sms, question = in_doubt(scene)
    scene.decide("answer", BEN, value="again", id=question)
    again = scene.begin(claim, sms)
    assert again is not None and again.attempt == 2
    assert [r.used_by for r in scene.releases()] == [sms, None]
    assert scene.outcome(again, "unknown")
    assert scene.status(question_id(sms, 2)) == "pending"


def test_sending_again_does_not_use_up_the_release_of_a_later_review(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run, id="ask-2")
    scene.decide("approve", id="ask-2")
    claim = scene.hold_claim()
    scene.take(claim)
    (sms,) = scene.commit(claim, SMS)
    first = scene.begin(claim, sms)
    assert first is not None and scene.outcome(first, "not_accepted")
    scene.ask(run=run, id="ask-1")
    scene.decide("approve", id="ask-1")
    scene.take(claim)
    assert scene.begin(claim, sms) is not None
    assert [r.used_by for i in ("ask-1", "ask-2") for r in scene.releases(i)] == [None, None, sms, None]


def test_only_one_answer_counts_and_only_one_of_the_three(scene: Scene) -> None:
    _, sms, question = in_doubt(scene)
    assert scene.decide("answer", ANA, value="perhaps", id=question).refusal == "bad_answer"
    scene.decide("answer", ANA, value="stop", id=question)
    assert scene.decide("answer", BEN, value="again", id=question).refusal == "not_pending"
    assert scene.effect(sms).status == "failed"


def test_a_late_answer_from_outside_does_not_settle_a_doubt(scene: Scene) -> None:
    _, sms, _question = in_doubt(scene)
    assert not ledger.outcome(scene.database, sms, 1, ledger.Result("sent", "SM1"))
    assert scene.effect(sms).status == "unknown"


def test_the_question_survives_the_end_without_send_again(scene: Scene) -> None:
    _, sms, question = in_doubt(scene)
    rev = scene.approval(question).rev
    end(scene)
    row = scene.approval(question)
    assert [choice["value"] for choice in row.ask["choices"]] == ["sent", "stop"]
    assert (row.status, row.rev) == ("pending", rev + 1)
    refusal = scene.decide("answer", value="again", id=question)
    assert (refusal.refusal, scene.effect(sms).status) == ("ended", "unknown")
    assert scene.decide("answer", value="sent", id=question).result == "settled"
    assert (scene.effect(sms).status, scene.due()) == ("sent", None)


def test_a_doubt_about_a_run_that_has_ended_never_offers_to_send_again(scene: Scene) -> None:
    claim, (sms, _) = scene.approved()
    sending = scene.begin(claim, sms)
    end(scene)
    assert sending is not None and scene.outcome(sending, "unknown")
    row = scene.approval(question_id(sms, 1))
    assert [choice["value"] for choice in row.ask["choices"]] == ["sent", "stop"]


def test_an_expiry_sweep_leaves_doubts_open(scene: Scene) -> None:
    _, _, question = in_doubt(scene)
    scene.clock.pass_(1000 * HOUR)
    assert approvals.expire_due(scene.database) == []
    assert scene.status(question) == "pending"
    assert [r.approval_id for r in approvals.remind_due(scene.database)] == [question]


# -- the kill switch --------------------------------------------------------------------------------------------------


def test_nothing_is_begun_while_effects_are_held(scene: Scene) -> None:
    claim, (sms, post) = scene.approved()
    sending = scene.begin(claim, sms)
    switches.hold(scene.database, "UOPS", "wrong channel")
    assert scene.begin(claim, post) is None
    assert sending is not None and not ledger.may_send(scene.database, sending)
    assert (scene.effect(post).status, scene.due()) == ("pending", scene.now + MINUTE)
    switches.release(scene.database, "UOPS")
    assert scene.due() == scene.now
    assert scene.begin(claim, post) is not None
