"""What people fill in to have a hike planned, and how it becomes the input of a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from graphs.dates import DateError, check_horizon, find_day
from graphs.flow import Field, FormError
from graphs.hike.rules import DEFAULT_CRITERIA, clean

LONGEST_REQUEST: Final = 3000
LONGEST_CRITERIA: Final = 1500
# It is never earlier or later anywhere; which day "today" is, is settled in the trailheads' time zone.
_ZONES: Final = (timedelta(0), timedelta(hours=-12), timedelta(hours=14))

FORM: Final[Mapping[str, Field]] = {
    "request": Field(
        label="What kind of hike?",
        max_length=LONGEST_REQUEST,
        hint="In your own words, such as: Saturday, short, not too far. With no day it is the coming Saturday.",
    ),
    "date": Field(label="Day", kind="date", required=False, hint="Instead of a day in the text above."),
    "criteria": Field(
        label="Criteria",
        value=DEFAULT_CRITERIA,
        max_length=LONGEST_CRITERIA,
        required=False,
        hint="What the plan is judged by, one a line. What is not written here is not asked of it.",
    ),
}


def start(form: Mapping[str, JsonValue], now: datetime) -> dict[str, str]:
    """The input of a run; `now` is aware. Raises `FormError` for a request that cannot be planned."""
    request, criteria, day = (clean(str(form.get(name) or "")) for name in ("request", "criteria", "date"))
    errors = {
        "date" if day else "request": _day_error(day, now) if day else _day_error(request, now, needed=False),
        "criteria": _too_long(criteria, LONGEST_CRITERIA),
    }
    errors["request"] = _too_long(request, LONGEST_REQUEST) or errors.get("request", "")
    if not request:
        errors["request"] = "Say what kind of hike you want, such as: Saturday, under 10 km."
    if errors := {name: error for name, error in errors.items() if error}:
        raise FormError(errors)
    return {"request": request, "asked_day": day, "criteria": criteria or DEFAULT_CRITERIA}


def _too_long(text: str, limit: int) -> str:
    return f"This has {len(text)} characters; shorten it to {limit}." if len(text) > limit else ""


def _day_error(words: str, now: datetime, *, needed: bool = True) -> str:
    """Why the words name no day that can be planned anywhere on Earth, or ""."""
    errors = [_day_error_on(words, now + shift, needed) for shift in _ZONES]
    return errors[0] if all(errors) else ""


def _day_error_on(words: str, now: datetime, needed: bool) -> str:
    try:
        day = find_day(words, now.date())
        if day is not None:
            check_horizon(day, now.date())
    except DateError as error:
        return str(error)
    return "Write the day like 2026-12-05, 5 December or Saturday." if needed and day is None else ""
