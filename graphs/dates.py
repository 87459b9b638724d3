"""Turns the words people use for a day ("this Saturday", "5 December") into a date, once."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta

HORIZON_DAYS = 15
"""How many days ahead a forecast reaches."""

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
SATURDAY = 5

_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
# "May" and "may" differ: one is a month.
_MONTH = "(?:" + "|".join("(?-i:May)" if m == "may" else f"{m[:3]}t?(?:{m[3:]})?" for m in _MONTHS) + ")"
_DAY = r"(?<![\d.:])\d{1,2}(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:\.?,?\s+\d{4})?\b"
_NAMED = re.compile(
    rf"{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}|\b{_MONTH}\.?\s+{_DAY}{_YEAR}(?!\s*(?:km|min|h\b|%|:|am\b|pm\b))",
    re.IGNORECASE,
)
_NEAR = {"today": 0, "tomorrow": 1, "day after tomorrow": 2}
_NEAR_WORDS = re.compile(r"\b(day after tomorrow|tomorrow|today)\b", re.IGNORECASE)
_WEEKDAY = re.compile(
    rf"(?:\b(?P<which>this|next|last|coming)\s+)?\b(?P<name>{'|'.join(_WEEKDAYS)}|weekend)\b"
    r"|(?:^|\b(?P<before>on|this|next|last|coming)\s+)(?P<short>mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b(?!-)",
    re.IGNORECASE,
)


class DateError(ValueError):
    """The words name no day that can be planned; the message says what to write instead."""


def find_day(text: str, today: date) -> date | None:
    """The one day `text` speaks of, or None. Raises `DateError` if it names several, or one that does not exist.

    A weekday means the next one after today; "this Saturday" may be today, "next Saturday" is that of the week after
    (weeks begin on Monday). A date without a year is the nearest one.
    """
    weekdays = [(word, which) for word, which in _weekdays(_NAMED.sub(" ", text)) if which != "last"]
    if any(word != "weekend" for word, _ in weekdays):
        weekdays = [(word, which) for word, which in weekdays if word != "weekend"]
    exact = set(_exact_days(text, today))
    days = exact or {_next(word, which, today) for word, which in weekdays}
    if len(days) > 1:
        raise DateError(f"It names more than one day ({_several(days)}); give the one to plan as the date.")
    day = next(iter(days), None)
    if exact and day:
        _agree(day, [word for word, _ in weekdays])
    return day


def _agree(day: date, weekdays: list[str]) -> None:
    for word in weekdays:
        if word not in ("weekend", _WEEKDAYS[day.weekday()]):
            raise DateError(f"{said(day)} is no {word.capitalize()}; give the day to plan as the date.")


def coming_saturday(today: date) -> date:
    """The next Saturday after today."""
    return _next("saturday", "", today)


def check_horizon(day: date, today: date) -> None:
    """Raises `DateError` for a day that is past or beyond what forecasts reach."""
    last = today + timedelta(days=HORIZON_DAYS)
    if day < today:
        raise DateError(f"{said(day)} is past; choose a day from today to {said(last)}.")
    if day > last:
        raise DateError(
            f"{said(day)} is {(day - today).days} days ahead, and forecasts reach {HORIZON_DAYS} days: "
            f"choose a day until {said(last)}."
        )


def said(day: date) -> str:
    """A date for a sentence, such as "Saturday 5 December 2026"."""
    return f"{day:%A} {day.day} {day:%B %Y}"


def said_briefly(day: date | datetime) -> str:
    """A date for a label, such as "Sat 5 Dec"."""
    return f"{day:%a} {day.day} {day:%b}"


def _exact_days(text: str, today: date) -> Iterator[date]:
    for found in _ISO.finditer(text):
        yield _date(int(found[1]), int(found[2]), int(found[3]), found[0])
    for found in _NAMED.finditer(text):
        yield _named(found[0], today)
    for found in _NEAR_WORDS.finditer(text):
        yield today + timedelta(days=_NEAR[found[1].lower()])


def _date(year: int, month: int, day: int, words: str) -> date:
    try:
        return date(year, month, day)
    except ValueError as error:
        raise DateError(f"There is no {words}; write a date like 2026-12-05 or 5 December.") from error


def _named(words: str, today: date) -> date:
    """A day and a month, of the year that brings it nearest to today if none is given."""
    numbers = [int(number) for number in re.findall(r"\d+", words)]
    name = next(word for word in re.findall(r"[a-z]{3,}", words.lower()))
    month = next(at for at, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))
    if len(numbers) > 1:
        return _date(numbers[1], month, numbers[0], words)
    years = [year for year in range(today.year - 1, today.year + 2) if _exists(year, month, numbers[0])]
    days = [date(year, month, numbers[0]) for year in years] or [_date(today.year, month, numbers[0], words)]
    return min(days, key=lambda day: abs(day - today))


def _exists(year: int, month: int, day: int) -> bool:
    return 1 <= day <= monthrange(year, month)[1]


def _weekdays(text: str) -> Iterator[tuple[str, str]]:
    """Weekday names (or "weekend") with the word in front that matters."""
    for found in _WEEKDAY.finditer(text):
        if found["name"]:
            yield found["name"].lower(), (found["which"] or "").lower()
        else:
            name = next(day for day in _WEEKDAYS if day.startswith(found["short"][:3].lower()))
            yield name, (found["before"] or "").lower()


def _next(word: str, which: str, today: date) -> date:
    wanted = SATURDAY if word == "weekend" else _WEEKDAYS.index(word)
    if which == "next":
        return today + timedelta(days=7 - today.weekday() + wanted)
    ahead = (wanted - today.weekday()) % 7
    return today + timedelta(days=ahead or (0 if which == "this" else 7))


def _several(days: set[date]) -> str:
    return ", ".join(said(day) for day in sorted(days))
