"""What the engine's tests share: small graphs, a clock moved by hand, a performer that remembers, stores that die."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol

from graphs.engine import END, START, Effect, Graph, Receipt, Runner, Runtime, Snapshot, State, StateGraph, add, append
from graphs.engine.checkpoint import Checkpointer, Claim, EffectRow, Next
from graphs.engine.errors import ClaimLost, NotNow, StoreFailed
from graphs.engine.memory import MemoryCheckpointer
from graphs.engine.values import load

BEGIN = 1_800_000_000_000_000
SECOND = 1_000_000


class Log(State):
    """Enough state for most tests: what ran, a sum, a free text, receipts."""

    log: Annotated[list[str], append] = []
    n: Annotated[int, add] = 0
    text: str = ""
    receipts: Annotated[list[Receipt], append] = []


class Ping(Effect):
    """An effect of no consequence."""

    kind: ClassVar[str] = "ping"
    color: str = "red"


class Pong(Effect):
    """Another."""

    kind: ClassVar[str] = "pong"


@dataclass
class Clock:
    """Moved by hand, so that leases lapse when a test says so."""

    now: int = BEGIN

    def __call__(self) -> int:
        return self.now

    def lapse(self) -> None:
        self.now += 9 * SECOND


class Settles(Protocol):
    """Records an effect's outcome in a store."""

    def __call__(self, claim: Claim | None, effect: EffectRow, status: Any, detail: str) -> None: ...


@dataclass
class Outbox:
    """Performs every effect as told and remembers it; `says` gives outcomes other than sent, by address."""

    settle: Settles
    says: dict[str, Any] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def perform(self, claim: Claim, effects: Sequence[EffectRow]) -> None:
        for effect in effects:
            if effect.status != "pending":
                continue
            status = self.says.get(effect.address, "sent")
            if status == "sent":
                with self.lock:
                    self.sent.append((effect.kind, effect.address))
            if status != "pending":
                self.settle(claim, effect, status, f"{effect.kind} was {status}")


@dataclass
class Bench:
    """A store, its clock and its way of letting effects out."""

    store: Checkpointer
    clock: Clock
    outbox: Outbox

    def runner(self, *graphs: Graph[Any], deps: Any = None, store: Any = None) -> Runner:
        return Runner(store or self.store, self.outbox, deps, graphs)

    def settle(self, runner: Runner, thread_id: str, status: str) -> None:
        """Somebody finds out what became of every effect that has no outcome yet."""
        for effect in runner.get_state(thread_id).effects:
            self.outbox.settle(None, effect, status, status)


def memory_bench() -> Bench:
    clock = Clock()
    store = MemoryCheckpointer(clock)

    def settle(claim: Claim | None, effect: EffectRow, status: Any, detail: str) -> None:
        store.set_effect(effect, status, {"ref": effect.key, "detail": detail})

    return Bench(store, clock, Outbox(settle))


@dataclass
class Calls:
    """Counts how often something was called; threads may share one."""

    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, name: str) -> int:
        with self.lock:
            self.counts[name] += 1
            return self.counts[name]

    def __getitem__(self, name: str) -> int:
        return self.counts[name]


def logs(name: str, calls: Calls | None = None, **update: Any) -> Callable[[Any], dict[str, Any]]:
    """A node that logs its name."""

    def node(state: Any) -> dict[str, Any]:
        if calls is not None:
            calls(name)
        return {"log": name, **update}

    return node


def asks(name: str, question: Any = "sure?", calls: Calls | None = None) -> Callable[[Any, Runtime[Any]], Any]:
    """A node that asks, then logs its name with the answer."""

    def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        if calls is not None:
            calls(name)
        return {"log": f"{name}:{runtime.interrupt(question)}"}

    return node


def line(*nodes: tuple[str, Any], state: type[State] = Log, name: str = "", **compiled: Any) -> Graph[Any]:
    """Nodes in a row from START to END; without a name it is called after them."""
    graph = StateGraph(state)
    for node, run in nodes:
        graph.add_node(node, run)
    names = [START, *(node for node, _ in nodes), END]
    for source, target in itertools.pairwise(names):
        graph.add_edge(source, target)
    return graph.compile(name=name or f"{state.__name__}:{'+'.join(names[1:-1])}", **compiled)


def fan(branches: Mapping[str, Any], after: Any = None, state: type[State] = Log, **compiled: Any) -> Graph[Any]:
    """Branches side by side from START, joined in `after`."""
    graph = StateGraph(state)
    for name, run in branches.items():
        graph.add_node(name, run)
        graph.add_edge(START, name)
    graph.add_node("after", after or logs("after"))
    graph.add_edge(list(branches), "after")
    graph.add_edge("after", END)
    return graph.compile(name=compiled.pop("name", "fan"), **compiled)


def question(snapshot: Snapshot, node: str | None = None) -> str:
    """The id of the only open question, or of that of a node."""
    found = [ask.id for ask in snapshot.interrupts if node is None or ask.path[-1] == node]
    assert len(found) == 1, snapshot.interrupts
    return found[0]


def sources(runner: Runner, thread_id: str) -> list[str]:
    """Where the checkpoints of a run came from, oldest first."""
    return [snapshot.source for snapshot in runner.get_state_history(thread_id)][::-1]


class Dying:
    """A store whose `at`-th save fails, before it is made or after, and which is back then. It remembers:

    `done` are the tasks whose work is safe, `once` the calls whose results are.
    """

    SAVES = frozenset({"adopt", "settle", "record", "commit", "pause", "end"})

    def __init__(self, inner: Checkpointer, at: int, *, saved: bool = False) -> None:
        self.inner, self.at, self.saved = inner, at, saved
        self.saves = 0
        self.done: set[tuple[str, int, str]] = set()
        self.once: set[tuple[str, int, str, str]] = set()
        self.lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)
        if name not in self.SAVES:
            return call

        def save(*arguments: Any, **named: Any) -> Any:
            with self.lock:
                self.saves += 1
                dies = self.saves == self.at
                if dies and not self.saved:
                    raise StoreFailed("the disk is full")
                tasks = self._tasks(name, arguments)
                result = call(*arguments, **named)
                self.done |= tasks
                if dies:
                    raise StoreFailed("the answer got lost")
                return result

        return save

    def _tasks(self, name: str, arguments: tuple[Any, ...]) -> set[tuple[str, int, str]]:
        if name == "commit" and arguments[1].source == "step":
            thread = arguments[1].thread_id
            tasks = Next.from_text(self.inner.load(thread).rows[-1].next).tasks
            ran = {node for node, _ in load(arguments[1].meta)["ran"]}
            return {(thread, task.since, task.name) for task in tasks if task.name in ran}
        if name not in ("record", "pause"):
            return set()
        writes = arguments[1] if name == "record" else arguments[1].writes
        self.once |= {(w.thread_id, w.step, w.task, w.key) for w in writes if w.key.startswith("once:")}
        return {(w.thread_id, w.step, w.task) for w in writes if w.key == "result"}


def keep_going(runner: Runner, thread_id: str, clock: Clock, answers: Mapping[str, Any], tries: int = 60) -> Snapshot:
    """Do what people and sweeps do: take the run up when its owner has died, and answer what it asks, by node."""
    for _ in range(tries):
        snapshot = runner.get_state(thread_id)
        if snapshot.status not in ("running", "waiting"):
            return snapshot
        try:
            if snapshot.interrupts:
                first = snapshot.interrupts[0]
                runner.resume(thread_id, {first.id: answers[first.path[-1]]})
            else:
                runner.advance(thread_id)
        except (StoreFailed, ClaimLost, NotNow):
            clock.lapse()
    raise AssertionError(f"{thread_id} gets nowhere: {runner.get_state(thread_id)}")


def values(snapshots: Iterable[Snapshot]) -> list[dict[str, Any]]:
    return [snapshot.values.to_json() for snapshot in snapshots]
