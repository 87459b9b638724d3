"""Tests what people are shown of a hike."""

from __future__ import annotations

import pytest

from graphs.engine import Receipt
from graphs.flow import Ending, Question
from graphs.hike.card import check, ending, question_of, read_answer, review_of
from graphs.hike.rules import Limits, Plan
from graphs.hike.state import Hike, Verdict
from graphs.ports import Models
from tests.graphs.hike.stage import CHANNEL, FERN, GOOD_TEXT, GROUP, RIDGE, ZONE, place, weather

PLAN = Plan(trailhead="fern-hollow", start="08:00", bring="water, layers")
MODELS = Models("big", "small")
SETTLED = Hike(
    request="Saturday,\n not far",
    day="2026-12-05",
    zone=ZONE,
    trailheads=[FERN, RIDGE],
    forecasts={"fern-hollow": weather("fern-hollow", {9: 20, 10: None})},
    plan=PLAN,
    draft=GOOD_TEXT,
    rounds=2,
    sms_to=GROUP,
    post_to=CHANNEL,
)
NEW = Hike(request="Saturday")
SENT = Receipt(kind="sms", to=GROUP, status="sent")


def asking(text: str, *drives: int | None) -> Hike:
    places = [place(f"place-{n}", 5.0, drive) for n, drive in enumerate(drives)]
    verdict = Verdict(done=False, needs_user=text, feedback="")
    return SETTLED.model_copy(update={"trailheads": places, "verdict": verdict})


def test_the_facts_come_from_data_in_a_fixed_order() -> None:
    assert list(review_of(SETTLED, MODELS).facts.items()) == [
        ("Asked for", "Saturday, not far"),
        ("Trailhead", "Fern Hollow, 25 min by car"),
        ("When", "Saturday 5 December 2026, 08:00 (America/Los_Angeles)"),
        ("Rain", "20 % until 09:00, unknown until 10:00"),
        ("Forecast", "Weather by the stage, of Mon 30 Nov, 10:00"),
        ("Trail", "7.4 km, reckoned as 2 h"),
        ("Bring", "water, layers"),
        ("Planned by", "plan by big (round 2), text by small"),
    ]


def test_a_simulated_model_is_called_simulated() -> None:
    simulated = SETTLED.model_copy(update={"provider": "simulated"})
    assert review_of(simulated, MODELS).facts["Planned by"].startswith("Simulated: ")


def test_what_is_not_known_is_called_unknown() -> None:
    bare = SETTLED.model_copy(update={"trailheads": [place("fern-hollow", None, None)], "forecasts": {}})
    facts = review_of(bare, MODELS).facts
    assert (facts["Trailhead"], facts["Trail"]) == ("Fern Hollow", "length unknown, reckoned as 3 h")
    assert (facts["Rain"], facts["Forecast"]) == ("not looked up", "none")


def test_the_field_says_what_the_text_costs_and_how_long_it_may_be() -> None:
    emoji = SETTLED.model_copy(update={"draft": "x" * 150 + "\U0001f332", "limits": Limits(text_under=160)})
    (field,) = review_of(emoji, MODELS).draft.values()
    assert (field.max_length, field.hint) == (159, "151 characters, 3 segments in UCS-2")


def test_an_edit_is_checked_like_a_draft() -> None:
    assert check(SETTLED, {"text": "Boots!"}) == {}
    assert check(SETTLED, {"text": "x" * 300}) == {"text": "The text has 300 characters; it must stay under 300."}
    assert check(SETTLED, {}) == {"text": "The text is empty; write what the group should read."}


@pytest.mark.parametrize("text", ["How far will you drive?", "Is a longer drive fine?", "How long are you driving?"])
def test_a_question_about_driving_has_buttons_from_the_list(text: str) -> None:
    question = question_of(asking(text, 5, 20, 25, None, 95, 40, 50, 70))
    assert question.kind == "choice"
    assert [choice.value for choice in question.choices] == ["15", "30", "45", "60", "any"]


@pytest.mark.parametrize(
    "state", [asking("Any dogs?", 20), asking("How far will you drive?", None), asking("A Drivers' pub?", 20)]
)
def test_any_other_question_is_answered_in_words(state: Hike) -> None:
    assert question_of(state).kind == "text"


def test_a_question_is_one_short_line_without_control_characters() -> None:
    text = question_of(asking("Really?\n\x00" + "x" * 1000, 20)).text
    assert text.startswith("Really? xxx")
    assert len(text) == 300


def test_answers_become_words_and_a_limit() -> None:
    drive = question_of(asking("How far will you drive?", 20))
    assert read_answer(drive, "30") == ("at most 30 minutes of driving", 30)
    assert read_answer(drive, "any") == ("any distance", None)
    assert read_answer(Question(text="Dogs?"), " two\x00 ") == ("two", None)
    assert read_answer(Question(text="Dogs?"), "") == ("(nothing)", None)
    assert read_answer(Question(text="How many?", kind="number"), 0) == ("0", None)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("expired", "The hike on Saturday 5 December 2026 from Fern Hollow: nobody decided in time. Nothing was sent."),
        ("cancelled", "The hike on Saturday 5 December 2026 from Fern Hollow was cancelled. Nothing was sent."),
        ("failed", "The hike on Saturday 5 December 2026 from Fern Hollow: the run failed. Nothing was sent."),
    ],
)
def test_other_ends_are_told_apart(how: Ending, said: str) -> None:
    assert ending(SETTLED, how) == said


def test_what_went_out_before_a_run_was_cancelled_is_told() -> None:
    assert ending(SETTLED.model_copy(update={"receipts": [SENT]}), "cancelled").endswith(
        "was cancelled. The text to the hiking group went out."
    )


@pytest.mark.parametrize("how", ["finished", "declined", "gave_up", "expired", "cancelled", "failed"])
def test_a_run_that_settled_nothing_has_an_end_that_can_be_told(how: Ending) -> None:
    assert ending(NEW, how).startswith("The hike")


def test_giving_up_lists_the_rain_that_was_found() -> None:
    state = SETTLED.model_copy(
        update={
            "stopped": "No plan met the criteria in 3 rounds.",
            "objections": ["Too wet."],
            "forecasts": {
                "fern-hollow": weather("fern-hollow", {9: 80, 10: None}),
                "lantern-ridge": weather("lantern-ridge", dict.fromkeys(range(6, 19))),
            },
        }
    )
    assert ending(state, "gave_up") == (
        "The hike on Saturday 5 December 2026 could not be planned. No plan met the criteria in 3 rounds. "
        "The last plan was Fern Hollow at 08:00. Too wet. "
        "Rain that day: Fern Hollow 10 to 80 %, some hours unknown; Lantern Ridge unknown."
    )


def test_a_trailhead_that_a_model_made_up_is_not_repeated_to_the_channel() -> None:
    made_up = PLAN.model_copy(update={"trailhead": "call-1-900"})
    state = SETTLED.model_copy(update={"stopped": "No plan.", "plan": made_up, "objections": ["'call-1-900' is none."]})
    assert "900" not in ending(state, "gave_up")
