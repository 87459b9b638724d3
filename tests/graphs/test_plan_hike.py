"""Tests the hike planner from the form to what goes out, with a scripted model: every branch of its graph."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from graphs.engine import Snapshot
from graphs.engine.errors import NodeFailed
from graphs.flow import Question, Review
from graphs.plan_hike import FLOW, MAX_TURNS
from graphs.ports import Busy, Misconfigured, ModelReply, ModelRequest, Nonsense
from tests.graphs.hike.stage import (
    CHANNEL,
    FERN,
    GOOD_TEXT,
    GROUP,
    MONDAY,
    RIDGE,
    SATURDAY,
    Allowance,
    Club,
    Line,
    Stage,
    happy,
    hike,
    judges,
    lists,
    looks,
    place,
    proposes,
    results,
    says,
    silence,
    uses,
    writes,
)

WORKER, EVALUATOR, WRITER = "You plan hikes", "You judge", "You write the text message"


def review(snapshot: Snapshot) -> Review:
    assert snapshot.status == "waiting", snapshot.error
    return Review.model_validate(snapshot.interrupts[0].payload)


def question(snapshot: Snapshot) -> Question:
    return Question.model_validate(snapshot.interrupts[0].payload)


def last_words(request: ModelRequest) -> str:
    """The last thing the model was told."""
    block: Any = request.turns[-1].content[-1]
    return str(block["text"])


def told_end(snapshot: Snapshot) -> str:
    return FLOW.ending(hike(snapshot), FLOW.outcome(hike(snapshot)))


def results_of(snapshot: Snapshot) -> list[Any]:
    return [result for message in hike(snapshot).messages for result in results(message.content)]


# ---- straight on ----------------------------------------------------------------------------------------------------


def test_a_plan_that_holds_is_shown_and_goes_out_as_approved_once() -> None:
    stage = Stage(*happy())
    shown = stage.plan()
    assert review(shown).contents() == {"text": GOOD_TEXT}
    assert stage.post.sent == []
    done = stage.decide(shown, "approve")
    assert done.status == "finished"
    assert stage.post.sent == [("sms", GROUP, GOOD_TEXT), ("post", CHANNEL, GOOD_TEXT)]
    assert [(receipt.kind, receipt.status) for receipt in hike(done).receipts] == [("sms", "sent"), ("post", "sent")]
    assert told_end(done) == (
        "The hike on Saturday 5 December 2026 from Fern Hollow: "
        "The text to the hiking group went out. The post to the channel went out."
    )


def test_an_approval_lets_out_the_text_and_the_post_and_nothing_else() -> None:
    shown = review(Stage(*happy()).plan())
    assert [(release.kind, release.to, release.content) for release in shown.releases] == [
        ("sms", GROUP, "text"),
        ("post", CHANNEL, "text"),
    ]
    assert shown.valid_until == datetime(2026, 12, 5, 16, 0, tzinfo=UTC)


def test_the_post_goes_to_the_set_channel_if_the_run_has_none() -> None:
    stage = Stage(*happy())
    stage.decide(stage.plan(channel=""), "approve")
    assert [address for kind, address, _ in stage.post.sent if kind == "post"] == ["C0ELSEWHERE"]


def test_a_run_remembers_its_addresses_when_the_settings_change_meanwhile() -> None:
    stage = Stage(*happy())
    shown = stage.plan()
    object.__setattr__(stage.runner.deps, "sms_to", "+15035550199")
    assert stage.decide(shown, "approve").status == "finished"
    assert stage.post.sent[0] == ("sms", GROUP, GOOD_TEXT)


def test_each_role_is_asked_with_its_model_and_the_evaluator_for_json() -> None:
    stage = Stage(*happy())
    stage.plan(pinned="pinned-big|pinned-small")
    roles = [(r.model, [t.name for t in r.tools], r.reply_schema is not None) for r in stage.model.requests]
    assert roles[0] == ("pinned-big", ["list_trailheads", "forecast"], False)
    assert roles[-2:] == [("pinned-small", [], True), ("pinned-small", [], False)]


def test_the_day_is_settled_once_and_stated() -> None:
    stage = Stage(*happy())
    shown = stage.plan("Saturday, not far")
    assert hike(shown).day == "2026-12-05"
    (first, *_) = stage.model.requests
    assert last_words(first).startswith("Date: 2026-12-05 (Saturday 5 December 2026")


def test_the_day_is_that_of_the_trailheads_zone() -> None:
    """At 02:00 UTC on Saturday it is Friday evening at the trailheads: tomorrow is Saturday there."""
    stage = Stage(*happy())
    stage.time = datetime(2026, 12, 5, 2, 0, tzinfo=UTC)
    assert hike(stage.plan("tomorrow")).day == "2026-12-05"


def test_a_run_that_waits_over_the_weekend_keeps_its_day() -> None:
    lines = [lists(), looks("fern-hollow", day="2026-12-12"), proposes(), judges(), writes()]
    stage = Stage(*lines, looks("fern-hollow", day="2026-12-12"), *lines[2:])
    shown = stage.plan("next Saturday")
    stage.later(days=8)
    again = stage.decide(shown, "changes", reason="something nearer")
    assert (again.status, hike(again).day) == ("waiting", "2026-12-12")


def test_with_no_day_it_is_the_coming_saturday() -> None:
    assert hike(Stage(*happy()).plan("something with a view")).day == "2026-12-05"


def test_tool_results_hold_only_what_the_plan_needs() -> None:
    stage = Stage(*happy())
    listing, forecast = (json.loads(result["content"]) for result in results_of(stage.plan()))
    assert [set(entry) for entry in listing] == [{"id", "name", "length_km", "drive_minutes", "notes"}] * 2
    assert {key: forecast[key] for key in ("trailhead", "date")} == {"trailhead": "fern-hollow", "date": "2026-12-05"}
    assert [hour["until"] for hour in forecast["hours"]] == ["07:00", "08:00", "09:00", "10:00", "11:00", "12:00"]
    assert set(forecast["hours"][0]) == {"until", "temperature", "rain", "sky"}


def test_earlier_turns_are_sent_back_unchanged() -> None:
    stage = Stage(*happy())
    stage.plan()
    asked = stage.model.asked(WORKER)
    for before, after in pairwise(asked):
        assert after.turns[: len(before.turns)] == before.turns


def test_what_a_finished_call_cost_is_counted() -> None:
    stage = Stage(*happy())
    shown = stage.plan()
    spent = stage.store.load(shown.thread_id).spent
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (5, 300, 30)


# ---- rounds ---------------------------------------------------------------------------------------------------------


def test_feedback_goes_back_to_the_worker() -> None:
    lines = [lists(), looks("fern-hollow"), proposes(), judges(done=False, feedback="Bring a map.")]
    stage = Stage(*lines, proposes(bring="water, layers, a map"), judges(), writes())
    shown = stage.plan()
    assert hike(shown).rounds == 2
    assert 'Not done yet: "Bring a map."' in last_words(stage.model.asked(WORKER)[-1])


@pytest.mark.parametrize(
    "verdict",
    [
        says("What a nice plan!"),
        says('```json\n{"done": true, "needs_user": "", "feedback": ""}\n```'),
        says('{"done": "yes", "needs_user": "", "feedback": ""}'),
        says('{"done": true, "needs_user": false, "feedback": ""}'),
        says('{"done": true}'),
        says("[]"),
        says("null"),
        says('{"done": true, "needs_user": "", "feedback": "", "mood": "sunny"}'),
        uses(("list_trailheads", {})),
    ],
)
def test_a_verdict_that_cannot_be_read_counts_as_not_done(verdict: ModelReply) -> None:
    stage = Stage(lists(), looks("fern-hollow"), proposes(), verdict, proposes(), judges(), writes())
    shown = stage.plan()
    assert hike(shown).rounds == 2
    assert "could not be read" in last_words(stage.model.asked(WORKER)[-1])


def test_a_verdict_that_never_comes_ends_at_the_round_limit() -> None:
    rounds: list[Line] = []
    for _ in range(3):
        rounds += [proposes(), silence()]
    stage = Stage(lists(), looks("fern-hollow"), *rounds)
    end = stage.plan()
    assert end.status == "gave_up"
    assert told_end(end) == (
        "The hike on Saturday 5 December 2026 could not be planned. No plan met the criteria in 3 rounds. "
        "The last plan was Fern Hollow at 08:00. The evaluator's verdict could not be read. "
        "Rain that day: Fern Hollow 10 %."
    )
    assert stage.post.sent == []


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_an_evaluator_that_is_never_satisfied_ends_at_the_round_limit(limit: int) -> None:
    rounds = [line for _ in range(limit) for line in (proposes(), judges(done=False, feedback="No."))]
    end = Stage(lists(), looks("fern-hollow"), *rounds, max_rounds=limit).plan()
    assert (end.status, hike(end).rounds) == ("gave_up", limit)
    assert f"in {limit} rounds. The last plan was Fern Hollow at 08:00. The evaluator was not satisfied." in told_end(
        end
    )


def test_the_evaluators_own_words_never_reach_the_channel() -> None:
    rounds = [line for _ in range(3) for line in (proposes(), judges(done=False, feedback="Call +1 900 now"))]
    end = Stage(lists(), looks("fern-hollow"), *rounds).plan()
    assert "900" not in told_end(end)


def test_a_worker_that_talks_instead_of_acting_is_nudged_and_then_given_up() -> None:
    stage = Stage(says("A lovely day!"), says("Somewhere green."), says("Up to you."))
    end = stage.plan()
    assert end.status == "gave_up"
    assert "End with exactly one line PLAN" in last_words(stage.model.requests[-1])
    assert stage.model.asked(EVALUATOR) == []


def test_a_worker_that_says_nothing_is_asked_once_for_the_plan() -> None:
    stage = Stage(lists(), looks("fern-hollow"), silence(), proposes(), judges(), writes())
    assert hike(stage.plan()).rounds == 1
    nudged = stage.model.asked(WORKER)[-1]
    assert last_words(nudged) == "You said nothing. Please give the plan, with its PLAN line."
    assert nudged.turns[-1].content[0]["type"] == "tool_result"  # type: ignore[index, call-overload]


def test_a_worker_that_stays_silent_has_used_a_round() -> None:
    stage = Stage(lists(), looks("fern-hollow"), silence(), silence(), proposes(), judges(), writes())
    assert hike(stage.plan()).rounds == 2


def test_a_worker_that_only_looks_things_up_is_stopped() -> None:
    end = Stage(*(looks("fern-hollow") for _ in range(MAX_TURNS))).plan()
    assert end.status == "gave_up"
    assert f"looked things up {MAX_TURNS} times without settling on a plan" in told_end(end)


def test_a_run_that_has_used_its_steps_stops_and_can_be_given_more() -> None:
    stage = Stage(*happy())
    given = FLOW.start({"request": "Saturday"}, MONDAY)
    halted = stage.runner.invoke(FLOW.graph, given, "short", max_steps=4)
    assert halted.status == "halted"
    assert halted.error.startswith("The run has used all its steps")
    assert stage.runner.retry("short", max_steps=FLOW.graph.max_steps).status == "waiting"
    assert len(stage.model.requests) == 5


def test_a_paused_turn_is_sent_back_as_it_is() -> None:
    stage = Stage(lists(), says("Let me think.", "pause_turn"), looks("fern-hollow"), proposes(), judges(), writes())
    stage.plan()
    assert stage.model.requests[2].turns[-1].role == "assistant"


# ---- code before the evaluator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "objection"),
    [
        (proposes(start="11:30"), "The start has to lie within what the criteria allow, 07:00 to 10:00: not 11:30."),
        (proposes(start="8 o'clock"), "In the PLAN line, start must be a local time such as 07:30."),
        (proposes("moon-base"), "'moon-base' is no trailhead of the club's list"),
        (proposes("lantern-ridge"), "The weather at Lantern Ridge was not looked up; call forecast for lantern-ridge."),
        (says('PLAN {"trailhead": "fern-hollow"}'), "The PLAN line cannot be read: start: Field required."),
        (says("PLAN {broken}"), "The PLAN line cannot be read"),
        (proposes(bring=" "), 'In the PLAN line, say in "bring" what people carry.'),
        (
            says('PLAN {"trailhead": "fern-hollow", "start": "08:00", "bring": "x"}\n'
                 'PLAN {"trailhead": "lantern-ridge", "start": "08:00", "bring": "x"}'),
            "for exactly one trailhead, with JSON of the keys trailhead, start, bring; there are 2.",
        ),
    ],
)  # fmt: skip
def test_what_code_can_check_never_reaches_a_lenient_evaluator(plan: ModelReply, objection: str) -> None:
    stage = Stage(lists(), looks("fern-hollow"), plan, proposes(), judges(), writes())
    shown = stage.plan()
    assert objection in last_words(stage.model.asked(WORKER)[-1]).replace('\\"', '"')
    assert len(stage.model.asked(EVALUATOR)) == 1
    assert hike(shown).rounds == 2


@pytest.mark.parametrize("chance", [30, 31, 100, None])
@pytest.mark.parametrize("hour", [9, 10])
def test_a_wet_or_unknown_hour_of_the_walk_is_refused_by_code(hour: int, chance: int | None) -> None:
    club = Club(rain={"fern-hollow": {hour: chance}})
    end = Stage(lists(), looks("fern-hollow"), proposes(), proposes(), proposes(), club=club).plan()
    assert end.status == "gave_up"
    said = "unknown" if chance is None else f"{chance} %"
    assert f"known and under 30 % for the walk of 2 h; it is {said} until {hour:02d}:00" in told_end(end)


@pytest.mark.parametrize("hour", [8, 11])
def test_rain_before_and_after_the_walk_does_not_matter(hour: int) -> None:
    club = Club(rain={"fern-hollow": {hour: 90, 9: 29}})
    assert Stage(*happy(), club=club).plan().status == "waiting"


def test_a_long_trail_is_refused_when_a_short_one_is_asked_for() -> None:
    stage = Stage(lists(), looks("lantern-ridge"), *[proposes("lantern-ridge") for _ in range(3)])
    assert "Lantern Ridge has 11 km, and the trail must be under 10 km." in told_end(
        stage.plan("Saturday, a short hike")
    )


def test_a_long_trail_is_fine_when_nobody_asks_for_a_short_one() -> None:
    text = writes("Sat 5 Dec: Lantern Ridge, 08:00. Bring water.")
    stage = Stage(lists(), looks("lantern-ridge"), proposes("lantern-ridge"), judges(), text)
    assert stage.plan("Saturday").status == "waiting"


def test_criteria_can_be_given_for_one_run() -> None:
    stage = Stage(lists(), looks("fern-hollow"), proposes(start="14:30"), judges(), writes("Fern Hollow 14:30, water"))
    shown = stage.plan("Saturday", criteria="A start between 14:00 and 15:00.\nSomewhere with a creek.")
    assert shown.status == "waiting"
    assert "Somewhere with a creek." in last_words(stage.model.asked(EVALUATOR)[0])


def test_an_old_forecast_has_to_be_looked_up_again() -> None:
    club = Club(fetched=MONDAY - timedelta(hours=7))
    end = Stage(lists(), looks("fern-hollow"), proposes(), proposes(), proposes(), club=club).plan()
    assert "The forecast for Fern Hollow is old; call forecast for fern-hollow again." in told_end(end)


@settings(max_examples=25, deadline=None)
@given(start=st.integers(0, 23), rain=st.dictionaries(st.integers(6, 18), st.none() | st.integers(0, 100)))
def test_no_plan_against_the_rules_is_ever_shown(start: int, rain: dict[int, int | None]) -> None:
    """However lenient the evaluator: what is shown starts in the window and stays dry."""
    rounds: list[Line] = [lists(), looks("fern-hollow")]
    stage = Stage(*rounds, proposes(start=f"{start:02d}:00"), club=Club(rain={"fern-hollow": rain}), max_rounds=1)
    stage.model.lines += [judges(), writes(f"Fern Hollow {start:02d}:00, water")]
    shown = stage.plan("Saturday")
    hours = [rain.get(hour, 10) for hour in (start + 1, start + 2)]
    allowed = 7 <= start <= 10 and all(hour is not None and hour < 30 for hour in hours)
    assert (shown.status == "waiting") == allowed


# ---- tools that fail -------------------------------------------------------------------------------------------------


def test_a_forecast_that_cannot_be_had_is_a_result_the_worker_can_act_on() -> None:
    club = Club(fails=[LookupError("There is no forecast for Lantern Ridge that day.")])
    stage = Stage(lists(), looks("lantern-ridge", "fern-hollow"), *happy()[2:], club=club)
    failed, worked = results_of(stage.plan())[1:]
    assert failed["is_error"] is True
    assert failed["content"] == "There is no forecast for Lantern Ridge that day."
    assert "is_error" not in worked


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("weather", {}), "There is no tool 'weather'; there are list_trailheads, forecast."),
        (("forecast", {"trailhead": "fern-hollow"}), "forecast cannot take these arguments: date: Field required."),
        (("forecast", {"trailhead": 7, "date": "2026-12-05"}), "forecast cannot take these arguments: trailhead: "),
        (("forecast", {"trailhead": "moon-base", "date": "2026-12-05"}), "'moon-base' is no id of the club's list"),
        (("forecast", {"trailhead": "fern-hollow", "date": "2026-12-06"}), "The hike is on 2026-12-05; ask for that"),
        (("list_trailheads", {"near": "me"}), "list_trailheads cannot take these arguments: near: "),
    ],
)
def test_a_bad_tool_call_is_answered_with_what_is_wrong(call: tuple[str, JsonValue], why: str) -> None:
    stage = Stage(uses(call), *happy())
    (result, *_) = results_of(stage.plan())
    assert result["is_error"] is True
    assert str(result["content"]).startswith(why)
    assert stage.club.asked == [("fern-hollow", SATURDAY)]


def test_half_a_tool_call_is_never_run() -> None:
    cut = uses(("forecast", {"trailhead": "fern-hollow", "date": "2026-12-05"}), stop_reason="max_tokens")
    stage = Stage(cut, cut)
    assert stage.plan().status == "gave_up"
    assert stage.club.asked == []


def test_a_busy_weather_service_lets_the_run_sleep_and_asks_only_what_is_missing() -> None:
    club = Club(fails=[Busy("Too many requests.", MONDAY + timedelta(minutes=5))])
    stage = Stage(lists(), looks("fern-hollow"), *happy()[2:], club=club)
    asleep = stage.plan()
    assert asleep.interrupts == ()
    assert len(stage.model.requests) == 2
    stage.later(minutes=6)
    assert stage.runner.advance(asleep.thread_id).status == "waiting"
    assert len(stage.model.requests) == 5


# ---- a model that fails ----------------------------------------------------------------------------------------------


def test_a_refusal_stops_the_run_and_is_told() -> None:
    stage = Stage(silence("refusal"))
    end = stage.plan()
    assert end.status == "gave_up"
    assert told_end(end).endswith("The model refused to plan this hike; word the request differently.")
    assert len(stage.model.requests) == 1


def test_an_evaluators_refusal_stops_the_run_and_is_told() -> None:
    end = Stage(lists(), looks("fern-hollow"), proposes(), silence("refusal")).plan()
    assert end.status == "gave_up"
    assert "The evaluator refused to judge this plan" in told_end(end)


def test_a_truncated_answer_is_asked_for_once_more_with_twice_the_room() -> None:
    stage = Stage(says("The best trail", "max_tokens"), *happy())
    assert stage.plan().status == "waiting"
    first, second, *_ = stage.model.requests
    assert second.max_tokens == 2 * first.max_tokens
    assert second.turns == first.turns


def test_an_answer_truncated_twice_ends_the_run() -> None:
    stage = Stage(says("The best trail", "max_tokens"), says("The best trail is", "max_tokens"))
    end = stage.plan()
    assert end.status == "gave_up"
    assert "did not fit, even with twice the room" in told_end(end)


def test_a_conversation_that_outgrew_the_model_ends_the_run_at_once() -> None:
    stage = Stage(says("…", "model_context_window_exceeded"))
    assert stage.plan().status == "gave_up"
    assert len(stage.model.requests) == 1


@pytest.mark.parametrize("stop_reason", [None, "something_new"])
def test_an_answer_that_was_cut_off_is_asked_for_once_more(stop_reason: str | None) -> None:
    assert Stage(says("half", stop_reason), *happy()).plan().status == "waiting"
    assert Stage(says("half", stop_reason), says("half", stop_reason)).plan().status == "gave_up"


def test_a_busy_model_lets_the_run_sleep_without_paying_again_for_what_is_done() -> None:
    lines: list[Line] = [lists(), Busy("Overloaded.", MONDAY + timedelta(minutes=1)), *happy()[1:]]
    stage = Stage(*lines)
    asleep = stage.plan()
    assert len(stage.model.requests) == 2
    stage.later(minutes=2)
    assert stage.runner.advance(asleep.thread_id).status == "waiting"
    assert len(stage.model.requests) == 6


def test_a_wrong_key_halts_the_run_until_somebody_sets_it_right() -> None:
    stage = Stage(Misconfigured("Set the API key."), *happy())
    halted = stage.plan()
    assert (halted.status, halted.error) == ("halted", "Set the API key.")
    assert stage.runner.retry(halted.thread_id).status == "waiting"


def test_an_unreadable_answer_is_asked_for_again_and_then_fails_the_run() -> None:
    html = Nonsense("The model answered a page of HTML.")
    assert Stage(html, *happy()).plan().status == "waiting"
    with pytest.raises(NodeFailed, match="page of HTML"):
        Stage(html, html, html).plan()


def test_a_budget_that_is_used_up_halts_the_run() -> None:
    stage = Stage(*happy(), budget=Allowance(calls=3))
    halted = stage.plan()
    assert (halted.status, halted.error) == ("halted", "The run has used its model calls; give it more.")
    stage.budget.calls = 1000
    assert stage.runner.retry(halted.thread_id).status == "waiting"
    assert len(stage.model.requests) == 5


def test_a_budget_that_fills_up_again_lets_the_run_sleep() -> None:
    stage = Stage(*happy(), budget=Allowance(calls=0, until=MONDAY + timedelta(hours=14)))
    asleep = stage.plan()
    stage.budget.calls = 1000
    stage.later(hours=15)
    assert stage.runner.advance(asleep.thread_id).status == "waiting"


# ---- the requester is asked ------------------------------------------------------------------------------------------

DRIVE = judges(done=False, needs_user="How far will you drive?", feedback="The drive is open.")


def test_a_question_about_driving_is_answered_by_a_button_and_code_holds_to_it() -> None:
    far = [proposes("lantern-ridge"), proposes()]
    stage = Stage(lists(), looks("fern-hollow", "lantern-ridge"), proposes(), DRIVE, *far, judges(), writes())
    asked = stage.plan("Saturday")
    assert [choice.value for choice in question(asked).choices] == ["30", "45", "any"]
    shown = stage.answer(asked, "30")
    assert "Lantern Ridge is too far for the requester." in last_words(stage.model.asked(WORKER)[-1])
    assert "at most 30 minutes of driving" in last_words(stage.model.asked(EVALUATOR)[-1])
    assert hike(shown).rounds == 2


def test_another_question_is_answered_in_words() -> None:
    open_question = judges(done=False, needs_user="Will children come along?", feedback="")
    stage = Stage(lists(), looks("fern-hollow"), proposes(), open_question, proposes(), judges(), writes())
    asked = stage.plan()
    assert (question(asked).text, question(asked).kind) == ("Will children come along?", "text")
    assert stage.answer(asked, "Yes, two").status == "waiting"
    heard = last_words(stage.model.asked(WORKER)[-1])
    assert '"Will children come along?"' in heard
    assert '"Yes, two"' in heard


def test_an_answer_starts_the_rounds_anew() -> None:
    doubts: list[Line] = [proposes(), judges(done=False, feedback="No."), proposes(), DRIVE]
    stage = Stage(lists(), looks("fern-hollow"), *doubts, *doubts[:2], proposes(), judges(), writes(), max_rounds=2)
    assert stage.answer(stage.plan(), "any").status == "waiting"


def test_an_evaluator_that_only_asks_is_not_asked_forever() -> None:
    ask = [line for _ in range(10) for line in (proposes(), DRIVE)]
    stage = Stage(lists(), looks("fern-hollow"), *ask, max_rounds=2)
    snapshot = stage.answer(stage.answer(stage.plan(), "any"), "any")
    assert snapshot.status == "gave_up"
    assert hike(snapshot).asked == 2


# ---- people decide ---------------------------------------------------------------------------------------------------


def test_an_edit_goes_out_as_edited() -> None:
    stage = Stage(*happy())
    edited = "Fern Hollow, Saturday 8:00. Boots!"
    assert stage.decide(stage.plan(), "edit", edited).status == "finished"
    assert [content for _, _, content in stage.post.sent] == [edited, edited]


def test_a_decline_ends_the_run_with_its_reason_and_sends_nothing() -> None:
    stage = Stage(*happy())
    end = stage.decide(stage.plan(), "decline", reason="Too muddy there.")
    assert end.status == "declined"
    assert told_end(end) == (
        "The hike on Saturday 5 December 2026 from Fern Hollow was declined: Too muddy there. Nothing was sent."
    )
    assert stage.post.sent == []


def test_requested_changes_go_back_to_the_worker_with_the_comment() -> None:
    again: list[Line] = [proposes(start="09:30"), judges(), writes("Fern Hollow 9:30, bring water")]
    stage = Stage(*happy(), *again)
    shown = stage.decide(stage.plan(), "changes", reason="start at 9:30")
    assert review(shown).contents() == {"text": "Fern Hollow 9:30, bring water"}
    assert '"start at 9:30"' in last_words(stage.model.asked(WORKER)[-1])
    assert "start at 9:30" in last_words(stage.model.asked(EVALUATOR)[-1])
    assert stage.decide(shown, "approve").status == "finished"


def test_a_comment_moves_what_code_checks() -> None:
    again: list[Line] = [proposes(start="08:00"), proposes(start="11:00"), judges(), writes("Fern Hollow 11:00, water")]
    stage = Stage(*happy(), *again)
    shown = stage.decide(stage.plan(), "changes", reason="Please start at 11, we sleep long")
    assert "08:00" in last_words(stage.model.asked(WORKER)[-1])
    assert review(shown).facts["When"].endswith("11:00 (America/Los_Angeles)")


def test_changes_after_a_long_wait_need_a_fresh_forecast() -> None:
    again: list[Line] = [proposes(), looks("fern-hollow"), proposes(), judges(), writes()]
    stage = Stage(*happy(), *again)
    shown = stage.plan()
    stage.later(days=2)
    assert stage.decide(shown, "changes", reason="again please").status == "waiting"
    assert len(stage.club.asked) == 2


def test_declines_and_edits_are_remembered_in_the_channel_as_data() -> None:
    stage = Stage(*happy(), *happy(), *happy())
    stage.decide(stage.plan(), "decline", reason='Too "muddy"')
    stage.decide(stage.plan(), "edit", "Fern Hollow 8:00. Boots!")
    stage.model.requests.clear()
    stage.plan()
    first = last_words(stage.model.asked(WORKER)[0])
    assert 'Why earlier plans here were declined: ["Too \\"muddy\\""]' in first
    assert '"sent": "Fern Hollow 8:00. Boots!"' in last_words(stage.model.asked(WRITER)[0])


def test_another_channel_remembers_nothing_of_it() -> None:
    stage = Stage(*happy(), *happy())
    stage.decide(stage.plan(), "decline", reason="Too muddy")
    stage.model.requests.clear()
    stage.plan(channel="C0OTHER01")
    assert "muddy" not in last_words(stage.model.asked(WORKER)[0])


def test_only_the_last_few_decisions_are_remembered() -> None:
    stage = Stage(*(line for _ in range(8) for line in happy()))
    for n in range(7):
        stage.decide(stage.plan(), "decline", reason=f"reason {n} " + "x" * 2000)
    remembered = hike(stage.plan()).remembered.declines
    assert [reason[:8] for reason in remembered] == [f"reason {n}" for n in range(2, 7)]
    assert max(map(len, remembered)) <= 500


def test_an_approval_as_shown_is_nothing_to_remember() -> None:
    stage = Stage(*happy(), *happy())
    stage.decide(stage.plan(), "approve")
    assert hike(stage.plan()).remembered.edits == []


# ---- the text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("x" * 300, "it must stay under 300"),
        ("Sat 08:00, bring water", "must name the trailhead, Fern Hollow"),
        ("Fern Hollow on Saturday, bring water", "must name the time, 08:00"),
        ("Fern Hollow, Sat 08:00.", "must say what to bring"),
        ("Fern Hollow or Lantern Ridge, 08:00, water", "no other trailhead than Fern Hollow"),
        ("<!channel> Fern Hollow 08:00, water", "cannot mention anybody"),
    ],
)
def test_a_text_that_code_refuses_is_written_again(bad: str, why: str) -> None:
    stage = Stage(*happy()[:-1], writes(bad), writes())
    assert review(stage.plan()).contents() == {"text": GOOD_TEXT}
    assert why in last_words(stage.model.asked(WRITER)[-1])


@pytest.mark.parametrize(
    "lines", [[writes("no")] * 3, [silence("refusal")], [silence(), silence()], [says("x", None)] * 2]
)
def test_a_writer_that_fails_is_replaced_by_the_plan_itself_and_the_card_says_so(lines: list[Line]) -> None:
    shown = review(Stage(*happy()[:-1], *lines).plan())
    assert shown.contents() == {"text": "Fern Hollow, Saturday 5 December 2026, start 08:00. Bring: water, layers."}
    assert shown.facts["Planned by"].endswith("the text was put together from the plan")


def test_typography_is_made_plain_before_it_is_shown() -> None:
    shown = review(Stage(*happy()[:-1], writes("Fern Hollow \u2013 08:00\u2026 bring \u201cwater\u201d")).plan())
    assert shown.contents() == {"text": 'Fern Hollow - 08:00... bring "water"'}
    assert shown.draft["text"].hint == "36 characters, 1 segment in GSM-7"


# ---- what cannot be planned ------------------------------------------------------------------------------------------


def test_without_trailheads_nothing_is_asked_of_the_model() -> None:
    end = Stage(club=Club(trailheads=[])).plan()
    assert end.status == "gave_up"
    assert told_end(end) == "The hike could not be planned. The club's list of trailheads is empty; add some to it."


def test_a_day_on_which_it_is_too_late_is_told_without_asking_the_model() -> None:
    stage = Stage()
    stage.later(hours=4)
    assert "it is 14:00 on Monday 30 November 2026 already, too late" in told_end(stage.plan("today"))


def test_a_list_that_is_out_of_reach_lets_the_run_sleep() -> None:
    club = Club(unlisted=[Busy("Out of reach.", MONDAY + timedelta(minutes=1))])
    stage = Stage(*happy(), club=club)
    asleep = stage.plan()
    stage.later(minutes=2)
    assert stage.runner.advance(asleep.thread_id).status == "waiting"


def test_trailheads_in_another_zone_are_planned_in_theirs_and_the_card_says_so() -> None:
    east = place("fern-hollow", 7.4, zone="America/New_York")
    shown = review(Stage(*happy(), club=Club(trailheads=[RIDGE, east])).plan())
    assert shown.valid_until == datetime(2026, 12, 5, 13, 0, tzinfo=UTC)
    assert "which day was meant was read in America/Los_Angeles" in shown.facts["Time zones"]
    assert "Time zones" not in review(Stage(*happy(), club=Club(trailheads=[FERN, RIDGE])).plan()).facts


def test_what_did_not_go_out_is_told() -> None:
    stage = Stage(*happy())
    stage.post.fails["sms"] = "The number has opted out."
    end = stage.decide(stage.plan(), "approve")
    assert end.status == "finished"
    assert told_end(end).endswith(
        "The text to the hiking group did not go out (The number has opted out.). The post to the channel went out."
    )


def test_an_approved_plan_of_which_nothing_went_out_is_no_success() -> None:
    stage = Stage(*happy())
    stage.post.fails |= {"sms": "Opted out.", "post": "The channel is archived."}
    end = stage.decide(stage.plan(), "approve")
    assert end.status == "gave_up"
    assert "was approved, but: The text to the hiking group did not go out (Opted out.)." in told_end(end)
