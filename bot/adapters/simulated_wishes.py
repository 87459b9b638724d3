"""What people ask of a hike, read from their words: the ears of the simulated hike planner."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from bot.adapters.simulated_rules import Ask, Turn

T = TypeVar("T")

DRY = 30.0
"""Percent: the chance of rain a dry hour stays under, unless somebody says otherwise."""

_KM = re.compile(
    r"(?:under|below|less than|at most|max(?:imum)?(?: of)?|up to|no more than|shorter than|within|<)\s*"
    r"(\d+(?:\.\d+)?)\s*(?:km|kilomet)",
    re.IGNORECASE,
)
# A number of minutes or hours: not a length, a time of day, a date or a head count.
_AMOUNT = r"(\d++(?:\.\d+)?+)(?!\s*(?:km|kilo|%|:|people|persons|of us)|-\d)\s*(h\b|hours?)?"
_DRIVE = re.compile(rf"driv\D{{0,80}}?{_AMOUNT}", re.IGNORECASE)
_DRIVE_AFTER = re.compile(r"(\d+(?:\.\d+)?)\s*(min\w*|h\b|hours?)[^.\n]{0,25}driv", re.IGNORECASE)
_WINDOW = re.compile(
    r"(?:between|within[^.\d]*,)\s*(\d{1,2})(?::(\d{2}))?\s*(?:am)?\s*(?:and|to)\s*(\d{1,2})(?::(\d{2}))?",
    re.IGNORECASE,
)
_RAIN = re.compile(r"(?:under|below|less than)\s+(\d{1,3})\s*(?:%|percent)", re.IGNORECASE)
_BARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:m|min\w*)?\s*\.?\s*", re.IGNORECASE)
_START = re.compile(
    r"(?:start|leave|set off|begin|go)\b(?! between)[^.\n\d]{0,20}(\d{1,2})(?:[:.](\d{2}))?(?!\d|\s*(?:km|min|%))",
    re.IGNORECASE,
)
_BRING = re.compile(r"\bbring(?:ing)?\s+(?:an?\s+|some\s+|the\s+)?([a-z][a-z ]{1,30})", re.IGNORECASE)
_ELSEWHERE = re.compile(r"\b(another|different|elsewhere|somewhere else|not there|not again)\b", re.IGNORECASE)
_UNREADABLE = re.compile(r"could not be read|unreadable|cannot be read|said nothing", re.IGNORECASE)
_CONDITIONAL = re.compile(r"\b(if|when)\b", re.IGNORECASE)
_DATE = re.compile(r"\bDate:\s*(\d{4}-\d{2}-\d{2})", re.IGNORECASE)
_ANY_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")
_PLAN = re.compile(r"PLAN\s*(\{[^{}]*\})")
_SPELLED = {"an hour": 60.0, "half an hour": 30.0, "hour and a half": 90.0, "an hour and a half": 90.0}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a plan has to keep to.

    `starts` are the starts worth looking at, the best first; `rain` is a chance in percent to stay under. `words` are
    everybody's, `later` those after the request. `heard`: the last plan was answered in words that could be read;
    `unread`: somebody could not read a verdict; `answered`: there was any answer at all.
    """

    day: date | None
    max_km: float | None
    max_drive: float | None
    rain: float
    starts: Sequence[str]
    extras: Sequence[str]
    refused: frozenset[str]
    words: str
    later: str
    heard: bool
    unread: bool
    answered: bool


def read_wishes(ask: Ask) -> Wishes:
    """The wishes in all user turns; later words win."""
    texts = [unquoted(turn.text) for turn in ask.turns if turn.role == "user" and turn.text.strip()]
    later = [text for text in texts[1:] if not _UNREADABLE.search(text)]
    words = "\n".join([*(_unconditional(text) for text in texts[:1]), *later])
    return Wishes(
        day=day_of(ask.texts),
        max_km=_last(float(m[1]) for m in _KM.finditer(words)),
        max_drive=_drive(texts[:1], later),
        rain=_last(float(m[1]) for m in _RAIN.finditer(words)) or DRY,
        starts=_starts(words, later, [plan["start"] for turn in ask.turns if (plan := last_plan(turn.text))]),
        extras=list(dict.fromkeys(m[1].strip().lower() for m in _BRING.finditer("\n".join(later)))),
        refused=frozenset(_refused(ask.turns)),
        words="\n".join(texts),
        later="\n".join(later),
        heard=bool(later),
        unread=len(texts) > 1 + len(later),
        answered=len(texts) > 1,
    )


def unquoted(text: str) -> str:
    """Text that may have been put into JSON, with its lines and quotes as they were."""
    return text.replace("\\n", "\n").replace('\\"', '"')


def day_of(text: str) -> date | None:
    """The day the text is about: the first `Date: YYYY-MM-DD`, otherwise the first date in it at all."""
    for found in _DATE.findall(text) or _ANY_DATE.findall(text):
        try:
            return date.fromisoformat(found)
        except ValueError:
            continue
    return None


def _unconditional(text: str) -> str:
    """The text without lines such as "under 10 km if a short one is asked for", unless one is asked for."""
    lines = [line for line in text.splitlines() if not _CONDITIONAL.search(line)]
    return text if "short" in "\n".join(lines).lower() else "\n".join(lines)


def _starts(words: str, later: Sequence[str], planned: Sequence[str]) -> Sequence[str]:
    """A start somebody named, otherwise the whole hours of the window asked for, 08:00 first."""
    exact = _last(f"{int(m[1]):02d}:{m[2] or '00'}" for text in later[-1:] for m in _START.finditer(text))
    if exact and "04:00" <= exact <= "18:59":
        return [exact]
    windows = [(f"{int(a):02d}:{b or '00'}", f"{int(c):02d}:{d or '00'}") for a, b, c, d in _WINDOW.findall(words)]
    first, last = next((w for w in reversed(windows) if "04:00" <= w[0] <= w[1] <= "18:59"), ("07:00", "10:00"))
    hours = [f"{hour:02d}:00" for hour in range(4, 19) if first <= f"{hour:02d}:00" <= last] or [first]
    if planned and later and "later" in later[-1].lower():
        hours = [hour for hour in hours if hour > planned[-1]] or [f"{min(int(planned[-1][:2]) + 1, 18):02d}:00"]
    return sorted(hours, key=lambda hour: (hour != "08:00", hour))


def last_plan(text: str) -> Mapping[str, str] | None:
    """The last `PLAN {...}` in the text that names a trailhead and a start, be its quotes escaped or not."""
    for found in reversed(_PLAN.findall(unquoted(text))):
        try:
            plan: Any = json.loads(found)
        except ValueError:
            continue
        if re.fullmatch(r"\d{2}:\d{2}", str(plan.get("start"))) and plan.get("trailhead"):
            return {key: str(value) for key, value in plan.items()}
    return None


def _drive(first: Sequence[str], later: Sequence[str]) -> float | None:
    """Minutes of driving, the latest word on it; a bare number counts as an answer."""
    limits: list[float] = []
    for text in [*first, *later]:
        amounts = [*_DRIVE.findall(text), *_DRIVE_AFTER.findall(text)]
        limits.extend(float(number) * (60 if unit.lower().startswith("h") else 1) for number, unit in amounts)
        if "driv" in text.lower():
            limits.extend(minutes for phrase, minutes in _SPELLED.items() if phrase in text.lower())
    limits.extend(float(m[1]) for m in map(_BARE.fullmatch, later) if m)
    return _last(limits)


def _refused(turns: Sequence[Turn]) -> Iterable[str]:
    """The trailheads planned before somebody asked for another one."""
    planned: list[str] = []
    for at, turn in enumerate(turns):
        if turn.role == "assistant" and (plan := last_plan(turn.text)):
            planned.append(plan["trailhead"])
        elif at > 0 and _ELSEWHERE.search(turn.text):
            yield from planned


def _last(items: Iterable[T]) -> T | None:
    found = list(items)
    return found[-1] if found else None
