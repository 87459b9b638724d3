"""Who says whether a plan and a text are good: code first, then a second model that cannot overrule it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final

from pydantic import ValidationError

from graphs.agent import converse, kept, models_of, schema_of, told, turns_of
from graphs.engine import Message, Runtime
from graphs.hike.prompts import EVALUATOR, UNJUDGED, WRITER, Brief, feedback_turn, plan_turn, writer_turn
from graphs.hike.rules import Plan, clean, content_problem, plain_text, problems_of, read_plan, text_problem
from graphs.hike.state import Hike, Verdict, place_of, settled
from graphs.ports import Deps, ModelRequest
from graphs.sms_text import normalise

WRITING_ATTEMPTS: Final = 3
LONGEST_FEEDBACK: Final = 1000

Update = dict[str, Any]


def evaluate(state: Hike, runtime: Runtime[Deps]) -> Update:
    """Judge the plan: code first, and only what code lets pass goes to the evaluator, who cannot overrule it."""
    runtime.stream("Checking the plan")
    plan, problem = read_plan(state.prose)
    objections = [problem] if plan is None else _objections(state, plan, runtime.now())
    update: Update = {"plan": plan, "objections": objections, "verdict": None, "rounds": 1}
    if plan is None or objections:
        feedback = " ".join(objections)
        verdict = Verdict(done=False, needs_user="", feedback=feedback)
        return {**update, "verdict": verdict, "messages": told(feedback_turn(feedback))}
    judged, stopped = _judge(state, runtime, plan)
    update |= {"verdict": judged, "stopped": stopped}
    if judged is None or not (judged.done or asks_requester(state, judged)):
        feedback = UNJUDGED if judged is None else judged.feedback or judged.needs_user
        update["messages"] = told(feedback_turn(feedback[:LONGEST_FEEDBACK]))
    return update


def _objections(state: Hike, plan: Plan, now: datetime) -> list[str]:
    day = date.fromisoformat(state.day)
    return problems_of(plan, day, state.limits, state.trailheads, state.forecasts, now)


def _judge(state: Hike, runtime: Runtime[Deps], plan: Plan) -> tuple[Verdict | None, str]:
    """The evaluator's verdict, None if it cannot be read, and why the run has to stop, or ""."""
    request = ModelRequest(
        model=models_of(runtime).writer,
        system=EVALUATOR,
        turns=turns_of([told(presented(state, plan))]),
        reply_schema=schema_of(Verdict),
    )
    reply, outcome = converse(runtime, "verdict", request)
    if outcome == "refused":
        return None, "The evaluator refused to judge this plan; word the request differently."
    return (read_verdict(reply.text) if outcome == "said" else None), ""


def read_verdict(text: str) -> Verdict | None:
    """The evaluator's JSON, read strictly; None if it is anything else."""
    try:
        return Verdict.model_validate_json(text, strict=True)
    except ValidationError:
        return None


def asks_requester(state: Hike, verdict: Verdict) -> bool:
    """Whether the evaluator's question goes to the requester; there are as many questions as rounds."""
    return bool(verdict.needs_user.strip()) and state.asked < state.max_rounds


def write_text(state: Hike, runtime: Runtime[Deps]) -> Update:
    """The text for the group: the writer's, if code finds nothing wrong with it, otherwise one made from the plan."""
    runtime.stream("Writing the text")
    plan = settled(state)
    trailhead, _ = place_of(state, plan)
    messages = [told(writer_turn(presented(state, plan), state.remembered, state.limits))]
    for attempt in range(WRITING_ATTEMPTS):
        request = ModelRequest(model=models_of(runtime).writer, system=WRITER, turns=turns_of(messages))
        reply, outcome = converse(runtime, f"text:{attempt}", request)
        if outcome != "said":
            break
        text = normalise(clean(reply.text))
        problem = text_problem(text, state.limits) or content_problem(text, plan, trailhead, state.trailheads)
        if not problem:
            return {"draft": text, "composed": False}
        messages += [Message(role="assistant", content=kept(reply)), told(f"{problem} Write the text again.")]
    made = plain_text(plan, date.fromisoformat(state.day), trailhead, state.limits.text_under)
    return {"draft": normalise(made), "composed": True}


def presented(state: Hike, plan: Plan) -> str:
    """The plan with the facts behind it, as evaluator and writer see it."""
    trailhead, forecast = place_of(state, plan)
    brief = Brief(day=date.fromisoformat(state.day), request=state.request, criteria=state.criteria)
    return plan_turn(brief, plan, trailhead, forecast, state.prose, state.remarks)
