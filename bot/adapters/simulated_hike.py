"""The simulated hike planner: looks at the list, then at forecasts, then plans; from nothing but the request."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.adapters.simulated_rules import Ask, Block
from bot.adapters.simulated_wishes import Wishes, read_wishes

Script = Literal["default", "straight", "needs_user", "never_done", "talks", "refuses", "truncates", "bad_verdict"]
_SCRIPTS: tuple[Script, ...] = get_args(Script)
FORECASTS_AT_ONCE = 4
KM_PER_HOUR, HOURS_IF_UNKNOWN = 4, 3
TOO_LATE = "11:30"
UNCOMPARED = "I went by the shortest drive and have not compared forecasts."
RECHECKED = "Checked once more against the criteria."

Reply = tuple[list[Block], str]
"""Content blocks without ids, and the stop reason."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A trailhead with a start, the highest chance of rain on the way (None: unknown), and the hours walked."""

    trailhead: Mapping[str, Any]
    start: str
    rain: float | None
    hours: Sequence[Mapping[str, Any]]
    dry: bool


def script_of(ask: Ask, chosen: Script) -> Script:
    """The script a marker such as `[never done]` in the request asks for, otherwise the chosen one."""
    return next((script for script in _SCRIPTS if marker(script) in _spaced(ask.texts)), chosen)


def marker(script: Script) -> str:
    """How a request asks for the script."""
    return f"[{script.replace('_', ' ')}]"


def _spaced(text: str) -> str:
    return text.lower().replace("_", " ").replace("-", " ")


def plans(ask: Ask) -> bool:
    return "you plan hikes" in ask.system.lower() or "list_trailheads" in ask.tools


def plan(ask: Ask, script: Script) -> Reply:
    """The worker: look at the list, at forecasts, then plan."""
    if script == "refuses":
        return [], "refusal"
    if script == "truncates":
        return [say("Simulated plan, cut off: the best trailhead is")], "max_tokens"
    if script == "talks":
        return [say("Simulated: it will be a lovely day, just go somewhere green!")], "end_turn"
    wishes, results = read_wishes(ask), _results(ask)
    if wishes.day is None:
        return [say("Simulated: I need the day of the hike, as Date: YYYY-MM-DD.")], "end_turn"
    lists = [result for name, _, result in results if name == "list_trailheads"]
    if not lists:
        return [_use("list_trailheads", {})], "tool_use"
    trailheads = lists[-1]
    if not isinstance(trailheads, list) or not trailheads:
        return [say("Simulated: without the list of trailheads I cannot plan a hike.")], "end_turn"
    return _plan_with(script, wishes, trailheads, results)


def _plan_with(script: Script, wishes: Wishes, trailheads: list[Any], results: list[Any]) -> Reply:
    day = str(wishes.day)
    seen = {arguments.get("trailhead"): result for name, arguments, result in results
            if name == "forecast" and arguments.get("date") == day}  # fmt: skip
    candidates = _candidates(trailheads, wishes)
    choices = [c for t in candidates if t["id"] in seen for c in _choices(t, seen[t["id"]], wishes)]
    unseen = [t["id"] for t in candidates if t["id"] not in seen]
    if unseen and not any(choice.dry for choice in choices):
        calls = [_use("forecast", {"trailhead": name, "date": day}) for name in unseen[:FORECASTS_AT_ONCE]]
        return calls, "tool_use"
    if not choices:
        return [say("Simulated: I could not get a forecast for that day, so there is no plan yet.")], "end_turn"
    choice = min(choices, key=_rank)
    if script == "default" and not wishes.heard:
        # The first plan starts too late, so that a person sees it refused.
        choice = Choice(candidates[0], TOO_LATE, None, (), dry=False)
    return [say(_plan_text(choice, wishes, script))], "end_turn"


def _results(ask: Ask) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Every finished tool call: its name, arguments and result as JSON; None where it failed.

    Forecasts from before somebody called one old are forgotten.
    """
    calls = {b["id"]: b for turn in ask.turns for b in turn.blocks if b["type"] == "tool_use"}
    results: list[tuple[str, Mapping[str, Any], Any]] = []
    for turn in ask.turns:
        if turn.role == "user" and " is old" in turn.text:
            results = [result for result in results if result[0] != "forecast"]
        for block in turn.blocks:
            if block["type"] == "tool_result":
                call = calls[block["tool_use_id"]]
                found = None if block.get("is_error") else _json(block.get("content"))
                results.append((call["name"], call["input"], found))
    return results


def _json(content: Any) -> Any:
    text = content if isinstance(content, str) else "".join(b.get("text", "") for b in content or [])
    try:
        return json.loads(text)
    except ValueError:
        return None


def _candidates(trailheads: list[Any], wishes: Wishes) -> list[Mapping[str, Any]]:
    """What the wishes leave, nearest first; all of them if they leave nothing."""
    words = wishes.later.lower()
    every = [t for t in trailheads if isinstance(t, dict) and t.get("id")]
    usable = [t for t in every if t["id"] not in wishes.refused]
    named = [t for t in usable if str(t.get("name", "")).lower() in words and not _is_warned_of(t, words)]
    fitting = [t for t in usable if _fits(t, wishes) and not _is_warned_of(t, words)]
    return sorted(named or fitting or usable or every, key=lambda t: (_number(t, "drive_minutes"), t["id"]))


def _is_warned_of(trailhead: Mapping[str, Any], words: str) -> bool:
    name = re.escape(str(trailhead.get("name", "")).lower())
    before, after = r"\b(not|avoid|except|but)\s+(at |to )?", r"[^.]*\b(closed|full|must be|too far|not known|choose)\b"
    return re.search(f"{before}{name}|{name}{after}", words) is not None


def _fits(trailhead: Mapping[str, Any], wishes: Wishes) -> bool:
    near = wishes.max_drive is None or _number(trailhead, "drive_minutes") <= wishes.max_drive
    return near and (wishes.max_km is None or _number(trailhead, "length_km") < wishes.max_km)


def _number(values: Mapping[str, Any], key: str) -> float:
    value = values.get(key)
    return float(value) if isinstance(value, int | float) else math.inf


def _choices(trailhead: Mapping[str, Any], forecast: Any, wishes: Wishes) -> list[Choice]:
    """A choice for each start, with the hours that the walk touches at 4 km an hour; one not forecast is unknown."""
    hours = forecast.get("hours") if isinstance(forecast, dict) else None
    if not isinstance(hours, list):
        return []
    known = {hour.get("until"): hour for hour in hours}
    length = _number(trailhead, "length_km")
    walk = max(1, math.ceil(length / KM_PER_HOUR)) if math.isfinite(length) else HOURS_IF_UNKNOWN
    choices = []
    for start in wishes.starts:
        touched = walk + (not start.endswith(":00"))
        walked = [known.get(f"{int(start[:2]) + n:02d}:00", {}) for n in range(1, touched + 1)]
        rain = [hour.get("rain") for hour in walked]
        most = max(rain) if all(isinstance(chance, int | float) for chance in rain) else None
        choices.append(Choice(trailhead, start, most, walked, dry=most is not None and most < wishes.rain))
    return choices


def _rank(choice: Choice) -> tuple[bool, float, float]:
    """Dry first, then little rain, then near; an hour away from 08:00 is as bad as fifteen minutes of driving."""
    rain = 101 if choice.rain is None else choice.rain
    detour = 15 * abs(int(choice.start[:2]) - 8)
    return not choice.dry, 0 if choice.dry else rain, _number(choice.trailhead, "drive_minutes") + detour


def _plan_text(choice: Choice, wishes: Wishes, script: Script) -> str:
    trailhead = choice.trailhead
    bring = ", ".join(["water", "layers", "snacks", *wishes.extras])
    line = json.dumps({"trailhead": trailhead["id"], "start": choice.start, "bring": bring}, ensure_ascii=False)
    day = wishes.day
    parts = [
        f"Simulated plan for {day:%A} {day.day} {day:%B %Y}." if day else "",
        f"Trailhead: {trailhead.get('name') or trailhead['id']} ({_facts(trailhead)})",
        f"Start: {choice.start}",
        f"Weather: {_weather(choice)}",
        f"Bring: {bring}",
        _limits(choice, wishes, script),
        RECHECKED if wishes.unread else "",
        marker(script) if marker(script) in _spaced(wishes.words) else "",
        f"PLAN {line}",
    ]
    return "\n".join(part for part in parts if part)


def _facts(trailhead: Mapping[str, Any]) -> str:
    length, drive = trailhead.get("length_km"), trailhead.get("drive_minutes")
    parts = [f"{length:g} km" if length is not None else "", f"{drive} minutes by car" if drive is not None else ""]
    return ", ".join(part for part in parts if part) or "length and drive not known"


def _weather(choice: Choice) -> str:
    if not choice.hours:
        return UNCOMPARED
    if choice.rain is None:
        return "the chance of rain is not known for every hour, so I cannot call it dry."
    sky = choice.hours[0].get("sky") or "sky unknown"
    dry = "dry" if choice.dry else "no dry morning found, this is the least wet"
    return f"{dry}; at most {choice.rain:g} % chance of rain until {choice.hours[-1]['until']}, {sky} at first."


def _limits(choice: Choice, wishes: Wishes, script: Script) -> str:
    limit = "no limit" if wishes.max_drive is None else f"at most {wishes.max_drive:g} minutes"
    told = wishes.max_drive is not None or (script == "needs_user" and wishes.answered)
    said = f"You said how far you will drive: {limit}." if told else ""
    fits = "" if _fits(choice.trailhead, wishes) else "Nothing fits all of your wishes; this comes closest."
    return f"{said} {fits}".strip()


def say(text: str) -> Block:
    return {"type": "text", "text": text}


def _use(name: str, arguments: Mapping[str, Any]) -> Block:
    return {"type": "tool_use", "name": name, "input": arguments}
