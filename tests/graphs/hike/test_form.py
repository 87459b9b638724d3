"""Tests how a filled-in form becomes the input of a run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from graphs.flow import FormError
from graphs.hike.form import FORM, LONGEST_CRITERIA, LONGEST_REQUEST, start
from graphs.hike.rules import DEFAULT_CRITERIA
from tests.graphs.hike.stage import MONDAY


def errors_of(now: datetime = MONDAY, **form: JsonValue) -> dict[str, str]:
    with pytest.raises(FormError) as refused:
        start(form, now)
    return refused.value.errors


def test_a_request_alone_is_enough() -> None:
    assert start({"request": " Saturday\x00, short "}, MONDAY) == {
        "request": "Saturday, short",
        "asked_day": "",
        "criteria": DEFAULT_CRITERIA,
    }


def test_day_and_criteria_are_taken_over() -> None:
    form: dict[str, JsonValue] = {"request": "a hike", "date": "2026-12-06", "criteria": "Quiet."}
    assert start(form, MONDAY) == {"request": "a hike", "asked_day": "2026-12-06", "criteria": "Quiet."}


@pytest.mark.parametrize("request_", ["", "  ", "\x00", None])
def test_an_empty_request_is_refused(request_: str | None) -> None:
    assert errors_of(request=request_) == {"request": "Say what kind of hike you want, such as: Saturday, under 10 km."}


def test_a_request_of_the_longest_length_passes_and_one_more_does_not() -> None:
    assert len(start({"request": "x" * LONGEST_REQUEST}, MONDAY)["request"]) == 3000
    assert errors_of(request="x" * (LONGEST_REQUEST + 1)) == {
        "request": "This has 3001 characters; shorten it to 3000."
    }


def test_criteria_that_are_too_long_are_refused_along_with_the_rest() -> None:
    refused = errors_of(request="", criteria="x" * (LONGEST_CRITERIA + 1), date="2025-01-01")
    assert set(refused) == {"request", "criteria", "date"}


@pytest.mark.parametrize(
    ("date", "why"),
    [
        ("2026-12-17", "Thursday 17 December 2026 is 17 days ahead, and forecasts reach 15 days"),
        ("2026-11-28", "Saturday 28 November 2026 is past; choose a day from today"),
        ("2026-02-30", "There is no 2026-02-30"),
        ("soon", "Write the day like 2026-12-05"),
        ("5/12", "Write the day like 2026-12-05"),
    ],
)
def test_a_day_that_cannot_be_planned_is_refused_at_its_field(date: str, why: str) -> None:
    assert why in errors_of(request="a hike", date=date)["date"]


def test_a_day_in_the_request_is_checked_too() -> None:
    assert "forecasts reach 15 days" in errors_of(request="24 December, please")["request"]
    assert "more than one day" in errors_of(request="Saturday or Sunday")["request"]


def test_the_day_field_wins_over_the_request() -> None:
    assert start({"request": "Saturday or Sunday", "date": "2026-12-06"}, MONDAY)["asked_day"] == "2026-12-06"


def test_a_day_that_may_still_be_today_somewhere_passes() -> None:
    midnight = datetime(2026, 12, 1, 0, 30, tzinfo=UTC)
    assert start({"request": "a hike", "date": "2026-11-30"}, midnight)["asked_day"] == "2026-11-30"


def test_the_form_shows_the_usual_criteria_to_change() -> None:
    assert FORM["criteria"].value == DEFAULT_CRITERIA
    assert [name for name, field in FORM.items() if field.required] == ["request"]
