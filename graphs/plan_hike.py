"""The hike planner: a worker and an evaluator take turns until a plan holds, people approve the text, then it goes out.

prepare → worker ⇄ tools
          worker → evaluate → write_text → approve → send → END
          evaluate → worker (not done) | ask_user → worker
          approve → worker (changes) | END (declined)
          prepare, worker, evaluate → give_up → END
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from pydantic import JsonValue, ValidationError

from graphs.agent import UNREADABLE, Outcome, models_of, patience, run_tools, take_turn, told, turns_of
from graphs.dates import DateError, check_horizon, coming_saturday, find_day, said
from graphs.effects import Post, Sms
from graphs.engine import END, START, Command, Overwrite, Runtime, StateGraph
from graphs.flow import Flow
from graphs.hike.card import check, ending, outcome, question_of, read_answer, review_of
from graphs.hike.form import FORM, start
from graphs.hike.judge import asks_requester, evaluate, write_text
from graphs.hike.prompts import NUDGE, WORKER, Brief, Remembered, answer_turn, comment_turn, first_turn
from graphs.hike.rules import SMS_LIMIT, Limits, clean, read_limits, with_comment
from graphs.hike.state import Hike
from graphs.hike.tools import tools_for
from graphs.ports import Deps, Forecast, ModelRequest, Trailhead

MAX_TURNS: Final = 12
MAX_STEPS: Final = 60
REMEMBERED: Final = 5
LONGEST_REMARK: Final = 500

_STOPS: Final[Mapping[Outcome, str]] = {
    "truncated": "The model's answer did not fit, even with twice the room, so there is no whole plan.",
    "refused": "The model refused to plan this hike; word the request differently.",
    "incomplete": "The model's answer was cut off twice; try again later.",
}


Update = dict[str, Any]


def prepare(state: Hike, runtime: Runtime[Deps]) -> Update:
    """Settle once what the whole run goes by: the list, the day in its time zone, limits, addresses, memories."""
    trailheads = runtime.once("trailheads", lambda: _list_trailheads(runtime.deps), kind=list[Trailhead])
    if not trailheads:
        return {"stopped": "The club's list of trailheads is empty; add some to it."}
    now, zone = runtime.now(), ZoneInfo(trailheads[0].time_zone)
    limits = read_limits(state.criteria, state.request)
    try:
        day = _day(state, now.astimezone(zone), limits)
    except DateError as error:
        return {"stopped": str(error)}
    remembered = _recall(runtime)
    return {
        "trailheads": trailheads,
        "day": day.isoformat(),
        "zone": zone.key,
        "limits": limits,
        "remembered": remembered,
        "provider": runtime.deps.model.provider,
        "sms_to": runtime.deps.sms_to,
        "post_to": runtime.run.channel or runtime.deps.post_to,
        "max_rounds": runtime.deps.max_rounds,
        "messages": told(first_turn(Brief(day=day, request=state.request, criteria=state.criteria), remembered)),
    }


def _list_trailheads(deps: Deps) -> list[Trailhead]:
    with patience():
        return list(deps.trails.list_trailheads())


def _day(state: Hike, now: datetime, limits: Limits) -> date:
    """The day of the hike; `now` is local to the trailheads."""
    today = now.date()
    day = find_day(state.asked_day or state.request, today) or coming_saturday(today)
    check_horizon(day, today)
    if day == today and f"{now:%H:%M}" > (limits.latest or "18:00"):
        raise DateError(f"At the trailheads it is {now:%H:%M} on {said(day)} already, too late to start that day.")
    return day


def _recall(runtime: Runtime[Deps]) -> Remembered:
    """What people decided here before; what cannot be read is as good as forgotten."""
    kept_values = {"declines": runtime.memory.get("declines") or [], "edits": runtime.memory.get("edits") or []}
    try:
        return Remembered.from_json(kept_values)
    except ValidationError:
        return Remembered()


def after_prepare(state: Hike) -> str:
    """Whether there is anything to plan."""
    return "give_up" if state.stopped else "worker"


def worker(state: Hike, runtime: Runtime[Deps]) -> Update:
    """The model's next turn: tool calls, or a plan."""
    if state.turns >= MAX_TURNS:
        return {"stopped": f"The planner looked things up {MAX_TURNS} times without settling on a plan."}
    runtime.stream(f"Planning, round {state.rounds + 1} of {state.max_rounds}")
    request = ModelRequest(
        model=models_of(runtime).worker,
        system=WORKER,
        turns=turns_of(state.messages),
        tools=[tool.offer for tool in tools_for(state, runtime, {})],
    )
    turn = take_turn(runtime, "reply", request, NUDGE)
    proposals: dict[Outcome, str] = {"tools": "tools", "paused": "again"}
    return {
        "messages": turn.messages,
        "turns": state.turns + 1,
        "prose": turn.text,
        "proposal": proposals.get(turn.outcome, "plan"),
        "stopped": _STOPS.get(turn.outcome, ""),
    }


def after_worker(state: Hike) -> str:
    """Where the worker's turn leads."""
    return "give_up" if state.stopped else state.proposal


def tools(state: Hike, runtime: Runtime[Deps]) -> Update:
    """Run what the worker asked for; forecasts are kept, so that code can check plans against them."""
    found: dict[str, Forecast] = {}
    return {"messages": run_tools(state.messages, tools_for(state, runtime, found)), "forecasts": found}


def after_evaluate(state: Hike) -> str:
    """Where the verdict leads; the round limit holds whatever the evaluator wants."""
    verdict = state.verdict
    if state.stopped:
        return "give_up"
    if verdict and asks_requester(state, verdict):
        return "ask_user"
    if verdict and verdict.done:
        return "write_text"
    return "give_up" if state.rounds >= state.max_rounds else "worker"


def ask_user(state: Hike, runtime: Runtime[Deps]) -> Update:
    """Ask the requester what only they know, and plan on with the answer."""
    question = question_of(state)
    answer = runtime.interrupt(question)
    words, minutes = read_answer(question, answer)
    limits = state.limits.model_copy(update={"drive_minutes": minutes}) if minutes else state.limits
    return {
        "messages": told(answer_turn(question.text, words)),
        "remarks": f"Asked: {question.text} Answered: {words}",
        "limits": limits,
        "asked": 1,
        "rounds": Overwrite(0),
        "turns": 0,
    }


def approve(state: Hike, runtime: Runtime[Deps]) -> Update:
    """Show the text to people and take their decision; declines and edits are remembered for later plans."""
    decision = runtime.interrupt(review_of(state, models_of(runtime)))
    reason = clean(decision.reason)[:LONGEST_REMARK]
    if decision.verdict == "changes":
        return {"decision": decision, **_changes(state, reason or "No comment was given; plan something else.")}
    if decision.verdict == "decline":
        _remember(runtime, "declines", reason)
        return {"decision": decision}
    text = str(decision.draft["text"])
    if text != state.draft:
        _remember(runtime, "edits", {"shown": state.draft, "sent": text[:SMS_LIMIT]})
    return {"decision": decision, "draft": text}


def _changes(state: Hike, comment: str) -> Update:
    """A person's comment starts the rounds anew."""
    return {
        "messages": told(comment_turn(comment)),
        "remarks": comment,
        "limits": with_comment(state.limits, comment),
        "rounds": Overwrite(0),
        "turns": 0,
    }


def _remember(runtime: Runtime[Deps], key: str, item: JsonValue) -> None:
    before = runtime.memory.get(key)
    if item:
        runtime.memory.put(key, [*(before if isinstance(before, list) else []), item][-REMEMBERED:])


def after_approve(state: Hike) -> str:
    """Where the decision leads."""
    verdict = state.decision.verdict if state.decision else "decline"
    return {"changes": "changes", "decline": "declined"}.get(verdict, "send")


def send(state: Hike) -> Command:
    """Ask for exactly what was approved: one text to the group, one post to the channel."""
    return Command(
        effects=[
            Sms(to=state.sms_to, content=state.draft, into="receipts"),
            Post(to=state.post_to, content=state.draft, into="receipts"),
        ]
    )


def give_up(state: Hike) -> Update:
    """Settle why the run stops; the end of the run tells it."""
    return {"stopped": state.stopped or f"No plan met the criteria in {state.rounds} rounds."}


graph = StateGraph(Hike)
graph.add_node("prepare", prepare, retry=UNREADABLE)
graph.add_node("worker", worker, retry=UNREADABLE)
graph.add_node("tools", tools)
graph.add_node("evaluate", evaluate, retry=UNREADABLE)
graph.add_node("ask_user", ask_user)
graph.add_node("write_text", write_text, retry=UNREADABLE)
graph.add_node("approve", approve)
graph.add_node("send", send)
graph.add_node("give_up", give_up)
graph.add_edge(START, "prepare")
graph.add_conditional_edges("prepare", after_prepare, ["worker", "give_up"])
graph.add_conditional_edges(
    "worker", after_worker, {"tools": "tools", "plan": "evaluate", "again": "worker", "give_up": "give_up"}
)
graph.add_edge("tools", "worker")
graph.add_conditional_edges("evaluate", after_evaluate, ["write_text", "ask_user", "worker", "give_up"])
graph.add_edge("ask_user", "worker")
graph.add_edge("write_text", "approve")
graph.add_conditional_edges("approve", after_approve, {"send": "send", "changes": "worker", "declined": END})
graph.add_edge("send", END)
graph.add_edge("give_up", END)

FLOW = Flow(
    name="plan_hike",
    command="/plan-hike",
    usage="a kind of hike and a day, such as: Saturday, under 10 km, not far",
    form=FORM,
    graph=graph.compile(name="plan_hike", version=1, max_steps=MAX_STEPS),
    start=start,
    check=check,
    outcome=outcome,
    ending=ending,
)
