"""Questions are opened with their terms, superseded, and handed to their run once and for all."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from graphs.engine.checkpoint import Claim
from graphs.engine.errors import ClaimLost, StaleInterrupt, UnknownInterrupt, UpdateRefused
from graphs.flow import Choice, Field, Policy, Question, Release, Review
from storage import approvals
from storage.audit import content_hash
from storage.endings import end_tree
from storage.tables import from_micros
from tests.storage.scene import ANA, BEN, HOUR, MINUTE, SMS, TEXT, Scene, hike, hours

UNDO = Policy(undo_for=timedelta(minutes=1))


def test_a_review_is_opened_with_all_that_decisions_need(scene: Scene) -> None:
    scene.ask(policy=Policy(quorum=2, remind_after=(hours(4), hours(8)), expires_after=hours(24), undo_for=hours(1)))
    row = scene.approval()
    assert (row.root, row.kind, row.subject, row.status) == ("hike-1", "review", "Saturday's hike", "pending")
    assert (row.draft, row.draft_version, row.requester, row.team, row.channel) == (
        {"text": TEXT}, 1, "URAE", "T1", "C0HIKES01",
    )  # fmt: skip
    assert row.policy == {
        "quorum": 2, "allow_requester": False, "remind_after": [4 * HOUR, 8 * HOUR], "expires_after": 24 * HOUR,
        "undo_for": HOUR,
    }  # fmt: skip
    assert (row.remind_at, row.expires_at) == (from_micros(scene.now + 4 * HOUR), from_micros(scene.now + 24 * HOUR))
    assert Review.from_json(row.ask) == hike()
    assert scene.story() == ["asked"]


def test_a_review_that_is_valid_for_less_than_the_policy_allows_expires_with_its_facts(scene: Scene) -> None:
    soon = from_micros(scene.now + HOUR)
    scene.ask(hike(valid_until=soon), policy=Policy(expires_after=hours(24)))
    assert scene.approval().expires_at == soon


def test_without_a_deadline_nothing_ever_expires(scene: Scene) -> None:
    scene.ask(policy=Policy(remind_after=()))
    assert (scene.approval().expires_at, scene.approval().remind_at) == (None, None)


def test_a_question_has_its_text_and_no_draft(scene: Scene) -> None:
    scene.ask(Question(text="Dogs?", kind="yes_no").to_json(), asks="question")
    row = scene.approval()
    assert (row.kind, row.subject, row.draft, scene.releases()) == ("question", "Dogs?", {}, [])


def test_what_is_asked_in_a_child_surfaces_at_its_root(scene: Scene) -> None:
    scene.run()
    scene.ask(run=scene.run("child-1", parent="hike-1"))
    assert [(row.id, row.root, row.thread_id) for row in approvals.of_root(scene.database, "hike-1")] == [
        ("ask-1", "hike-1", "child-1")
    ]
    assert {release.root for release in scene.releases()} == {"hike-1"}


def test_asking_the_same_again_changes_nothing(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run)
    scene.decide("approve")
    before = scene.approval()
    scene.ask(hike("something else"), run=run)
    assert scene.approval() == before


def test_a_release_of_something_not_in_the_draft_is_refused_whole(scene: Scene) -> None:
    with pytest.raises(UpdateRefused, match="releases 'body'"):
        scene.ask(hike(TEXT, Release(kind="sms", to="+1", content="body")))
    assert approvals.of_root(scene.database, "hike-1") == []


def test_a_value_that_is_no_text_is_released_as_its_json(scene: Scene) -> None:
    amount = Review(
        title="Refund",
        draft={"amount": Field(label="Amount", kind="number", value=12.5)},
        releases=[Release(kind="refund", to="order-7", content="amount")],
    )
    scene.ask(amount)
    assert scene.releases()[0].content_hash == content_hash("12.5")


@pytest.mark.parametrize(
    ("verdict", "status"), [("approve", "final"), ("decline", "declined"), ("changes", "changes_requested")]
)
def test_a_settled_review_is_handed_over_once(scene: Scene, verdict: str, status: str) -> None:
    scene.ask()
    scene.decide(verdict, reason="x")
    claim = scene.hold_claim()
    assert (scene.take(claim), scene.take(claim)) == (1, 0)
    assert scene.status() == status
    (given,) = scene.answers().values()
    assert json.loads(given) == scene.approval().answer
    assert json.loads(given)["verdict"] == verdict


@pytest.mark.parametrize("value", [False, 0, "", None, {}])
def test_empty_answers_are_answers(scene: Scene, value: Any) -> None:
    scene.ask({"wait for": "build"}, asks="signal")
    scene.decide("answer", value=value)
    assert scene.take(scene.hold_claim()) == 1
    assert scene.answers() == {"answer:ask-1": json.dumps(value)}


def test_several_pending_and_some_answered_leaves_the_others_pending(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run)
    scene.ask(run=run, id="ask-2")
    scene.decide("approve", id="ask-2")
    assert scene.take(scene.hold_claim()) == 1
    assert (scene.status(), scene.status("ask-2"), list(scene.answers())) == ("pending", "final", ["answer:ask-2"])


def test_a_late_owner_takes_nothing_up(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve")
    late = scene.hold_claim()
    scene.hold_claim()
    with pytest.raises(ClaimLost):
        scene.take(late)
    assert (scene.status(), scene.answers()) == ("approved", {})


def test_a_run_that_pauses_while_an_undo_runs_comes_back_when_it_has_passed(scene: Scene) -> None:
    scene.ask(policy=UNDO)
    scene.decide("approve")
    claim = scene.hold_claim()
    scene.take(claim)
    scene.release(claim)
    assert scene.due() == scene.now + MINUTE


def test_superseded_questions_release_nothing_and_are_not_handed_over(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve")
    scene.within("hike-1", lambda tx: approvals.supersede(tx, ["ask-1", "unheard of"]))
    claim = scene.hold_claim()
    assert scene.take(claim) == 0
    (key,) = scene.commit(claim, SMS)
    assert scene.begin(claim, key) is None
    assert (scene.status(), scene.effect(key).status) == ("superseded", "failed")


def test_what_was_taken_up_stays_as_it_is(scene: Scene) -> None:
    scene.approved()
    scene.within("hike-1", lambda tx: approvals.supersede(tx, ["ask-1"]))
    assert scene.status() == "final"


def test_the_engines_own_answer_is_handed_over_but_releases_nothing(scene: Scene) -> None:
    scene.ask(run=scene.run(due=False))
    scene.within("hike-1", lambda tx: approvals.answer_raw(tx, "hike-1", "ask-1", {"verdict": "approve"}, "cli"))
    assert scene.due() == scene.now
    claim = scene.hold_claim()
    assert (scene.take(claim), scene.answers()) == (1, {"answer:ask-1": '{"verdict":"approve"}'})
    (key,) = scene.commit(claim, SMS)
    assert scene.begin(claim, key) is None


def test_the_engines_answers_to_stale_and_unknown_questions_are_refused(scene: Scene) -> None:
    scene.ask()
    scene.decide("decline")
    with pytest.raises(StaleInterrupt):
        scene.within("hike-1", lambda tx: approvals.answer_raw(tx, "hike-1", "ask-1", True))
    with pytest.raises(UnknownInterrupt):
        scene.within("hike-1", lambda tx: approvals.answer_raw(tx, "hike-1", "ask-2", True))


def test_a_reopened_run_asks_again_what_its_end_had_cancelled(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run, policy=UNDO)
    scene.ask(run=run, id="ask-2")
    scene.ask(run=run, id="ask-3")
    scene.decide("approve")
    scene.decide("decline", id="ask-3")
    scene.within("hike-1", lambda tx: end_tree(tx, "hike-1", "failed", "boom"))
    ended_at = scene.now
    scene.clock.pass_(MINUTE)
    again = scene.within("hike-1", lambda tx: approvals.reopen_cancelled(tx, "hike-1", ended_at))
    assert sorted(again) == ["ask-1", "ask-2"]
    assert [(scene.status(i), scene.approval(i).draft_version) for i in ("ask-1", "ask-2", "ask-3")] == [
        ("pending", 2), ("pending", 2), ("declined", 1),
    ]  # fmt: skip
    assert scene.decide("approve", version=1).refusal == "stale_version"
    assert scene.within("hike-1", lambda tx: approvals.reopen_cancelled(tx, "hike-1", ended_at)) == []


def test_the_inbox_lists_what_waits_for_people_oldest_first(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run)
    scene.clock.pass_(1)
    scene.ask(Question(text="?", kind="choice", choices=[Choice(value="a", label="A")]).to_json(), run=run, id="ask-2",
              asks="question")  # fmt: skip
    scene.ask({"wait": 1}, run=run, id="ask-3", asks="signal")
    scene.ask(run=run, id="ask-4")
    scene.decide("approve", id="ask-4")

    def listed(**kwargs: Any) -> list[str]:
        return [row.id for row in approvals.open_for(scene.database, **kwargs)]

    assert listed() == ["ask-1", "ask-2"]
    assert listed(requester="URAE", team="T1", limit=1) == ["ask-1"]
    assert listed(requester="UANA") == listed(team="T2") == []


def test_clicks_of_two_people_reach_different_approvals(scene: Scene) -> None:
    run = scene.run()
    scene.ask(run=run)
    scene.ask(run=run, id="ask-2")
    scene.decide("decline", ANA, id="ask-2")
    scene.decide("approve", BEN, id="ask-1")
    assert (scene.status(), scene.status("ask-2")) == ("approved", "declined")


def test_a_claim_is_not_needed_to_decide(scene: Scene) -> None:
    scene.ask()
    claim = scene.hold_claim()
    assert isinstance(claim, Claim)
    assert scene.decide("approve").result == "settled"
    assert scene.take(claim) == 1
