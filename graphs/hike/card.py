"""What people are shown of a hike: the review of its text, the question, and how a run ended; built from data alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date
from math import ceil
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from graphs.dates import said, said_briefly
from graphs.flow import Choice, Ending, Field, Question, Release, Review
from graphs.hike.rules import (
    by_id,
    clean,
    hours_that_matter,
    rain_list,
    rain_on_the_way,
    start_of,
    text_problem,
    walking_hours,
)
from graphs.hike.state import Hike, place_of, settled
from graphs.ports import Forecast, Models, Trailhead
from graphs.sms_text import segments

LONGEST_ANSWER: Final = 500
LONGEST_QUESTION: Final = 300
ANY_DISTANCE: Final = "any"
_DRIVE_STEP: Final = 15
_MOST_CHOICES: Final = 5
_MOST_FOUND: Final = 6
_NAMES: Final = {"sms": "the text to the hiking group", "post": "the post to the channel"}


def review_of(state: Hike, models: Models) -> Review:
    """The text with what stands behind it, and what its approval lets out."""
    plan = settled(state)
    trailhead, _ = place_of(state, plan)
    draft = Field(
        value=state.draft, label="Text message", max_length=state.limits.text_under - 1, hint=cost(state.draft)
    )
    return Review(
        title="Text to the hiking group",
        draft={"text": draft},
        facts=_facts(state, models),
        valid_until=start_of(plan, date.fromisoformat(state.day), trailhead).astimezone(UTC),
        releases=[
            Release(kind="sms", to=state.sms_to, content="text"),
            Release(kind="post", to=state.post_to, content="text"),
        ],
    )


def _facts(state: Hike, models: Models) -> dict[str, str]:
    plan = settled(state)
    trailhead, forecast = place_of(state, plan)
    day = date.fromisoformat(state.day)
    facts = {
        "Asked for": _shortened(state.request),
        "Trailhead": _with_drive(trailhead),
        "When": f"{said(day)}, {plan.start} ({trailhead.time_zone})",
        "Rain": rain_list(rain_on_the_way(plan, trailhead, forecast)) if forecast else "not looked up",
        "Forecast": _source(forecast, state.zone) if forecast else "none",
        "Trail": _trail(trailhead),
        "Bring": plan.bring,
        "Planned by": _makers(state, models),
    }
    if trailhead.time_zone != state.zone:
        facts["Time zones"] = f"The club's trailheads differ; which day was meant was read in {state.zone}."
    return facts


def _shortened(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _with_drive(trailhead: Trailhead) -> str:
    drive = trailhead.drive_minutes
    return trailhead.name if drive is None else f"{trailhead.name}, {drive} min by car"


def _trail(trailhead: Trailhead) -> str:
    length = "length unknown" if trailhead.length_km is None else f"{trailhead.length_km:g} km"
    return f"{length}, reckoned as {walking_hours(trailhead)} h"


def _source(forecast: Forecast, zone: str) -> str:
    fetched = forecast.fetched_at.astimezone(ZoneInfo(zone))
    return f"{forecast.attribution}, of {said_briefly(fetched)}, {fetched:%H:%M}"


def _makers(state: Hike, models: Models) -> str:
    simulated = "Simulated: " if state.provider == "simulated" else ""
    text = "the text was put together from the plan" if state.composed else f"text by {models.writer}"
    return f"{simulated}plan by {models.worker} (round {state.rounds}), {text}"


def cost(text: str) -> str:
    """What sending the text takes."""
    encoding, _, count = segments(text)
    return f"{len(text)} characters, {count} segment{'' if count == 1 else 's'} in {encoding}"


def check(state: Hike, draft: Mapping[str, JsonValue]) -> dict[str, str]:
    """Why a draft cannot go out, by field."""
    problem = text_problem(draft.get("text"), state.limits)
    return {"text": problem} if problem else {}


def question_of(state: Hike) -> Question:
    """The evaluator's question; one about driving is answered by a button."""
    text = clean(state.verdict.needs_user if state.verdict else "").replace("\n", " ")[:LONGEST_QUESTION]
    drives = [place.drive_minutes for place in state.trailheads if place.drive_minutes is not None]
    if not drives or not re.search(r"\bdriv(?:e|ing)\b", text, re.IGNORECASE):
        return Question(text=text)
    steps = sorted({max(1, ceil(drive / _DRIVE_STEP)) * _DRIVE_STEP for drive in drives})
    choices = [Choice(value=str(step), label=f"up to {step} min") for step in steps[: _MOST_CHOICES - 1]]
    return Question(text=text, kind="choice", choices=[*choices, Choice(value=ANY_DISTANCE, label="any distance")])


def read_answer(question: Question, answer: JsonValue) -> tuple[str, int | None]:
    """The answer in words, and the minutes of driving it allows if it says so."""
    if question.kind != "choice":
        return clean(str(answer))[:LONGEST_ANSWER] or "(nothing)", None
    if str(answer).isdecimal():
        return f"at most {answer} minutes of driving", int(str(answer))
    return "any distance", None


def outcome(state: Hike) -> Ending:
    """How a run that ran to its end ended; approved but not sent at all is no success."""
    if state.decision and state.decision.verdict == "decline":
        return "declined"
    sent = any(receipt.status == "sent" for receipt in state.receipts)
    return "gave_up" if state.stopped or not sent else "finished"


def ending(state: Hike, how: Ending) -> str:
    """What the channel is told."""
    match how:
        case "finished":
            return f"{_hike(state)}: {_receipts(state)}"
        case "declined":
            reason = clean(state.decision.reason).rstrip(".") if state.decision else ""
            return f"{_hike(state)} was declined{f': {reason}' if reason else ''}. {_receipts(state)}"
        case "gave_up":
            return " ".join(part for part in (_gave_up(state), _last_plan(state), _found(state)) if part)
        case "expired":
            return f"{_hike(state)}: nobody decided in time. {_receipts(state)}"
        case "cancelled":
            return f"{_hike(state)} was cancelled. {_receipts(state)}"
        case "failed":
            return f"{_hike(state)}: the run failed. {_receipts(state)}"


def _hike(state: Hike) -> str:
    """The hike in a few words, as far as it is settled."""
    when = f"The hike on {said(date.fromisoformat(state.day))}" if state.day else "The hike"
    trailhead = by_id(state.trailheads, state.plan.trailhead) if state.plan else None
    return f"{when} from {trailhead.name}" if state.plan and trailhead else when


def _receipts(state: Hike) -> str:
    """What went out and what did not."""
    lines = []
    for receipt in state.receipts:
        name = _NAMES.get(receipt.kind, receipt.kind)
        why = f" ({receipt.detail[:200]})" if receipt.status == "failed" and receipt.detail else ""
        went = "went out" if receipt.status == "sent" else f"did not go out{why}"
        lines.append(f"{name[0].upper()}{name[1:]} {went}.")
    return " ".join(lines) or "Nothing was sent."


def _gave_up(state: Hike) -> str:
    if state.stopped:
        return f"{_hike(state).partition(' from ')[0]} could not be planned. {state.stopped}"
    return f"{_hike(state)} was approved, but: {_receipts(state)}"


def _last_plan(state: Hike) -> str:
    """What was wrong with the last plan where code says so; a model's words have no place here."""
    if not (state.stopped and state.plan and by_id(state.trailheads, state.plan.trailhead)):
        return ""
    trailhead, _ = place_of(state, state.plan)
    unsaid = "The evaluator was not satisfied." if state.verdict else "The evaluator's verdict could not be read."
    objections = " ".join(state.objections) or unsaid
    return f"The last plan was {trailhead.name} at {state.plan.start}. {objections}"


def _found(state: Hike) -> str:
    if not state.stopped or not state.forecasts:
        return ""
    places = [place for place in state.trailheads if place.id in state.forecasts][:_MOST_FOUND]
    return "Rain that day: " + "; ".join(f"{p.name} {_rain_range(state, p)}" for p in places) + "."


def _rain_range(state: Hike, place: Trailhead) -> str:
    first, last = hours_that_matter(place, state.limits)
    chances = [h.precipitation_probability for h in state.forecasts[place.id].hours if first < h.until <= last]
    known = [chance for chance in chances if chance is not None]
    if not known:
        return "unknown"
    low, high = min(known), max(known)
    unknown = ", some hours unknown" if len(known) < len(chances) else ""
    return (f"{low} %" if low == high else f"{low} to {high} %") + unknown
