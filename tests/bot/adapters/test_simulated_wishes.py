"""What the simulated planner hears in people's words."""

from __future__ import annotations

import json
from datetime import date

import pytest

from bot.adapters.simulated_rules import Ask, Turn
from bot.adapters.simulated_wishes import Wishes, day_of, last_plan, read_wishes

FIRST = "Date: 2026-12-05 (Saturday)\nRequest: a walk"


def hear(*texts: str, planned: str = "08:00") -> Wishes:
    turns = [Turn("user", [{"type": "text", "text": texts[0]}])]
    for text in texts[1:]:
        plan = f'PLAN {{"trailhead": "fern-hollow", "start": "{planned}", "bring": "x"}}'
        turns.append(Turn("assistant", [{"type": "text", "text": plan}]))
        turns.append(Turn("user", [{"type": "text", "text": text}]))
    everything = "\n".join(turn.text for turn in turns)
    return read_wishes(Ask("m", "", turns, {}, None, 100, "id", "seal", everything))


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("We drive at most 60 minutes.", 60),
        ("at most 1.5 hours by driving", 90),
        ("An hour of driving is fine", 60),
        ("20 min drive", 20),
        ("A drive of 25", 25),
        ("How far to drive is open; under 10 km.", None),
        ("The drive starts at 9:30.", None),
        ("We drive with 6 people.", None),
        ("No limit on driving.\nDate: 2026-12-05", None),
        ("A walk of 45 minutes.", None),
    ],
)
def test_a_limit_on_driving_is_no_length_time_date_or_head_count(text: str, minutes: float | None) -> None:
    assert hear(text).max_drive == minutes


@pytest.mark.parametrize(
    "answer", ["45", "45 min.", 'Asked: "How far will you drive?"\nThe answer: "45"\nPlan with it.']
)
def test_an_answer_may_be_a_bare_number(answer: str) -> None:
    assert hear(FIRST + "\nAt most 90 minutes of driving.", answer).max_drive == 45


def test_a_conditional_length_holds_only_if_a_short_walk_is_asked_for() -> None:
    criteria = json.dumps("Exactly one trailhead.\nA trail under 10 km if a short one is asked for.")
    assert hear(f"Criteria: {criteria}\nRequest: a walk").max_km is None
    assert hear(f"Criteria: {criteria}\nRequest: a short walk").max_km == 10
    assert hear(f"Criteria: {criteria}\nRequest: under 8.5 km").max_km == 8.5
    assert hear("under 8 km", "at most 6 km please").max_km == 6


def test_the_window_for_a_start_comes_from_criteria_or_an_objection() -> None:
    assert hear(FIRST).starts == ["08:00", "07:00", "09:00", "10:00"]
    assert hear("A start between 11:00 and 13:00 with rain under 20 %.").starts == ["11:00", "12:00", "13:00"]
    assert hear("A start between 11:00 and 13:00 with rain under 20 %.").rain == 20
    objection = "The start has to lie within what the criteria allow, 09:00 to 10:00: not 08:00."
    assert hear(FIRST, objection).starts == ["09:00", "10:00"]
    assert hear("A start between 09:15 and 09:45.").starts == ["09:15"]


@pytest.mark.parametrize(
    ("comment", "starts"),
    [
        ("Please start at 8:30.", ["08:30"]),
        ("Let us leave around 9", ["09:00"]),
        ("We go 6 km", ["08:00", "07:00", "09:00", "10:00"]),
        ("start at 3", ["08:00", "07:00", "09:00", "10:00"]),
        ("That time has passed already; choose a later one.", ["09:00", "10:00"]),
    ],
)
def test_a_comment_moves_the_start(comment: str, starts: list[str]) -> None:
    assert hear(FIRST, comment).starts == starts


def test_later_than_the_last_start_leaves_the_window() -> None:
    assert hear(FIRST, "Later please.", planned="10:00").starts == ["11:00"]


def test_it_tells_answers_from_complaints_that_nothing_could_be_read() -> None:
    first, unread, both = hear(FIRST), hear(FIRST, "It could not be read."), hear(FIRST, "It could not be read.", "ok")
    assert (first.heard, first.unread, first.answered) == (False, False, False)
    assert (unread.heard, unread.unread, unread.answered) == (False, True, True)
    assert (both.heard, both.unread, both.answered) == (True, True, True)


def test_another_place_and_more_things_to_carry_are_heard() -> None:
    wishes = hear(FIRST, "Another one, and bring a map, and bring some sunscreen")
    assert wishes.refused == {"fern-hollow"}
    assert wishes.extras == ["map", "sunscreen"]


def test_the_day_is_the_first_that_is_one() -> None:
    assert day_of("Date: 2026-13-45\nDate: 2026-12-05\nDate: 2027-01-01") == date(2026, 12, 5)
    assert day_of("on 2026-12-06") == date(2026, 12, 6)
    assert day_of("some day") is None


def test_the_plan_is_the_last_that_is_one() -> None:
    text = 'PLAN {"trailhead": "a", "start": "08:00"} PLAN {"trailhead": "<id>", "start": "HH:MM"} PLAN {broken}'
    assert last_plan(text) == {"trailhead": "a", "start": "08:00"}
    assert last_plan("none") is None
