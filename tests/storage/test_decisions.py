"""Who decides, on what, when, and how often it counts."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from graphs.flow import Choice, Policy, Question, Review
from storage import approvals, audit
from storage.audit import content_hash
from storage.endings import end_tree
from tests.storage.scene import ANA, BEN, CAT, HOUR, MINUTE, RAE, TEXT, Scene, hours, person

TWO = Policy(quorum=2)
THREE = Policy(quorum=3)
UNDO = Policy(undo_for=timedelta(minutes=1))
OTHER = "Sunday 8:00, Oak Ridge."


def answer_of(scene: Scene, id: str = "ask-1") -> Any:
    return scene.approval(id).answer


# -- what counts ------------------------------------------------------------------------------------------------------


def test_an_approval_settles_and_makes_the_run_due_now(scene: Scene) -> None:
    scene.ask(run=scene.run(due=False))
    assert scene.due() is None
    outcome = scene.decide("approve", reason="Looks good")
    assert (outcome.result, outcome.status, outcome.by, outcome.root) == ("settled", "approved", "UANA", "hike-1")
    assert scene.due() == scene.now
    decision = Review.answered(None, answer_of(scene))  # type: ignore[arg-type]
    assert (decision.verdict, decision.draft, decision.by) == ("approve", {"text": TEXT}, "UANA")
    assert (decision.reason, decision.version) == ("Looks good", 1)


def test_an_earlier_due_time_is_never_pushed_back(scene: Scene) -> None:
    scene.ask(policy=UNDO)
    due = scene.due()
    scene.clock.pass_(HOUR)
    scene.decide("approve")
    assert scene.due() == due


def test_the_policys_quorum_counts_distinct_people(scene: Scene) -> None:
    scene.ask(policy=THREE, run=scene.run(due=False))
    first = scene.decide("approve", ANA)
    again = scene.decide("approve", ANA)
    second = scene.decide("approve", BEN)
    assert [(o.result, o.have, o.needed) for o in (first, again, second)] == [
        ("counted", 1, 3), ("refused", 1, 3), ("counted", 2, 3),
    ]  # fmt: skip
    assert (again.refusal, scene.status(), scene.due()) == ("same_person", "pending", None)
    assert scene.decide("approve", CAT).result == "settled"


def test_one_decline_settles_whatever_the_quorum(scene: Scene) -> None:
    scene.ask(policy=THREE)
    scene.decide("approve", ANA)
    outcome = scene.decide("decline", BEN, reason="too far")
    assert (outcome.status, answer_of(scene)["verdict"], answer_of(scene)["reason"]) == (
        "declined", "decline", "too far",
    )  # fmt: skip


def test_who_has_approved_may_still_decline(scene: Scene) -> None:
    scene.ask(policy=TWO)
    scene.decide("approve", ANA)
    assert scene.decide("decline", ANA).status == "declined"


def test_changes_send_the_draft_back_with_a_comment(scene: Scene) -> None:
    scene.ask()
    assert scene.decide("changes", reason=" ").refusal == "bad_answer"
    outcome = scene.decide("changes", reason="Start later")
    assert (outcome.status, answer_of(scene)["reason"]) == ("changes_requested", "Start later")


def test_the_requester_may_decline_and_edit_but_not_approve(scene: Scene) -> None:
    scene.ask()
    assert scene.decide("approve", RAE).refusal == "own_request"
    assert scene.edit(OTHER, RAE).refusal == "own_request"
    assert scene.edit(OTHER, RAE, verdict="save").result == "saved"
    assert scene.decide("decline", RAE, version=2).status == "declined"


def test_a_policy_may_let_the_requester_approve(scene: Scene) -> None:
    scene.ask(policy=Policy(allow_requester=True))
    assert scene.decide("approve", RAE).result == "settled"


@pytest.mark.parametrize("version", [1, None])
def test_no_version_stands_for_the_current_one(scene: Scene, version: int | None) -> None:
    scene.ask()
    assert scene.decide("approve", version=version).result == "settled"


# -- edits and versions -----------------------------------------------------------------------------------------------


def test_an_edit_is_a_new_draft_version_approved_by_its_editor(scene: Scene) -> None:
    scene.ask()
    outcome = scene.edit(OTHER)
    assert (outcome.result, outcome.version) == ("settled", 2)
    row = scene.approval()
    assert (row.draft, row.draft_version, row.answer["verdict"]) == ({"text": OTHER}, 2, "edit")
    assert row.answer["draft"] == {"text": OTHER}


def test_an_edit_counts_its_editor_alone_and_voids_what_was_counted(scene: Scene) -> None:
    scene.ask(policy=TWO)
    scene.decide("approve", ANA)
    edited = scene.edit(OTHER, BEN)
    assert (edited.result, edited.version, edited.have) == ("counted", 2, 1)
    assert scene.decide("approve", BEN, version=2).refusal == "same_person"
    assert scene.decide("approve", CAT, version=1).refusal == "stale_version"
    assert scene.decide("approve", ANA, version=2).result == "settled"
    assert answer_of(scene)["draft"] == {"text": OTHER}


def test_each_version_has_releases_of_its_own_content(scene: Scene) -> None:
    scene.ask()
    scene.edit(OTHER, verdict="save")
    found = [(r.draft_version, r.kind, r.address, r.content_hash) for r in scene.releases()]
    assert found == [
        (version, kind, to, content_hash(text))
        for version, text in ((1, TEXT), (2, OTHER))
        for kind, to in (("sms", "+15035550134"), ("post", "C0HIKES01"))
    ]


def test_a_saved_edit_resumes_nothing_and_counts_nobody(scene: Scene) -> None:
    scene.ask(run=scene.run(due=False))
    outcome = scene.edit(OTHER, verdict="save")
    assert (outcome.result, outcome.status, outcome.have, scene.due()) == ("saved", "pending", 0, None)
    assert scene.decide("approve", ANA, version=2).result == "settled"


@pytest.mark.parametrize("verdict", ["edit", "save"])
def test_an_edit_that_changes_nothing_is_refused(scene: Scene, verdict: str) -> None:
    scene.ask()
    assert scene.edit(TEXT, verdict=verdict).refusal == "unchanged"
    assert scene.approval().draft_version == 1


@pytest.mark.parametrize("edits", [{"price": "3"}, {"text": ""}, {"text": "x" * 301}, {"text": 7}])
def test_an_edit_that_does_not_fit_the_draft_is_refused_whole(scene: Scene, edits: Any) -> None:
    scene.ask()
    outcome = scene.decide("edit", edits=edits)
    assert (outcome.refusal, scene.approval().draft, scene.approval().draft_version) == (
        "bad_answer",
        {"text": TEXT},
        1,
    )


def test_a_click_on_an_older_draft_does_not_count(scene: Scene) -> None:
    scene.ask()
    scene.edit(OTHER, BEN, verdict="save")
    for verdict in ("approve", "decline", "changes"):
        outcome = scene.decide(verdict, version=1, reason="x")
        assert (outcome.refusal, outcome.version) == ("stale_version", 2)
    assert scene.edit("Monday", version=1).refusal == "stale_version"
    assert scene.decide("approve", version=3).refusal == "stale_version"
    assert scene.status() == "pending"


def test_text_with_nul_and_a_lone_surrogate_is_approved_as_it_is(scene: Scene) -> None:
    scene.ask()
    odd = "a\x00b\ud800"
    scene.edit(odd, reason="\x00")
    assert scene.approval().draft == {"text": odd}
    assert scene.releases()[-1].content_hash == content_hash(odd)


# -- who may ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actor", "refusal"),
    [
        (person("UBOT", is_bot=True), "bot"),
        (person("UGUEST", is_guest=True), "guest"),
        (person("UFAR", team="T2"), "other_team"),
        (person("UNONE", team=""), "other_team"),
        (person("UOUT", in_channel=False), "not_in_channel"),
    ],
)
@pytest.mark.parametrize("verdict", ["approve", "decline", "save", "undo"])
def test_only_members_of_the_channel_decide(scene: Scene, actor: Any, refusal: str, verdict: str) -> None:
    scene.ask(policy=UNDO)
    if verdict == "undo":
        scene.decide("approve")
    before = scene.approval()
    outcome = scene.edit(OTHER, actor, verdict=verdict)
    assert outcome.refusal == refusal
    assert scene.approval() == before
    assert scene.refusals() == [(actor.id, refusal)]


def test_an_unknown_approval_is_refused_without_a_trace(scene: Scene) -> None:
    outcome = scene.decide("approve", id="nothing")
    assert (outcome.result, outcome.refusal, outcome.root) == ("refused", "unknown", "")


# -- too late ---------------------------------------------------------------------------------------------------------


def test_the_loser_of_a_race_is_told_who_was_faster(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve", ANA)
    outcome = scene.decide("decline", BEN)
    assert (outcome.refusal, outcome.by, outcome.status) == ("not_pending", "UANA", "approved")
    assert outcome.sentence == "<@UANA> has already approved this on 15 January 2027 at 08:00 UTC."


def test_the_same_person_is_told_what_it_already_did(scene: Scene) -> None:
    scene.ask()
    scene.decide("decline", ANA)
    outcome = scene.decide("decline", ANA)
    assert (outcome.refusal, outcome.by) == ("same_person", "UANA")
    assert outcome.sentence.startswith("You have already declined this")


@pytest.mark.parametrize("verdict", ["approve", "decline", "changes", "save"])
def test_nothing_counts_from_the_instant_of_expiry_on(scene: Scene, verdict: str) -> None:
    scene.ask(policy=Policy(expires_after=hours(1), quorum=2))
    scene.clock.pass_(HOUR)
    outcome = scene.edit(OTHER, verdict=verdict, reason="x")
    assert (outcome.refusal, scene.status(), scene.approval().draft_version) == ("expired", "pending", 1)


def test_the_last_microsecond_before_expiry_counts(scene: Scene) -> None:
    scene.ask(policy=Policy(expires_after=hours(1)))
    scene.clock.pass_(HOUR - 1)
    assert scene.decide("approve").result == "settled"
    scene.clock.pass_(MINUTE)
    assert approvals.expire_due(scene.database) == []
    assert scene.status() == "approved"


def test_a_click_after_the_sweep_is_told_that_it_expired(scene: Scene) -> None:
    scene.ask(policy=Policy(expires_after=hours(1)))
    scene.clock.pass_(HOUR)
    assert approvals.expire_due(scene.database) == ["hike-1"]
    outcome = scene.decide("approve")
    assert (outcome.refusal, outcome.status) == ("expired", "expired")


def test_a_click_on_a_run_that_ended_is_told_so(scene: Scene) -> None:
    scene.ask()
    scene.within("hike-1", lambda tx: end_tree(tx, "hike-1", "cancelled"))
    outcome = scene.decide("approve")
    assert (outcome.refusal, outcome.status) == ("ended", "cancelled")


def test_a_superseded_question_is_not_asked_any_more(scene: Scene) -> None:
    scene.ask()
    scene.within("hike-1", lambda tx: approvals.supersede(tx, ["ask-1"]))
    assert scene.decide("approve").refusal == "not_pending"


# -- undo -------------------------------------------------------------------------------------------------------------


def test_an_approval_with_undo_makes_the_run_due_when_the_undo_has_passed(scene: Scene) -> None:
    scene.ask(policy=UNDO, run=scene.run(due=False))
    scene.decide("approve")
    assert scene.due() == scene.now + MINUTE
    claim = scene.hold_claim()
    scene.clock.pass_(MINUTE - 1)
    assert scene.take(claim) == 0
    scene.clock.pass_(1)
    assert scene.take(claim) == 1


def test_undo_makes_a_new_draft_version_and_voids_every_click_from_before(scene: Scene) -> None:
    scene.ask(policy=Policy(quorum=2, undo_for=timedelta(minutes=1)))
    scene.decide("approve", ANA)
    scene.decide("approve", BEN)
    undone = scene.decide("undo", CAT)
    assert (undone.result, undone.status, undone.version, undone.have) == ("undone", "pending", 2, 0)
    row = scene.approval()
    assert (row.answer, row.undo_until, row.settled_at, row.draft) == (None, None, None, {"text": TEXT})
    assert scene.decide("approve", CAT, version=1).refusal == "stale_version"
    assert scene.decide("approve", ANA, version=2).result == "counted"
    assert scene.decide("approve", BEN, version=2).result == "settled"
    assert [r.draft_version for r in scene.releases()] == [1, 1, 2, 2]


def test_a_late_undo_does_not_withdraw_an_approval_given_after_the_first(scene: Scene) -> None:
    scene.ask(policy=UNDO)
    scene.decide("approve", ANA)
    scene.decide("undo", BEN, version=1)
    scene.decide("approve", ANA, version=2)
    assert scene.decide("undo", BEN, version=1).refusal == "stale_version"
    assert scene.status() == "approved"


def test_a_second_undo_finds_nothing_to_take_back(scene: Scene) -> None:
    scene.ask(policy=UNDO)
    scene.decide("approve", ANA)
    scene.decide("undo", ANA)
    outcome = scene.decide("undo", ANA)
    assert (outcome.refusal, scene.approval().draft_version) == ("stale_version", 2)


def test_undo_is_possible_until_the_run_has_taken_the_approval_up(scene: Scene) -> None:
    scene.ask(policy=UNDO)
    scene.decide("approve")
    scene.clock.pass_(HOUR)
    assert scene.decide("undo", BEN).result == "undone"
    scene.decide("approve", version=2)
    claim = scene.hold_claim()
    scene.clock.pass_(MINUTE)
    scene.take(claim)
    outcome = scene.decide("undo", version=2)
    assert (outcome.refusal, outcome.by, scene.status()) == ("undo_too_late", "UANA", "final")


@pytest.mark.parametrize("verdict", ["decline", "changes"])
def test_only_approvals_are_taken_back(scene: Scene, verdict: str) -> None:
    scene.ask(policy=UNDO)
    scene.decide(verdict, reason="x")
    assert scene.decide("undo").refusal == "undo_too_late"


# -- questions --------------------------------------------------------------------------------------------------------


def ask_question(scene: Scene, kind: Any = "yes_no", choices: Any = ()) -> None:
    question = Question(text="Dogs allowed?", kind=kind, choices=list(choices))
    scene.ask(question.to_json(), asks="question", policy=TWO)


@pytest.mark.parametrize(("kind", "given", "stored"), [("yes_no", "no", False), ("number", "0", 0), ("text", "x", "x")])
def test_an_answer_is_stored_in_its_kind(scene: Scene, kind: str, given: Any, stored: Any) -> None:
    ask_question(scene, kind)
    outcome = scene.decide("answer", RAE, value=given)
    assert (outcome.result, outcome.status) == ("settled", "answered")
    assert answer_of(scene) == stored and type(answer_of(scene)) is type(stored)
    assert scene.due() == scene.now


def test_a_bad_answer_leaves_the_question_open(scene: Scene) -> None:
    ask_question(scene, "choice", [Choice(value="a", label="A")])
    outcome = scene.decide("answer", value="b")
    assert (outcome.refusal, outcome.sentence, scene.status()) == ("bad_answer", "Choose one of: A.", "pending")


def test_the_second_answer_is_told_of_the_first(scene: Scene) -> None:
    ask_question(scene)
    scene.decide("answer", BEN, value=True)
    outcome = scene.decide("answer", ANA, value=False)
    assert (outcome.refusal, outcome.by, answer_of(scene)) == ("not_pending", "UBEN", True)


@pytest.mark.parametrize("verdict", ["approve", "edit", "decline", "changes", "save"])
def test_a_question_cannot_be_approved(scene: Scene, verdict: str) -> None:
    ask_question(scene)
    assert scene.edit(OTHER, verdict=verdict, reason="x").refusal == "bad_answer"


def test_a_review_cannot_be_answered(scene: Scene) -> None:
    scene.ask()
    assert scene.decide("answer", value="yes").refusal == "bad_answer"


def test_a_signal_takes_any_json(scene: Scene) -> None:
    scene.ask({"wait for": "build"}, asks="signal")
    scene.decide("answer", value={"ok": [1, None]})
    assert answer_of(scene) == {"ok": [1, None]}


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_every_click_is_kept_and_told_in_the_audit(scene: Scene) -> None:
    scene.ask()
    scene.decide("approve", RAE, via="button")
    scene.edit(OTHER, ANA, reason="later", via="modal")
    scene.decide("approve", BEN, via="inbox")
    rows = approvals.decisions_of(scene.database, "ask-1")
    assert [(r.who, r.verdict, r.counted, r.refusal, r.draft_version, r.via) for r in rows] == [
        ("URAE", "approve", False, "own_request", 1, "button"),
        ("UANA", "edit", True, "", 2, "modal"),
        ("UBEN", "approve", False, "not_pending", 1, "inbox"),
    ]
    assert (rows[1].edits, rows[1].reason) == ({"text": OTHER}, "later")
    told = [row for row in audit.rows(scene.database, "hike-1") if row.kind == "decided"]
    assert [row.data["decision"] for row in told] == [row.id for row in rows]
    assert told[1].data["draft"] == scene.approval().content_hash != told[0].data["draft"]
    assert OTHER not in json.dumps([row.data for row in told])


def test_a_refused_click_leaves_the_card_as_it_is(scene: Scene) -> None:
    scene.ask()
    rev = scene.approval().rev
    scene.decide("approve", RAE)
    assert scene.approval().rev == rev
    scene.decide("approve", ANA)
    assert scene.approval().rev == rev + 1


def test_a_click_with_a_nonsense_version_is_refused(scene: Scene) -> None:
    scene.ask()
    assert scene.decide("approve", version=10**30).refusal == "stale_version"
    assert scene.decide("approve", version=-5).refusal == "stale_version"
