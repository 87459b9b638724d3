"""Hikes being planned, run by our engine and by LangGraph, and what can be seen of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.types import Command as TheirCommand
from pydantic import JsonValue

from graphs.engine import Snapshot
from graphs.hike.state import Hike
from graphs.plan_hike import FLOW, MAX_TURNS
from graphs.ports import Busy, Nonsense
from tests.graphs.hike.stage import (
    CHANNEL,
    MONDAY,
    Club,
    Line,
    Stage,
    happy,
    hike,
    judges,
    lists,
    looks,
    proposes,
    says,
    silence,
    uses,
    writes,
)
from tests.peer.langgraph_port import DELIVER, World, opened, ported

Answer = Callable[[Any], JsonValue]
"""What a person says to a question, given its payload."""


@dataclass(frozen=True)
class Scene:
    """What the model says, what people answer, and how the world outside behaves."""

    lines: Sequence[Line]
    answers: Sequence[Answer | None] = ()  # None lets an hour pass for a run that sleeps
    form: Mapping[str, str] = field(default_factory=lambda: {"request": "Saturday, not far"})
    club: Callable[[], Club] = Club
    fails: Mapping[str, str] = field(default_factory=dict)
    pinned: str = ""
    channel: str = CHANNEL

    def stage(self) -> Stage:
        stage = Stage(*self.lines, club=self.club())
        stage.post.fails = dict(self.fails)
        return stage


@dataclass
class Told:
    """Everything of a run that can be seen from outside, and its state after every step."""

    asked: list[JsonValue] = field(default_factory=list)
    steps: list[tuple[tuple[str, ...], Mapping[str, Any]]] = field(default_factory=list)
    requests: list[JsonValue] = field(default_factory=list)
    sent: list[tuple[str, str, str]] = field(default_factory=list)
    memories: Mapping[str, JsonValue] = field(default_factory=dict)
    outcome: str = ""
    ending: str = ""

    def of(self, stage: Stage, state: Hike) -> Told:
        self.requests = [request.model_dump(mode="json") for request in stage.model.requests]
        self.outcome = FLOW.outcome(state)
        self.ending = FLOW.ending(state, FLOW.outcome(state))
        return self


def on_ours(scene: Scene) -> Told:
    stage, told = scene.stage(), Told()
    snapshot = stage.plan(pinned=scene.pinned, channel=scene.channel, **scene.form)
    for answer in scene.answers:
        if answer is None:
            assert snapshot.status == "sleeping"
            stage.later(hours=1)
            snapshot = stage.runner.advance(snapshot.thread_id)
        else:
            told.asked.append(snapshot.interrupts[0].payload)
            snapshot = stage.answer(snapshot, answer(snapshot.interrupts[0].payload))
    assert snapshot.status == FLOW.outcome(hike(snapshot))
    rows = list(reversed(list(stage.runner.get_state_history(snapshot.thread_id))))
    told.steps = [(_ran(row), row.values.to_json()) for row in rows]
    told.sent = stage.post.sent
    namespace = f"{FLOW.name}:{scene.channel or 'U0ANNA'}"
    told.memories = {key: stage.store.recall(namespace, key) for key in ("declines", "edits")}
    return told.of(stage, hike(snapshot))


def _ran(row: Snapshot) -> tuple[str, ...]:
    """The tasks that made a row; what delivers the effects is no node of ours."""
    assert row.meta is not None
    return (DELIVER,) if row.source == "receipt" else tuple(name for name, _ in row.meta.get("ran", ()))


class OnTheirs:
    """A run on LangGraph; every call opens the databases anew, as if each happened in another process."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.scene, self.folder, self.stage = scene, folder, scene.stage()
        self.sent: list[tuple[str, str, str]] = []
        self.config: Any = {"configurable": {"thread_id": "run-1"}}
        self.graph = ported(FLOW.graph, "send", World(self.stage.runner.deps, lambda: self.stage.time, self.send))

    def send(self, effect: Mapping[str, Any]) -> dict[str, JsonValue]:
        kind, to = effect["kind"], effect["to"]
        if why := self.scene.fails.get(kind):
            return {"kind": kind, "to": to, "status": "failed", "detail": why}
        self.sent.append((kind, to, effect["content"]))
        return {"kind": kind, "to": to, "status": "sent", "ref": f"{kind}-1"}

    def call(self, given: Any) -> Any:
        """Go on to the next question or the end; returns the question's value, or None."""
        with opened(self.folder, self.graph) as graph:
            result = graph.invoke(given, self.config, durability="sync")
        asked = result.get("__interrupt__")
        return asked[0].value if asked else None

    def start(self) -> Any:
        scene = self.scene
        about = {
            "thread_id": "run-1",
            "root": "run-1",
            "channel": scene.channel,
            "who": "U0ANNA",
            "model": scene.pinned,
        }
        return self.call({**FLOW.start(scene.form, self.stage.time), "about": about})

    def answer(self, value: JsonValue) -> Any:
        return self.call(TheirCommand(resume={"answer": value}))

    def answer_by_id(self, ident: str, value: JsonValue) -> Any:
        return self.call(TheirCommand(resume={ident: {"answer": value}}))

    def asked_id(self) -> str:
        with opened(self.folder, self.graph) as graph:
            return str(graph.get_state(self.config).interrupts[0].id)

    def history(self) -> list[Any]:
        """From the state after the input to the newest."""
        with opened(self.folder, self.graph) as graph:
            return list(reversed(list(graph.get_state_history(self.config))))

    def recall(self, key: str) -> JsonValue:
        with opened(self.folder, self.graph) as graph:
            assert graph.store is not None
            item = graph.store.get((FLOW.name, self.scene.channel or "U0ANNA"), key)
        return item.value["value"] if item else None


def on_theirs(scene: Scene, folder: Path) -> Told:
    run, told = OnTheirs(scene, folder), Told()
    asked = run.start()
    for answer in scene.answers:
        if answer is None:
            assert "until" in asked
            run.stage.later(hours=1)
            asked = run.answer(None)
        else:
            told.asked.append(asked["payload"])
            asked = run.answer(answer(asked["payload"]))
    assert asked is None
    first, *rows = run.history()
    assert first.next == ("__start__",)
    ran = [(), *(row.next for row in rows)]
    told.steps = [(names, _seen(row).to_json()) for names, row in zip(ran, rows, strict=False)]
    told.sent = run.sent
    told.memories = {key: run.recall(key) for key in ("declines", "edits")}
    return told.of(run.stage, _seen(rows[-1]))


def _seen(row: Any) -> Hike:
    """A hike out of their state, which holds only the keys that something has written."""
    return Hike(**{name: value for name, value in row.values.items() if name in Hike.model_fields})


# ---- what happens -----------------------------------------------------------------------------------------


def decides(verdict: str, text: str | None = None, reason: str = "") -> Answer:
    def answer(payload: Any) -> JsonValue:
        shown = payload["draft"]["text"]["value"]
        draft: JsonValue = {"text": shown if text is None else text}
        at = MONDAY.isoformat()
        return {"verdict": verdict, "draft": draft, "reason": reason, "by": "U0BEN", "at": at, "version": 1}

    return answer


EDITED = "Hike Sat 5 Dec: Fern Hollow, start 08:00. Bring water, layers and tea."
RIDGE_TEXT = "Hike Sat 5 Dec: Lantern Ridge, start 08:00. Bring water and layers."
WET = {8: 70, 9: 80, 10: 60}
NOT_DONE = judges(done=False, feedback="Name what to bring in wet weather.")
DRIVING = judges(done=False, needs_user="How long may the drive be?")
UMBRELLA = judges(done=False, needs_user="Does anybody need a dog-friendly trail?")
AGAIN = [proposes(), judges(), writes()]

SCENES: Mapping[str, Scene] = {
    "approved": Scene(happy(), [decides("approve")]),
    "edited": Scene(happy(), [decides("edit", EDITED)]),
    "declined": Scene(happy(), [decides("decline", reason="Too cold.")]),
    "declined without a reason": Scene(happy(), [decides("decline")]),
    "changes": Scene([*happy(), *AGAIN], [decides("changes", reason="Start later."), decides("approve")]),
    "changes twice": Scene(
        [*happy(), *AGAIN, *AGAIN],
        [decides("changes", reason="No more than 8 km."), decides("changes"), decides("edit", EDITED)],
    ),
    "not done, then done": Scene([*happy()[:3], NOT_DONE, *AGAIN], [decides("approve")]),
    "not done in any round": Scene([*happy()[:3], NOT_DONE, proposes(), NOT_DONE, proposes(), NOT_DONE]),
    "not done in code, the model is not asked": Scene(
        [
            lists(),
            looks("fern-hollow", "lantern-ridge"),
            proposes(),
            proposes("lantern-ridge"),
            judges(),
            writes(RIDGE_TEXT),
        ],
        [decides("approve")],
        club=lambda: Club(rain={"fern-hollow": WET}),
    ),
    "an unreadable verdict": Scene([*happy()[:3], says("Fine by me!"), *AGAIN], [decides("approve")]),
    "a question with buttons": Scene([*happy()[:3], DRIVING, *AGAIN], [lambda _: "30", decides("approve")]),
    "a question with a text": Scene([*happy()[:3], UMBRELLA, *AGAIN], [lambda _: "Yes, two dogs.", decides("approve")]),
    "a question answered with nothing": Scene([*happy()[:3], UMBRELLA, *AGAIN], [lambda _: "", decides("approve")]),
    "a question answered with None": Scene([*happy()[:3], UMBRELLA, *AGAIN], [lambda _: None, decides("approve")]),
    "questions and changes": Scene(
        [*happy()[:3], UMBRELLA, proposes(), DRIVING, *AGAIN, *AGAIN],
        [lambda _: "No.", lambda _: "any", decides("changes", reason="Earlier."), decides("approve")],
    ),
    "a tool that fails": Scene(
        [lists(), looks("fern-hollow"), looks("fern-hollow"), *AGAIN],
        [decides("approve")],
        club=lambda: Club(fails=[Nonsense("The forecast cannot be read.")]),
    ),
    "tools that are not there": Scene(
        [uses(("search", {}), ("forecast", {"trailhead": "nowhere", "date": "2026-12-05"})), *happy()],
        [decides("approve")],
    ),
    "looking things up for ever": Scene([lists()] * MAX_TURNS),
    "a refusal": Scene([silence("refusal")]),
    "an answer cut short": Scene([says("It is", "max_tokens"), *happy()], [decides("approve")]),
    "a silent model": Scene([silence(), *happy()], [decides("approve")]),
    "a paused turn": Scene([says("Let me think.", "pause_turn"), *happy()], [decides("approve")]),
    "a text that will not do": Scene([*happy()[:4], writes("x" * 400), writes("Go!"), writes()], [decides("approve")]),
    "a text put together": Scene([*happy()[:4], *[writes("x" * 400)] * 3], [decides("approve")]),
    "no trailheads": Scene([], club=lambda: Club(trailheads=[])),
    "a text that did not go out": Scene(happy(), [decides("approve")], fails={"sms": "The number is blocked."}),
    "nothing that went out": Scene(happy(), [decides("approve")], fails={"sms": "Blocked.", "post": "Archived."}),
    "no channel, a pinned model": Scene(happy(), [decides("edit", EDITED)], channel="", pinned="big|small"),
    "a busy model": Scene(
        [lists(), Busy("Overloaded.", MONDAY + timedelta(minutes=30)), *happy()[1:]], [None, decides("approve")]
    ),
    "an answer that cannot be read": Scene([Nonsense("Half an answer."), *happy()], [decides("approve")]),
}
