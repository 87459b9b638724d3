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

_KM = re.compile(
    r"(?:under|below|less than|at most|max(?:imum)?(?: of)?|up to|no more than|shorter than|within|<)\s*"
    r"(\d+(?:\.\d+)?)\s*(?:km|kilomet)",
    re.IGNORECASE,
)
_DRIVE = re.compile(
    r"driv\D{0,80}?(?P<after>\d+(?:\.\d+)?)\s*(?P<unit>h\b|hours?)?"
    r"|(?P<before>\d+)\s*(?P<unit_before>min\w*|h\b|hours?)[^.\n]{0,25}driv",
    re.IGNORECASE,
)
_BARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:m|min\w*)?\s*\.?\s*", re.IGNORECASE)
_START = re.compile(
    r"(?:start|leave|set off|begin|go)\b[^.\n\d]{0,20}(\d{1,2})(?:[:.](\d{2}))?(?!\d|\s*(?:km|min|%))", re.IGNORECASE
)
_BRING = re.compile(r"\bbring(?:ing)?\s+(?:an?\s+|some\s+|the\s+)?([a-z][a-z ]{1,30})", re.IGNORECASE)
_ELSEWHERE = re.compile(r"\b(another|different|elsewhere|somewhere else|not there|not again)\b", re.IGNORECASE)
_UNREADABLE = re.compile(r"could not be read|unreadable|cannot be read|not readable", re.IGNORECASE)
_DATE = re.compile(r"\bDate:\s*(\d{4}-\d{2}-\d{2})", re.IGNORECASE)
_ANY_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")
_PLAN = re.compile(r"PLAN\s*(\{[^{}]*\})")
_PERSUASIVE = {"an hour": 60.0, "half an hour": 30.0, "hour and a half": 90.0, "an hour and a half": 90.0}


@dataclass(frozen=True, slots=True)
class Wishes:
    """Limits and remarks; `words` are all of them, `later` those after the request; `heard`: some could be read."""

    day: date | None
    max_km: float | None
    max_drive: float | None
    start: str | None
    extras: tuple[str, ...]
    refused: frozenset[str]
    words: str
    later: str
    heard: bool
    answered: bool


def read_wishes(ask: Ask) -> Wishes:
    """The wishes in all user turns; later words win."""
    texts = [turn.text for turn in ask.turns if turn.role == "user" and turn.text.strip()]
    later = [text for text in texts[1:] if not _UNREADABLE.search(text)]
    words = "\n".join(later)
    return Wishes(
        day=day_of(ask.texts),
        max_km=_last(float(m[1]) for m in _KM.finditer("\n".join([*texts[:1], words]))),
        max_drive=_drive(texts[:1], later),
        start=_last(f"{int(m[1]):02d}:{m[2] or '00'}" for m in _START.finditer(words) if 4 <= int(m[1]) <= 18),
        extras=tuple(dict.fromkeys(m[1].strip().lower() for m in _BRING.finditer(words))),
        refused=frozenset(_refused(ask.turns)),
        words="\n".join(texts),
        later=words,
        heard=bool(later),
        answered=len(texts) > 1,
    )


def day_of(text: str) -> date | None:
    """The day the text is about: the last `Date: YYYY-MM-DD`, otherwise the last date in it at all."""
    for found in reversed(_DATE.findall(text) or _ANY_DATE.findall(text)):
        try:
            return date.fromisoformat(found)
        except ValueError:
            continue
    return None


def last_plan(text: str) -> Mapping[str, str] | None:
    """The last `PLAN {...}` in the text that names a trailhead and a start, be its quotes escaped or not."""
    for found in reversed(_PLAN.findall(text.replace('\\"', '"'))):
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
        limits.extend(_minutes(m) for m in _DRIVE.finditer(text))
        if "driv" in text.lower():
            limits.extend(minutes for phrase, minutes in _PERSUASIVE.items() if phrase in text.lower())
    limits.extend(float(m[1]) for m in map(_BARE.fullmatch, later) if m)
    return _last(limits)


def _minutes(found: re.Match[str]) -> float:
    number, unit = found["after"] or found["before"], found["unit"] or found["unit_before"] or ""
    return float(number) * (60 if unit.lower().startswith("h") else 1)


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
