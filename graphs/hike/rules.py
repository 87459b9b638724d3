"""What code checks of a hike, whatever a model thinks of it: place, start, rain, length, and the text that goes out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from math import ceil
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from graphs.agent import problem_of
from graphs.dates import said
from graphs.engine import Value
from graphs.ports import Forecast, Hour, Trailhead

DEFAULT_CRITERIA: Final = """\
Exactly one trailhead from the club's list.
A start between 7:00 and 10:00 with a precipitation chance under 30 % for the whole walk.
A text under 300 characters with the trailhead, the time and what to bring.
A trail under 10 km if a short one is asked for."""

WALKING_KM_PER_HOUR = 4.0
HOURS_IF_LENGTH_UNKNOWN = 3
SMS_LIMIT = 300
FORECAST_KEEPS = timedelta(hours=6)

_UNDER = (
    r"(?<!not )(?P<word>under|below|less than|shorter than|at most|up to|no more than|max(?:imum)?(?: of)?|within)\s+"
)
_KM = re.compile(_UNDER + r"(?P<km>\d{1,3}(?:[.,]\d+)?)\s*(?:km|kilomet)", re.IGNORECASE)
_RAIN = re.compile(r"(?:under|below|less than)\s+(?P<percent>\d{1,3})\s*(?:%|percent)", re.IGNORECASE)
_CHARACTERS = re.compile(r"(?:under|below|less than)\s+(?P<count>\d{2,3})\s+characters", re.IGNORECASE)
_CLOCK = r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?"
_NO_TIME = r"(?!\d|\s*(?:km|kilo|miles?|%|percent|°|degrees|people|persons|of us|min|hours?\b|h\b))"
_BETWEEN = re.compile(rf"between\s+{_CLOCK}\s+and\s+{_CLOCK}{_NO_TIME}", re.IGNORECASE)
_START_AT = re.compile(rf"(?<!not )(?<!n't )\bstart(?:ing)?\s+at\s+{_CLOCK}{_NO_TIME}", re.IGNORECASE)
_SHORT = re.compile(r"\bshort(?:er|ish)?\b", re.IGNORECASE)
_INCLUSIVE = ("at most", "up to", "no more than", "within")
_PLAN = re.compile(r"^\W{0,3}PLAN\b:?\s*(\{.*\})\W{0,3}$", re.MULTILINE)
_MENTION = re.compile(r"<[!@#][^>]*>?")
_HIDDEN = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_HHMM = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")


class Limits(Value):
    """The part of the criteria that code can check; None: there is no such limit. Starts are "HH:MM", local."""

    earliest: str | None = None
    latest: str | None = None
    rain_under: int | None = None
    km: float | None = None
    km_included: bool = False
    drive_minutes: int | None = None
    text_under: int = SMS_LIMIT


class Plan(Value):
    """What the worker proposes: a trailhead's id, a local start "HH:MM", what to bring."""

    trailhead: str
    start: str
    bring: str


def read_limits(criteria: str, request: str) -> Limits:
    """The limits that the criteria state, and a length the request asks for.

    A line of the criteria with "if" or "when" holds only where the request asks for a short trail.
    """
    lines = criteria.splitlines()
    always = "\n".join(line for line in lines if not _is_conditional(line))
    sometimes = "\n".join(line for line in lines if _is_conditional(line)) if _SHORT.search(request) else ""
    limits = _with_length(_with_length(_with_length(Limits(), always), sometimes), request)
    rain, characters = _RAIN.search(always), _CHARACTERS.search(always)
    earliest, latest = _window(always) or (None, None)
    changes = {
        "earliest": earliest,
        "latest": latest,
        "rain_under": int(rain["percent"]) if rain else None,
        "text_under": min(SMS_LIMIT, int(characters["count"])) if characters else SMS_LIMIT,
    }
    return limits.model_copy(update=changes)


def with_comment(limits: Limits, comment: str) -> Limits:
    """The limits after an approver's comment: "start at 9:30", "between 9 and 11" and "under 6 km" move them."""
    limits = _with_length(limits.model_copy(update={"km": None}), comment) if _KM.search(comment) else limits
    exact = _START_AT.search(comment)
    start = _clock(*exact.groups()) if exact else None
    window = _window(comment) or ((start, start) if start else None)
    return limits.model_copy(update={"earliest": window[0], "latest": window[1]}) if window else limits


def _window(text: str) -> tuple[str, str] | None:
    """The first and last start that the text allows, if it says so."""
    found = _BETWEEN.search(text)
    if found is None:
        return None
    hour, minutes, half, last_hour, last_minutes, last_half = found.groups()
    first, last = _clock(hour, minutes, half or last_half), _clock(last_hour, last_minutes, last_half)
    return (first, last) if first and last and first <= last else None


def _is_conditional(line: str) -> bool:
    return re.search(r"\b(?:if|when)\b", line, re.IGNORECASE) is not None


def _with_length(limits: Limits, text: str) -> Limits:
    """The limits with the tightest length the text asks for, if that is tighter."""
    for found in _KM.finditer(text):
        km = float(found["km"].replace(",", "."))
        if limits.km is None or km < limits.km:
            included = found["word"].lower().startswith((*_INCLUSIVE, "max"))
            limits = limits.model_copy(update={"km": km, "km_included": included})
    return limits


def _clock(hours: str, minutes: str | None, half: str | None) -> str | None:
    hour = int(hours) % 12 + 12 * (half.lower() == "pm") if half else int(hours)
    text = f"{hour:02d}:{minutes or '00'}"
    return text if _HHMM.fullmatch(text) else None


def read_plan(text: str) -> tuple[Plan | None, str]:
    """The plan in a reply's PLAN line, and what is wrong with it ("" if nothing)."""
    lines = list(dict.fromkeys(_PLAN.findall(text)))
    if len(lines) != 1:
        found = "there is none" if not lines else f"there are {len(lines)}"
        return None, (
            "End with exactly one line PLAN, for exactly one trailhead, with JSON of the keys trailhead, start, bring; "
            f"{found}."
        )
    try:
        plan = Plan.model_validate_json(lines[0], strict=True)
    except ValidationError as error:
        return None, f"The PLAN line cannot be read: {problem_of(error)}."
    if not _HHMM.fullmatch(plan.start):
        return None, "In the PLAN line, start must be a local time such as 07:30."
    if not clean(plan.bring):
        return None, 'In the PLAN line, say in "bring" what people carry.'
    return plan.model_copy(update={"bring": clean(plan.bring)[:200]}), ""


def problems_of(
    plan: Plan,
    day: date,
    limits: Limits,
    trailheads: Sequence[Trailhead],
    forecasts: Mapping[str, Forecast],
    now: datetime,
) -> list[str]:
    """What the plan breaks, as sentences for the worker; empty if code has nothing against it."""
    trailhead = by_id(trailheads, plan.trailhead)
    if trailhead is None:
        return [f"{quoted_id(plan.trailhead)} is no trailhead of the club's list; choose one id from list_trailheads."]
    return [
        problem
        for problem in (
            _start_problem(plan, limits),
            _past_problem(plan, day, trailhead, now),
            _length_problem(trailhead, limits),
            _drive_problem(trailhead, limits),
            _rain_problem(plan, day, trailhead, forecasts.get(trailhead.id), limits, now),
        )
        if problem
    ]


def by_id(trailheads: Sequence[Trailhead], ident: str) -> Trailhead | None:
    """The trailhead with that id, or None."""
    return next((trailhead for trailhead in trailheads if trailhead.id == ident), None)


def quoted_id(ident: str) -> str:
    """An id that a model made up, short enough for a sentence."""
    return repr(ident[:60])


def start_of(plan: Plan, day: date, trailhead: Trailhead) -> datetime:
    """When the hike starts, in the trailhead's time zone."""
    return datetime.combine(day, time.fromisoformat(plan.start), ZoneInfo(trailhead.time_zone))


def walking_hours(trailhead: Trailhead) -> int:
    """Whole hours the walk takes, at least one."""
    if trailhead.length_km is None:
        return HOURS_IF_LENGTH_UNKNOWN
    return max(1, ceil(trailhead.length_km / WALKING_KM_PER_HOUR))


def hours_walked(plan: Plan, trailhead: Trailhead) -> list[str]:
    """The ends "HH:00" of every hour that the walk touches; a walk from 08:30 for 2 h touches three."""
    hour, minute = int(plan.start[:2]), int(plan.start[3:])
    return [f"{hour + n:02d}:00" for n in range(1, walking_hours(trailhead) + (minute > 0) + 1)]


def rain_on_the_way(plan: Plan, trailhead: Trailhead, forecast: Forecast) -> list[Hour]:
    """The forecast for those hours; one that the forecast does not hold is unknown."""
    known = {hour.until: hour for hour in forecast.hours}
    unknown = Hour(until="", temperature=None, precipitation_probability=None, sky="")
    return [known.get(until, unknown.model_copy(update={"until": until})) for until in hours_walked(plan, trailhead)]


def hours_that_matter(trailhead: Trailhead, limits: Limits) -> tuple[str, str]:
    """The first and the last hour end that a plan within the limits can need."""
    latest = time.fromisoformat(limits.latest or "12:00")
    end = latest.hour + (latest.minute > 0) + walking_hours(trailhead)
    return limits.earliest or "06:00", f"{min(end, 23):02d}:00"


def _start_problem(plan: Plan, limits: Limits) -> str:
    if limits.earliest and limits.latest and not limits.earliest <= plan.start <= limits.latest:
        # The time planned comes last, so that it is not taken for the time to plan.
        window = f"{limits.earliest} to {limits.latest}"
        return f"The start has to lie within what the criteria allow, {window}: not {plan.start}."
    return ""


def _past_problem(plan: Plan, day: date, trailhead: Trailhead, now: datetime) -> str:
    return "That time has passed already; choose a later one." if start_of(plan, day, trailhead) <= now else ""


def _length_problem(trailhead: Trailhead, limits: Limits) -> str:
    if limits.km is None:
        return ""
    wanted = f"{'at most' if limits.km_included else 'under'} {limits.km:g} km"
    if trailhead.length_km is None:
        return f"The length of {trailhead.name} is not known, and the trail must be {wanted}; choose another."
    fits = trailhead.length_km < limits.km or (limits.km_included and trailhead.length_km == limits.km)
    return "" if fits else f"{trailhead.name} has {trailhead.length_km:g} km, and the trail must be {wanted}."


def _drive_problem(trailhead: Trailhead, limits: Limits) -> str:
    if limits.drive_minutes is None:
        return ""
    if trailhead.drive_minutes is None:
        return f"How far away {trailhead.name} is, is not known; choose a nearer trailhead."
    return "" if trailhead.drive_minutes <= limits.drive_minutes else f"{trailhead.name} is too far for the requester."


def _rain_problem(
    plan: Plan, day: date, trailhead: Trailhead, forecast: Forecast | None, limits: Limits, now: datetime
) -> str:
    if forecast is None or forecast.day != day:
        return f"The weather at {trailhead.name} was not looked up; call forecast for {trailhead.id}."
    if now - forecast.fetched_at > FORECAST_KEEPS:
        return f"The forecast for {trailhead.name} is old; call forecast for {trailhead.id} again."
    if limits.rain_under is None:
        return ""
    wet = [hour for hour in rain_on_the_way(plan, trailhead, forecast) if _is_wet(hour, limits.rain_under)]
    if not wet:
        return ""
    return (
        f"At {trailhead.name} the precipitation chance must be known and under {limits.rain_under} % for the walk of "
        f"{walking_hours(trailhead)} h; it is {rain_list(wet)}."
    )


def _is_wet(hour: Hour, limit: int) -> bool:
    return hour.precipitation_probability is None or hour.precipitation_probability >= limit


def rain_list(hours: Sequence[Hour]) -> str:
    """The chances hour by hour, such as "10 % until 09:00, unknown until 10:00"."""
    return ", ".join(f"{chance(hour.precipitation_probability)} until {hour.until}" for hour in hours)


def chance(percent: int | None) -> str:
    """A chance for a sentence."""
    return "unknown" if percent is None else f"{percent} %"


def clean(text: str) -> str:
    """Text from outside without control, formatting and surrogate characters; line breaks and joiners stay."""
    spaced = re.sub(r"\r\n?|[\u2028\u2029]", "\n", text).replace("\t", " ")
    return "".join(c for c in spaced if c in "\n\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs")).strip()


def text_problem(text: object, limits: Limits) -> str:
    """Why the text cannot go out, or ""."""
    if not isinstance(text, str) or not text.strip():
        return "The text is empty; write what the group should read."
    if len(text) >= limits.text_under:
        return f"The text has {len(text)} characters; it must stay under {limits.text_under}."
    if any(c != "\n" and unicodedata.category(c) in ("Cc", "Cs") for c in text):
        return "The text holds control characters; remove them."
    if _HIDDEN.search(text):
        return "The text holds characters that turn the direction of writing; remove them."
    if found := _MENTION.search(text):
        return f"A text message cannot mention anybody; write a name instead of {found[0][:40]}."
    return ""


def content_problem(text: str, plan: Plan, trailhead: Trailhead, trailheads: Sequence[Trailhead]) -> str:
    """What a text written by a model lacks, or "": exactly one trailhead, the time, what to bring."""
    low = text.lower()
    hour, minute = int(plan.start[:2]), plan.start[3:]
    times = {plan.start, f"{hour}:{minute}", f"{hour}.{minute}", *([f"{hour} am"] if minute == "00" else [])}
    things = re.findall(r"\w{3,}", plan.bring.lower())
    if trailhead.name.lower() not in low:
        return f"The text must name the trailhead, {trailhead.name}."
    if any(o.name.lower() in low for o in trailheads if o.name.lower() not in trailhead.name.lower()):
        return f"The text must name no other trailhead than {trailhead.name}."
    if not any(re.search(rf"(?<!\d){re.escape(start)}(?!\d)", low) for start in times):
        return f"The text must name the time, {plan.start}."
    if things and not any(thing in low for thing in things):
        return f"The text must say what to bring: {plan.bring}."
    return ""


def plain_text(plan: Plan, day: date, trailhead: Trailhead, limit: int) -> str:
    """A text put together from the plan alone, cut to fit."""
    start = f"{trailhead.name}, {said(day)}, start {plan.start}."
    room = limit - 1 - len(start) - len(" Bring: .")
    bring = plan.bring if len(plan.bring) <= room else plan.bring[: max(0, room)].rpartition(",")[0]
    return (f"{start} Bring: {bring}." if bring else start)[: limit - 1]
