"""Tests what code checks of a hike."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.hike.rules import (
    DEFAULT_CRITERIA,
    Limits,
    Plan,
    clean,
    content_problem,
    hours_that_matter,
    hours_walked,
    plain_text,
    problems_of,
    read_limits,
    read_plan,
    start_of,
    text_problem,
    walking_hours,
    with_comment,
)
from tests.graphs.hike.stage import FERN, MONDAY, RIDGE, SATURDAY, place, weather

PLAN = Plan(trailhead="fern-hollow", start="08:00", bring="water")


def problems(plan: Plan = PLAN, limits: Limits | None = None, now: datetime = MONDAY, **rain: int | None) -> list[str]:
    forecasts = {"fern-hollow": weather("fern-hollow", {int(hour[1:]): chance for hour, chance in rain.items()})}
    usual = read_limits(DEFAULT_CRITERIA, "") if limits is None else limits
    return problems_of(plan, SATURDAY, usual, [FERN, RIDGE, place("secret-spot", None, None)], forecasts, now)


def test_the_usual_criteria_are_read_as_what_code_checks() -> None:
    assert read_limits(DEFAULT_CRITERIA, "a nice hike") == Limits(
        earliest="07:00", latest="10:00", rain_under=30, km=None, text_under=300
    )


@pytest.mark.parametrize(
    ("request_", "km", "included"),
    [
        ("a short hike", 10, False),
        ("shorter than last time", 10, False),
        ("under 8 km", 8, False),
        ("at most 6,5 km", 6.5, True),
        ("up to 12 kilometres", 12, True),
        ("max 9 km", 9, True),
        ("short, under 8 km", 8, False),
        ("under 12 km but short", 10, False),
        ("not under 8 km", None, False),
        ("at least 8 km", None, False),
        ("in shorts", None, False),
    ],
)
def test_the_length_a_request_asks_for_is_checked(request_: str, km: float | None, included: bool) -> None:
    limits = read_limits(DEFAULT_CRITERIA, request_)
    assert (limits.km, limits.km_included) == (km, included)


@pytest.mark.parametrize(
    ("criteria", "limits"),
    [
        ("Start between 9 and 11 am", Limits(earliest="09:00", latest="11:00")),
        ("Start between 1 and 3 pm", Limits(earliest="13:00", latest="15:00")),
        ("Start between 11 am and 1 pm", Limits(earliest="11:00", latest="13:00")),
        ("Between 7 and 10 km", Limits()),
        ("Between 7 and 10 people", Limits()),
        ("Between 25:00 and 27:00", Limits()),
        ("Between 10:00 and 7:00", Limits()),
        ("Rain less than 20 percent.", Limits(rain_under=20)),
        ("A text under 160 characters", Limits(text_under=160)),
        ("A text under 900 characters", Limits(text_under=300)),
        ("A trail up to 5 km", Limits(km=5, km_included=True)),
        ("Somewhere quiet", Limits()),
    ],
)
def test_other_criteria_replace_the_usual_ones(criteria: str, limits: Limits) -> None:
    assert read_limits(criteria, "a hike") == limits


@pytest.mark.parametrize(
    ("comment", "changes"),
    [
        ("Start at 9:30, please", {"earliest": "09:30", "latest": "09:30"}),
        ("starting at 2 pm", {"earliest": "14:00", "latest": "14:00"}),
        ("between 9 and 11", {"earliest": "09:00", "latest": "11:00"}),
        ("up to 12 km is fine", {"km": 12.0, "km_included": True}),
        ("don't start at 9", {}),
        ("not start at 9", {}),
        ("start at 3 km", {}),
        ("somewhere else", {}),
    ],
)
def test_a_comment_moves_the_limits_it_names(comment: str, changes: dict[str, object]) -> None:
    usual = read_limits(DEFAULT_CRITERIA, "short")
    assert with_comment(usual, comment) == usual.model_copy(update=changes)


def test_a_plan_is_read_from_its_line_wherever_it_stands() -> None:
    line = 'PLAN {"trailhead": "fern-hollow", "start": "08:00", "bring": "water"}'
    for text in (line, f"Why not.\n\n{line}\n", f"**{line}**", f"`{line}`", f"{line}\nEnjoy!", f"{line}\n{line}"):
        assert read_plan(text) == (PLAN, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plan {}",
        "PLAN",
        'PLAN {"trailhead": "a", "start": "08:00", "bring": 3}',
        'PLAN {"trailhead": ["a", "b"], "start": "08:00", "bring": "x"}',
        'PLAN {"trailhead": "a", "start": "8:00", "bring": "x"}',
        'PLAN {"trailhead": "a", "start": "24:00", "bring": "x"}',
        'PLAN {"trailhead": "a", "start": "08:00", "bring": "x", "cost": 0}',
        'PLAN {"trailhead": "a", "start": "08:00", "bring": "\\u0000"}',
    ],
)
def test_anything_else_is_no_plan_and_says_why(text: str) -> None:
    plan, problem = read_plan(text)
    assert plan is None
    assert problem


def test_a_good_plan_has_no_problems() -> None:
    assert problems() == []


@pytest.mark.parametrize(("start", "fine"), [("06:59", False), ("07:00", True), ("10:00", True), ("10:01", False)])
def test_the_window_for_the_start_includes_its_ends(start: str, fine: bool) -> None:
    assert (problems(PLAN.model_copy(update={"start": start})) == []) is fine


def test_every_hour_the_walk_touches_is_looked_at() -> None:
    assert hours_walked(PLAN, FERN) == ["09:00", "10:00"]
    assert hours_walked(PLAN.model_copy(update={"start": "08:30"}), FERN) == ["09:00", "10:00", "11:00"]
    assert hours_walked(PLAN, RIDGE) == ["09:00", "10:00", "11:00"]


@pytest.mark.parametrize(("km", "hours"), [(0.5, 1), (4.0, 1), (4.1, 2), (8.0, 2), (11.0, 3), (None, 3)])
def test_a_walk_takes_an_hour_for_four_kilometres_rounded_up(km: float | None, hours: int) -> None:
    assert walking_hours(place("a", km)) == hours


@pytest.mark.parametrize(("chance", "fine"), [(0, True), (29, True), (30, False), (100, False), (None, False)])
def test_rain_has_to_be_known_and_under_the_limit(chance: int | None, fine: bool) -> None:
    assert (problems(h9=chance) == []) is fine
    assert (problems(h10=chance) == []) is fine
    assert problems(h8=chance, h11=chance) == []


def test_hours_beyond_the_forecast_are_unknown_which_is_not_dry() -> None:
    late = Plan(trailhead="fern-hollow", start="17:30", bring="lamp")
    (problem,) = problems(late, Limits(rain_under=30))
    assert "unknown until 19:00" in problem


def test_without_a_limit_on_rain_the_weather_still_has_to_be_looked_up() -> None:
    assert problems(limits=Limits(), h9=100) == []
    (problem,) = problems(Plan(trailhead="lantern-ridge", start="08:00", bring="water"), Limits())
    assert problem == "The weather at Lantern Ridge was not looked up; call forecast for lantern-ridge."


def test_a_start_that_has_passed_is_refused() -> None:
    start = start_of(PLAN, SATURDAY, FERN)
    assert start == datetime(2026, 12, 5, 16, 0, tzinfo=UTC)
    forecasts = {"fern-hollow": weather("fern-hollow", {}, fetched=start)}
    limits = read_limits(DEFAULT_CRITERIA, "")
    before = start - timedelta(minutes=1)
    assert problems_of(PLAN, SATURDAY, limits, [FERN], forecasts, before) == []
    assert problems_of(PLAN, SATURDAY, limits, [FERN], forecasts, start) == [
        "That time has passed already; choose a later one."
    ]


@pytest.mark.parametrize(
    ("limits", "fine"),
    [
        (Limits(km=7.4), False),
        (Limits(km=7.4, km_included=True), True),
        (Limits(km=7.5), True),
        (Limits(drive_minutes=24), False),
        (Limits(drive_minutes=25), True),
    ],
)
def test_length_and_drive_are_checked_against_the_list(limits: Limits, fine: bool) -> None:
    assert (problems(limits=limits) == []) is fine


def test_an_unknown_length_or_drive_meets_no_limit() -> None:
    plan = Plan(trailhead="secret-spot", start="08:00", bring="water")
    length, drive, _ = problems(plan, Limits(km=10, drive_minutes=60))
    assert length == "The length of Secret Spot is not known, and the trail must be under 10 km; choose another."
    assert drive == "How far away Secret Spot is, is not known; choose a nearer trailhead."


def test_the_hours_shown_reach_from_the_first_start_to_the_last_end() -> None:
    assert hours_that_matter(FERN, read_limits(DEFAULT_CRITERIA, "")) == ("07:00", "12:00")
    assert hours_that_matter(RIDGE, Limits(earliest="09:00", latest="09:30")) == ("09:00", "13:00")
    assert hours_that_matter(FERN, Limits()) == ("06:00", "14:00")


@given(st.text())
def test_cleaned_text_holds_no_control_characters(text: str) -> None:
    cleaned = clean(text)
    assert {unicodedata.category(c) for c in cleaned if c not in "\n\u200d"}.isdisjoint({"Cc", "Cf", "Cs"})
    assert clean(cleaned) == cleaned


def test_cleaning_keeps_letters_emoji_and_line_breaks() -> None:
    assert (
        clean(" a\r\nb\tc\x00\x1b\u202e\ud800 \U0001f468\u200d\U0001f469 é ") == "a\nb c \U0001f468\u200d\U0001f469 é"
    )


@pytest.mark.parametrize("text", ["x", "x" * 299, "two\nlines", "a < b & c > d", "Grüße", "mail me at a@b.example"])
def test_texts_that_can_go_out(text: str) -> None:
    assert text_problem(text, Limits()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        None,
        7,
        "x" * 300,
        "bell\x07",
        "half \ud83d",
        "gnp.\u202eexe",
        "<!channel> hi",
        "ask <@U0BEN>",
        "<#C0HIKES01|x>",
    ],
)
def test_texts_that_cannot_go_out_say_why(text: object) -> None:
    assert text_problem(text, Limits()).endswith(".")


def test_the_limit_on_the_text_can_be_tighter() -> None:
    assert text_problem("x" * 160, Limits(text_under=160)) == "The text has 160 characters; it must stay under 160."


@pytest.mark.parametrize("time", ["08:00", "8:00", "8.00", "8 am", "8:00am"])
def test_a_time_may_be_written_in_several_ways(time: str) -> None:
    assert content_problem(f"Fern Hollow, {time}, water", PLAN, FERN, [FERN, RIDGE]) == ""


@pytest.mark.parametrize("time", ["18:00", "08:000", "108:00", "9:00"])
def test_another_time_is_not_the_start(time: str) -> None:
    assert "must name the time" in content_problem(f"Fern Hollow, {time}, water", PLAN, FERN, [FERN])


def test_a_trailhead_whose_name_holds_another_ones_is_one_trailhead() -> None:
    north = place("fern-hollow-north", 5.0)
    assert content_problem("Fern Hollow North, 08:00, water", PLAN, north, [FERN, north]) == ""


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=400), st.integers(100, 300))
def test_a_text_made_from_the_plan_always_fits(bring: str, limit: int) -> None:
    made = plain_text(PLAN.model_copy(update={"bring": bring}), SATURDAY, FERN, limit)
    assert len(made) < limit
    assert made.startswith("Fern Hollow, Saturday 5 December 2026, start 08:00.")
