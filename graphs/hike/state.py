"""The state of a hike being planned, and the values in it."""

from __future__ import annotations

from typing import Annotated, Literal

from graphs.engine import Message, Receipt, State, Value, add, append, merge
from graphs.flow import Decision
from graphs.hike.prompts import Remembered
from graphs.hike.rules import DEFAULT_CRITERIA, Limits, Plan, by_id
from graphs.ports import Forecast, Trailhead


class Verdict(Value):
    """The evaluator's reply; `needs_user` is a question to the requester, or ""."""

    done: bool
    needs_user: str
    feedback: str


class Hike(State):
    """One hike being planned; `rounds` counts plans judged since a person last said something."""

    request: str
    asked_day: str = ""
    criteria: str = DEFAULT_CRITERIA
    day: str = ""
    zone: str = ""
    limits: Limits = Limits()
    remembered: Remembered = Remembered()
    provider: str = ""
    sms_to: str = ""
    post_to: str = ""
    max_rounds: int = 3
    trailheads: list[Trailhead] = []
    forecasts: Annotated[dict[str, Forecast], merge] = {}
    messages: Annotated[list[Message], append] = []
    turns: int = 0
    proposal: Literal["", "tools", "plan", "again"] = ""
    prose: str = ""
    plan: Plan | None = None
    objections: list[str] = []
    verdict: Verdict | None = None
    rounds: Annotated[int, add] = 0
    asked: Annotated[int, add] = 0
    remarks: Annotated[list[str], append] = []
    draft: str = ""
    composed: bool = False
    decision: Decision | None = None
    stopped: str = ""
    receipts: Annotated[list[Receipt], append] = []


def settled(state: Hike) -> Plan:
    """The plan that holds; a graph that gets here without one is wrong."""
    if state.plan is None:
        raise LookupError("No plan is settled yet.")
    return state.plan


def place_of(state: Hike, plan: Plan) -> tuple[Trailhead, Forecast | None]:
    """The plan's trailhead and its forecast, from the list and the lookups, never from the model."""
    trailhead = by_id(state.trailheads, plan.trailhead)
    if trailhead is None:
        raise LookupError(f"{plan.trailhead!r} is no trailhead of the club's list.")
    return trailhead, state.forecasts.get(trailhead.id)
