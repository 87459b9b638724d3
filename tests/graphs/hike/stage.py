"""A stage for the hike planner: a model that plays a script, trailheads with weather, and a clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count

from pydantic import JsonValue

from graphs.engine import Runner, Snapshot
from graphs.engine.checkpoint import Claim, EffectRow
from graphs.engine.memory import MemoryCheckpointer
from graphs.hike.state import Hike
from graphs.plan_hike import FLOW
from graphs.ports import (
    Deps,
    Forecast,
    Hour,
    Model,
    ModelReply,
    ModelRequest,
    Models,
    OverBudget,
    Trailhead,
    Usage,
)

MONDAY = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
"""Ten in the morning at the trailheads."""
SATURDAY = date(2026, 12, 5)
GROUP = "+15035550134"
CHANNEL = "C0HIKES01"
ZONE = "America/Los_Angeles"

Line = ModelReply | Exception
"""What the model says next, or how the call fails."""


def place(ident: str, km: float | None, drive: int | None = 25, zone: str = ZONE, notes: str = "") -> Trailhead:
    name = ident.replace("-", " ").title()
    return Trailhead(
        id=ident,
        name=name,
        latitude=45.5,
        longitude=-122.3,
        time_zone=zone,
        length_km=km,
        drive_minutes=drive,
        notes=notes,
    )


FERN, RIDGE = place("fern-hollow", 7.4), place("lantern-ridge", 11.0, 40)


def weather(
    trailhead: str, rain: Mapping[int, int | None], day: date = SATURDAY, fetched: datetime = MONDAY
) -> Forecast:
    """A forecast: 10 % for every hour that `rain` (by the hour it ends) does not name."""
    hours = [
        Hour(until=f"{h:02d}:00", temperature=8.0, precipitation_probability=rain.get(h, 10), sky="cloudy")
        for h in range(6, 19)
    ]
    return Forecast(
        trailhead_id=trailhead,
        day=day,
        time_zone=ZONE,
        fetched_at=fetched,
        hours=hours,
        attribution="Weather by the stage",
    )


@dataclass
class Scripted:
    """A model that says its lines in order and remembers what it was asked."""

    lines: list[Line]
    provider: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if not self.lines:
            raise AssertionError("the model was asked once more than its script holds")
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line

    def asked(self, role: str) -> list[ModelRequest]:
        """The requests to one role, told by how its system prompt begins."""
        return [request for request in self.requests if role in request.system]


@dataclass
class Club:
    """Trailheads with their weather; `fails` are raised by the next forecasts, one each."""

    trailheads: list[Trailhead] = field(default_factory=lambda: [FERN, RIDGE])
    rain: dict[str, Mapping[int, int | None]] = field(default_factory=dict)
    fails: list[Exception] = field(default_factory=list)
    fetched: datetime | None = None
    clock: Callable[[], datetime] = lambda: MONDAY
    asked: list[tuple[str, date]] = field(default_factory=list)
    unlisted: list[Exception] = field(default_factory=list)

    def list_trailheads(self) -> Sequence[Trailhead]:
        if self.unlisted:
            raise self.unlisted.pop(0)
        return self.trailheads

    def forecast(self, trailhead_id: str, day: date) -> Forecast:
        self.asked.append((trailhead_id, day))
        if self.fails:
            raise self.fails.pop(0)
        return weather(trailhead_id, self.rain.get(trailhead_id, {}), day, self.fetched or self.clock())


@dataclass
class Allowance:
    """A budget of so many calls."""

    calls: int = 1000
    until: datetime | None = None
    asked: list[str] = field(default_factory=list)

    def allow(self, thread_id: str) -> None:
        self.asked.append(thread_id)
        if len(self.asked) > self.calls:
            raise OverBudget("The run has used its model calls; give it more.", self.until)


@dataclass
class Post:
    """Performs every effect as told, and remembers it."""

    store: MemoryCheckpointer
    fails: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, str, str]] = field(default_factory=list)

    def perform(self, claim: Claim, effects: Sequence[EffectRow]) -> None:
        for effect in effects:
            if why := self.fails.get(effect.kind):
                self.store.set_effect(effect, "failed", {"detail": why})
            else:
                self.sent.append((effect.kind, effect.address, effect.content))
                self.store.set_effect(effect, "sent", {"ref": f"{effect.kind}-1"})


class Stage:
    """A runner with everything a hike needs, all of it in memory."""

    def __init__(
        self, *lines: Line, club: Club | None = None, budget: Allowance | None = None, max_rounds: int = 3
    ) -> None:
        self.time = MONDAY
        self.model = Scripted(list(lines))
        self.club, self.budget = club or Club(), budget or Allowance()
        self.club.clock = lambda: self.time
        self.store = MemoryCheckpointer(lambda: int(self.time.timestamp() * 1_000_000))
        self.post = Post(self.store)
        self.runner = self.with_model(self.model, max_rounds)
        self.names = count(1)

    def with_model(self, model: Model, max_rounds: int = 3) -> Runner:
        deps = Deps(
            model=model,
            models=Models("worker-model", "writer-model"),
            trails=self.club,
            budget=self.budget,
            sms_to=GROUP,
            post_to="C0ELSEWHERE",
            max_rounds=max_rounds,
        )
        return Runner(self.store, self.post, deps, outcome=lambda _, state: FLOW.outcome(state))

    def plan(
        self, request: str = "Saturday, not far", pinned: str = "", channel: str = CHANNEL, **form: str
    ) -> Snapshot:
        """Fill the form and go on to the first pause."""
        given = FLOW.start({"request": request, **form}, self.time)
        name = f"run-{next(self.names)}"
        return self.runner.invoke(FLOW.graph, given, name, channel=channel, who="U0ANNA", model=pinned)

    def answer(self, snapshot: Snapshot, answer: JsonValue) -> Snapshot:
        return self.runner.resume(snapshot.thread_id, {snapshot.interrupts[0].id: answer})

    def decide(self, snapshot: Snapshot, verdict: str, text: str | None = None, reason: str = "") -> Snapshot:
        """Decide on the review that is open."""
        draft = {"text": hike(snapshot).draft if text is None else text}
        at = self.time.isoformat()
        return self.answer(
            snapshot,
            {"verdict": verdict, "draft": {**draft}, "reason": reason, "by": "U0BEN", "at": at, "version": 1},
        )

    def later(self, **much: float) -> None:
        self.time += timedelta(**much)


def hike(snapshot: Snapshot) -> Hike:
    assert isinstance(snapshot.values, Hike)
    return snapshot.values


def says(text: str, stop_reason: str | None = "end_turn") -> ModelReply:
    content: list[JsonValue] = [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": text}]
    return ModelReply(content=content, stop_reason=stop_reason, usage=Usage(input_tokens=100, output_tokens=10))


def silence(stop_reason: str | None = "end_turn") -> ModelReply:
    return ModelReply(content=[], stop_reason=stop_reason)


_ids: Iterator[int] = count(1)


def uses(*calls: tuple[str, JsonValue], stop_reason: str = "tool_use") -> ModelReply:
    blocks: list[JsonValue] = [
        {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": name, "input": arguments} for name, arguments in calls
    ]
    return ModelReply(content=blocks, stop_reason=stop_reason)


def lists() -> ModelReply:
    return uses(("list_trailheads", {}))


def looks(*trailheads: str, day: str = "2026-12-05") -> ModelReply:
    calls: list[tuple[str, JsonValue]] = [("forecast", {"trailhead": name, "date": day}) for name in trailheads]
    return uses(*calls)


def proposes(trailhead: str = "fern-hollow", start: str = "08:00", bring: str = "water, layers") -> ModelReply:
    line = json.dumps({"trailhead": trailhead, "start": start, "bring": bring})
    return says(f"It is near and dry.\nPLAN {line}")


def judges(*, done: bool = True, needs_user: str = "", feedback: str = "") -> ModelReply:
    return says(json.dumps({"done": done, "needs_user": needs_user, "feedback": feedback}))


GOOD_TEXT = "Hike Sat 5 Dec: Fern Hollow, start 08:00. Bring water and layers."


def writes(text: str = GOOD_TEXT) -> ModelReply:
    return says(text)


def happy() -> list[Line]:
    """The lines of a run that goes straight to its review."""
    return [lists(), looks("fern-hollow"), proposes(), judges(), writes()]


def results(message: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The tool results in a message's content."""
    blocks = message if isinstance(message, list) else []
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_result"]
