"""The hike planner's own nodes and routers on LangGraph, and all that has to be written around them for that."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_store, get_stream_writer
from langgraph.func import task
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Overwrite as TheirOverwrite
from langgraph.types import RetryPolicy as TheirRetryPolicy
from langgraph.types import interrupt
from pydantic import JsonValue, TypeAdapter

from graphs.engine import Command, Effect, Graph, Halt, Later, Message, Overwrite, Receipt, RetryPolicy
from graphs.engine.checkpoint import RunRecord
from graphs.engine.graph import NodeSpec
from graphs.engine.values import freeze
from graphs.flow import Decision
from graphs.hike.prompts import Remembered
from graphs.hike.rules import Limits, Plan
from graphs.hike.state import Hike, Verdict
from graphs.ports import Deps, Forecast, Trailhead

DELIVER = "deliver"

# LangGraph revives objects from the database by the names of their classes, and warns of those nobody has listed.
KEPT = (Decision, Forecast, Limits, Message, Plan, Receipt, Remembered, Trailhead, Verdict)


class Ported(Hike):
    """A hike with what LangGraph has no place for: who the run belongs to, and what is to be sent."""

    about: dict[str, str] = {}
    outbox: list[dict[str, Any]] = []


class Halted(Exception):
    """A node cannot go on until a person sees to it."""


@dataclass(frozen=True)
class Memory:
    """`runtime.memory` on LangGraph's store: written at once, whatever becomes of the step."""

    run: RunRecord

    @property
    def namespace(self) -> tuple[str, ...]:
        return self.run.flow, self.run.channel or self.run.who

    def get(self, key: str) -> JsonValue:
        item = get_store().get(self.namespace, key)
        return freeze(item.value["value"]) if item else None

    def put(self, key: str, value: JsonValue) -> None:
        get_store().put(self.namespace, key, {"value": value})


@dataclass(frozen=True)
class Runtime:
    """What our nodes are handed, made of what LangGraph has."""

    deps: Deps
    run: RunRecord
    clock: Callable[[], datetime]

    @property
    def thread_id(self) -> str:
        return self.run.thread_id

    @property
    def memory(self) -> Memory:
        return Memory(self.run)

    def stream(self, data: JsonValue) -> None:
        get_stream_writer()(data)

    def now(self) -> datetime:
        now: datetime = self.once("now", lambda: self.clock().astimezone(UTC), datetime)
        return now

    def once(self, name: str, call: Callable[[], Any], kind: Any = JsonValue, spent: Any = None) -> Any:
        """Call, and get the record instead when the node is entered again."""
        adapter: TypeAdapter[Any] = TypeAdapter(kind)

        def recorded() -> Any:
            return adapter.dump_python(adapter.validate_python(call()), mode="json")

        return freeze(adapter.validate_python(_kept(name, recorded)))

    def interrupt(self, ask: Any) -> Any:
        """The answer is wrapped, for LangGraph takes a bare None for no answer."""
        reply = interrupt({"asks": ask.asks, "payload": ask.to_json()})
        return ask.answered(freeze(reply["answer"]))


def _kept(name: str, call: Callable[[], Any]) -> Any:
    """Call as a task: what it returned is kept for a node that is entered again after a pause or a failure."""
    wrapped: Any = task
    return wrapped(call, name=name)().result()


@dataclass(frozen=True)
class World:
    """What every node of a ported graph shares."""

    deps: Deps
    clock: Callable[[], datetime]
    send: Callable[[Mapping[str, Any]], Mapping[str, JsonValue]]


def ported(graph: Graph[Any], sending: str, world: World) -> StateGraph[Any]:
    """Our graph, with a node of its own after `sending` that performs the effects."""
    theirs: StateGraph[Any] = StateGraph(Ported)
    for name, spec in graph.specs.items():
        theirs.add_node(name, _node(spec, graph, world), retry_policy=_retry(spec.retry))
    theirs.add_node(DELIVER, _deliver(world))
    theirs.add_edge(sending, DELIVER)
    after = {sending: DELIVER}
    for source, targets in graph.plain.items():
        for target in targets:
            theirs.add_edge(after.get(source, source), target)
    for source, branches in graph.branches.items():
        for branch in branches:
            theirs.add_conditional_edges(after.get(source, source), branch.router, dict(branch.targets))
    return theirs


def _node(spec: NodeSpec, graph: Graph[Any], world: World) -> Any:
    run: Any = spec.run
    takes_runtime = len(inspect.signature(run).parameters) > 1

    def node(state: Ported) -> dict[str, Any]:
        about: dict[str, Any] = {**state.about}
        record = RunRecord(flow=graph.name, version=graph.version, fingerprint=graph.fingerprint, **about)
        runtime = Runtime(world.deps, record, world.clock)
        return _update(_patiently(lambda: run(state, runtime) if takes_runtime else run(state)))

    return node


def _patiently(call: Callable[[], Any]) -> Any:
    """LangGraph knows no sleep: it is a question that a clock answers. Nor does it know a halt: it is an error."""
    while True:
        try:
            return call()
        except Later as later:
            interrupt({"until": later.until.isoformat(), "reason": later.reason})
        except Halt as halt:
            raise Halted(halt.reason) from halt


def _update(returned: Any) -> dict[str, Any]:
    command = returned if isinstance(returned, Command) else Command(update=returned or {})
    update = {
        name: TheirOverwrite(value.value) if isinstance(value, Overwrite) else value
        for name, value in command.update.items()
    }
    if command.effects:
        update["outbox"] = [_outgoing(effect) for effect in command.effects]
    return update


def _outgoing(effect: Effect) -> dict[str, Any]:
    return {"kind": effect.kind, **effect.to_json()}


def _deliver(world: World) -> Any:
    """Each is a task of its own, so that one that has returned is not sent again."""

    def node(state: Ported) -> dict[str, Any]:
        update: dict[str, Any] = {"outbox": []}
        for effect in state.outbox:
            receipt = Receipt.from_json(_kept(effect["kind"], partial(world.send, effect)))
            update.setdefault(effect["into"], []).append(receipt)
        return update

    return node


def _retry(policy: RetryPolicy | None) -> TheirRetryPolicy | None:
    if policy is None:
        return None
    return TheirRetryPolicy(
        initial_interval=policy.interval,
        backoff_factor=policy.backoff,
        max_attempts=policy.max_attempts,
        jitter=False,
        retry_on=policy.retry_on,
    )


@contextmanager
def opened(folder: Path, graph: StateGraph[Any]) -> Iterator[CompiledStateGraph[Any]]:
    """The graph on the databases in a folder, opened anew as another process would."""
    with (
        closing(_connected(folder / "checkpoints.db")) as kept,
        closing(_connected(folder / "memories.db")) as memories,
    ):
        store = SqliteStore(memories)
        store.setup()
        serde = JsonPlusSerializer(allowed_msgpack_modules=KEPT)
        yield graph.compile(checkpointer=SqliteSaver(kept, serde=serde), store=store)


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, check_same_thread=False, isolation_level=None)
