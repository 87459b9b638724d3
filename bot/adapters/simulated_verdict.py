"""The simulated evaluator and the simulated writer of the text message, deciding from nothing but the request."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from bot.adapters.simulated_hike import RECHECKED, UNCOMPARED, Reply, Script, say
from bot.adapters.simulated_rules import Ask
from bot.adapters.simulated_wishes import day_of, last_plan
from graphs.sms_text import GSM_CHARACTERS, normalise

QUESTION = "How far will you drive? (minutes)"


def judges(ask: Ask) -> bool:
    return ask.schema is not None and {"done", "needs_user", "feedback"} <= set(ask.schema.get("properties", {}))


def writes(ask: Ask) -> bool:
    return "you write the text message" in ask.system.lower()


def judge(ask: Ask, script: Script) -> Reply:
    """The evaluator: a verdict about the last plan in the request, now and then one that nobody can read."""
    verdict = _verdict(ask, script)
    if verdict is None:
        prose = "Simulated evaluator: what a nice plan! I would love to come along."
        return [say(prose)], "end_turn"
    return [say(json.dumps(verdict))], "end_turn"


def _verdict(ask: Ask, script: Script) -> Mapping[str, Any] | None:
    plan = last_plan(ask.texts)
    if script == "bad_verdict":
        return None
    if script == "never_done":
        return _not_done("Simulated evaluator: I am never satisfied. Look at another trailhead.")
    if script == "needs_user" and "how far you will drive:" not in ask.texts:
        return {"done": False, "needs_user": QUESTION, "feedback": "How far the group drives is not settled."}
    if plan is None:
        return _not_done("There is no plan: name one trailhead, a start and what people carry, and end with PLAN.")
    if UNCOMPARED in ask.texts:
        return _not_done("That misses the dry morning: plan a start between 7:00 and 10:00, and go by the forecasts.")
    if "no dry morning found" in ask.texts:
        return _not_done("It rains everywhere that morning: look at more trailheads, or plan another day.")
    if script == "default" and RECHECKED not in ask.texts:
        return None
    return {"done": True, "needs_user": "", "feedback": ""}


def _not_done(feedback: str) -> Mapping[str, Any]:
    return {"done": False, "needs_user": "", "feedback": feedback}


def write(ask: Ask, _script: Script) -> Reply:
    """The text message about the last plan: under 300 characters, all of them GSM-7, and said to be simulated."""
    plan, day = last_plan(ask.texts) or {}, day_of(ask.texts)
    name = plan.get("trailhead", "the hills").replace("-", " ").title()
    for found in re.findall(r"Trailhead:\s*([^\n(]{1,60})", ask.texts):
        name = found.strip()
    when = f"{day:%a} {day.day} {day:%b}" if day else "soon"
    text = (
        f"Hike {when}: {name}, start {plan.get('start', '08:00')}. Bring {plan.get('bring', 'water, layers, snacks')}"
    )
    return [say(_gsm(text)[:270].rstrip(" ,.") + ". (Simulated plan.)")], "end_turn"


def _gsm(text: str) -> str:
    """The text in GSM-7: accents it lacks dropped, everything else it lacks replaced."""
    letters = (c if c in GSM_CHARACTERS else unicodedata.normalize("NFKD", c)[0] for c in normalise(text))
    return "".join(c if c in GSM_CHARACTERS else "?" for c in letters)
