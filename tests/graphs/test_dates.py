"""Tests how the words people use for a day become a date."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.dates import HORIZON_DAYS, DateError, check_horizon, coming_saturday, find_day, said

MONDAY = date(2026, 11, 30)
SATURDAY = date(2026, 12, 5)


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("a short hike", None),
        ("Saturday, under 10 km", SATURDAY),
        ("this Saturday", SATURDAY),
        ("next Saturday", date(2026, 12, 12)),
        ("next sat please", date(2026, 12, 12)),
        ("on sun", date(2026, 12, 6)),
        ("sit in the sun", None),
        ("like last Saturday", None),
        ("this weekend", SATURDAY),
        ("this weekend, Sunday if you can", date(2026, 12, 6)),
        ("Monday", date(2026, 12, 7)),
        ("this Monday", MONDAY),
        ("next Monday", date(2026, 12, 7)),
        ("today", MONDAY),
        ("Tomorrow", date(2026, 12, 1)),
        ("the day after tomorrow", date(2026, 12, 2)),
        ("2026-12-05", SATURDAY),
        ("5 December", SATURDAY),
        ("the 5th of December", SATURDAY),
        ("5. Dec. 2026, early", SATURDAY),
        ("December 5", SATURDAY),
        ("Dec 5th, 2026", SATURDAY),
        ("Saturday 5 December", SATURDAY),
        ("the weekend of 6 December", date(2026, 12, 6)),
        ("3 January", date(2027, 1, 3)),
        ("20 November", date(2026, 11, 20)),
        ("we may 5 people bring", None),
        ("5 may come", None),
        ("20 decent trails of 8 km from 8:30", None),
        ("march 12 km", None),
    ],
)
def test_words_name_a_day(words: str, day: date | None) -> None:
    assert find_day(words, MONDAY) == day


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Saturday or Sunday", "more than one day"),
        ("5 December or 6 December", "more than one day"),
        ("Saturday 6 December", "Sunday 6 December 2026 is no Saturday"),
        ("31 February", "There is no 31 February"),
        ("29 February", "There is no 29 February"),
        ("2026-13-01", "There is no 2026-13-01"),
    ],
)
def test_words_that_name_no_single_day_are_refused_with_a_reason(words: str, why: str) -> None:
    with pytest.raises(DateError, match=why):
        find_day(words, MONDAY)


def test_a_weekday_on_that_very_day_is_the_next_one_unless_it_says_this() -> None:
    assert find_day("Saturday", SATURDAY) == SATURDAY + timedelta(days=7)
    assert find_day("this Saturday", SATURDAY) == SATURDAY
    assert find_day("next Saturday", SATURDAY) == SATURDAY + timedelta(days=7)


def test_a_leap_day_is_found_in_a_leap_year() -> None:
    assert find_day("29 February", date(2028, 2, 20)) == date(2028, 2, 29)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.sampled_from(["", "this ", "next ", "coming "]))
def test_a_weekday_is_that_weekday_and_within_what_forecasts_reach(today: date, which: str) -> None:
    day = find_day(f"{which}Saturday", today)
    assert day is not None
    assert day.strftime("%A") == "Saturday"
    check_horizon(day, today)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(-150, 150))
def test_a_date_without_its_year_is_read_back(today: date, days: int) -> None:
    day = today + timedelta(days=days)
    assert find_day(f"{day.day} {day:%B}", today) == day
    assert find_day(said(day), today) == day
    assert find_day(day.isoformat(), today) == day


def test_the_coming_saturday_is_never_today() -> None:
    assert coming_saturday(MONDAY) == SATURDAY
    assert coming_saturday(SATURDAY) == SATURDAY + timedelta(days=7)


@pytest.mark.parametrize("ahead", [0, 1, HORIZON_DAYS])
def test_days_that_forecasts_reach_pass(ahead: int) -> None:
    day = MONDAY + timedelta(days=ahead)
    check_horizon(day, MONDAY)
    assert day <= MONDAY + timedelta(days=15)


def test_a_day_beyond_the_horizon_is_refused_naming_the_horizon() -> None:
    with pytest.raises(
        DateError, match=r"16 days ahead, and forecasts reach 15 days: .* until Tuesday 15 December 2026"
    ):
        check_horizon(MONDAY + timedelta(days=16), MONDAY)


def test_a_day_that_is_past_is_refused() -> None:
    with pytest.raises(
        DateError, match="Sunday 29 November 2026 is past; choose a day from today to Tuesday 15 December"
    ):
        check_horizon(MONDAY - timedelta(days=1), MONDAY)
