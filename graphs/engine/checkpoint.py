"""The engine's port to whatever remembers runs, and the values that cross it: everything in JSON text, nothing of SQL.

A store speaks of *claims*. Whoever advances a run holds one; every save under a claim checks and counts up the root
run's `rev`, so that a late owner's save is refused whole (`ClaimLost`). Child runs are saved under their root's claim.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import JsonValue

from graphs.engine.values import FrozenDict, dump, load

Source = Literal["input", "step", "update", "receipt", "fork"]
EffectStatus = Literal["pending", "sending", "sent", "failed", "unknown", "cancelled"]
SETTLED: frozenset[str] = frozenset({"sent", "failed", "cancelled"})
NONE: Mapping[str, Any] = FrozenDict()


class Task(NamedTuple):
    """One activation of a node: `since` is the step that activated it, `index` its place among `Send`s to the node."""

    node: str
    since: int
    index: int = 0  # type: ignore[assignment]
    payload: JsonValue = None
    sent: bool = False  # activated by a Send: `payload` is its input

    @property
    def name(self) -> str:
        """The task's name within its step."""
        return f"{self.node}#{self.index}" if self.sent else self.node


def task_hash(thread_id: str, task: Task, *more: object) -> str:
    """A short name made from a task alone, the same in every process."""
    text = "\x1f".join((thread_id, str(task.since), task.name, *map(str, more)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Next(NamedTuple):
    """What happens after a checkpoint.

    `tasks` run in the next superstep. If instead `after` is filled, these tasks have finished and their effects are
    outstanding: once they are settled the routers run. `gotos` are their `Command(goto=...)`, `arrived` the parents
    that each half-filled join has seen, `inner` the first checkpoints of child runs that a fork starts in the middle.
    """

    tasks: tuple[Task, ...] = ()
    after: tuple[Task, ...] = ()
    gotos: Mapping[str, JsonValue] = NONE
    arrived: Mapping[str, tuple[str, ...]] = NONE
    inner: Mapping[str, JsonValue] = NONE

    def to_text(self) -> str:
        """JSON for the store; empty parts are left out."""
        parts: dict[str, Any] = {}
        for name in ("tasks", "after"):
            if tasks := getattr(self, name):
                parts[name] = [[t.node, t.since, t.index, t.payload, t.sent] for t in tasks]
        if self.gotos:
            parts["gotos"] = dict(self.gotos)
        if self.arrived:
            parts["arrived"] = {join: list(parents) for join, parents in self.arrived.items()}
        if self.inner:
            parts["inner"] = dict(self.inner)
        return dump(parts)

    @classmethod
    def from_text(cls, text: str) -> Next:
        """Read what `to_text` wrote."""
        parts = load(text)
        return cls(
            tasks=tuple(Task(*task) for task in parts.get("tasks", ())),
            after=tuple(Task(*task) for task in parts.get("after", ())),
            gotos=parts.get("gotos", {}),
            arrived={join: tuple(parents) for join, parents in parts.get("arrived", {}).items()},
            inner=parts.get("inner", {}),
        )


class Row(NamedTuple):
    """One checkpoint as it is stored: `body` is a full snapshot (`full`) or what changed since the row before.

    `at` is microseconds since the epoch, given by the store when it saves (0 until then).
    """

    thread_id: str
    step: int
    source: Source
    next: str
    body: str
    full: bool
    meta: str = "{}"
    author: str = ""
    at: int = 0


class Spent(NamedTuple):
    """What a recorded call cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.calls or self.input_tokens or self.output_tokens)

    def __add__(self, other: Spent) -> Spent:  # type: ignore[override]
        return Spent(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


NOTHING_SPENT = Spent()


class RunRecord(NamedTuple):
    """A run as the engine sees it. `root` is itself for a root run; `ending` is "" while it goes on.

    `spent` is what the line it was forked from had spent: a store counts it from the start.
    """

    thread_id: str
    flow: str
    version: int
    fingerprint: str
    root: str
    parent: str = ""
    model: str = ""
    who: str = ""
    team: str = ""
    channel: str = ""
    max_steps: int = 0
    pause_before: tuple[str, ...] = ()
    ending: str = ""
    error: str = ""
    spent: Spent = NOTHING_SPENT


class PendingWrite(NamedTuple):
    """One fact of a half-done superstep, append-only; `value` is JSON text.

    Keys: `once:NAME:N`, `asked:PLACE`, `answer:PLACE`, `later:N`, `result`.
    """

    thread_id: str
    step: int
    task: str
    key: str
    value: str


class Interrupt(NamedTuple):
    """A node's question to the outside.

    `asks` is "review", "question" or "signal" (plain JSON, for a machine); `payload` the question as JSON; `path` the
    nodes that lead to it through subgraphs.
    """

    id: str
    thread_id: str
    step: int
    task: str
    place: str
    asks: str
    payload: JsonValue
    path: tuple[str, ...] = ()


class EffectRow(NamedTuple):
    """One effect in the ledger; `step` is the checkpoint it was committed with, `n` its place there."""

    thread_id: str
    step: int
    n: int
    root: str
    kind: str
    address: str
    content: str
    payload: str
    into: str
    status: EffectStatus = "pending"
    receipt: str = ""
    look_at: int = 0  # when a lost answer may be looked up, microseconds; 0 unless sending

    @property
    def key(self) -> str:
        """The effect's name everywhere: thread, step and place."""
        return f"{self.thread_id}:{self.step}:{self.n}"


class Memory(NamedTuple):
    """JSON that outlives runs; `value` is JSON text, None forgets it."""

    namespace: str
    key: str
    value: str | None


class Loaded(NamedTuple):
    """All there is to know about one run of a tree: its rows from the last snapshot to the head, oldest first."""

    run: RunRecord
    rows: tuple[Row, ...]
    writes: tuple[PendingWrite, ...] = ()
    effects: tuple[EffectRow, ...] = ()
    open: frozenset[str] = frozenset()  # ids of interrupts still open (pending, or approved with undo possible)
    steps: int = 0  # supersteps the whole tree has taken
    spent: Spent = NOTHING_SPENT


@dataclass(slots=True, eq=False, repr=False)
class Claim:
    """The right to advance one root run, shared by all branches of one `advance`."""

    thread_id: str
    id: str
    rev: int
    loaded: Loaded | None = None  # the run as it was claimed, until it is advanced
    lost: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def turn(self) -> Iterator[int]:
        """Take the next rev: hold the lock while handing a save to the writer, so that saves queue in rev order."""
        with self.lock:
            yield self.rev
            self.rev += 1


class Pause(NamedTuple):
    """A superstep that could not end: what is done is kept, what is asked is opened, the run is released."""

    writes: Sequence[PendingWrite] = ()
    interrupts: Sequence[Interrupt] = ()
    superseded: Sequence[str] = ()
    wake_at: int | None = None
    error: str = ""


class Checkpointer(Protocol):
    """Remembers runs. Every method is one transaction; times are microseconds since the epoch on the store's clock."""

    def now(self) -> int:
        """The store's clock."""
        ...

    def create(self, run: RunRecord, row: Row, *, due: bool = True) -> None:
        """A new root run with its first checkpoint, due now. Raises `ThreadExists`."""
        ...

    def begin(self, run: RunRecord, row: Row) -> Claim:
        """A new root run with its first checkpoint, claimed and loaded by whoever makes it. Raises `ThreadExists`."""
        ...

    def claim(self, thread_id: str, known: Mapping[tuple[str, int], str]) -> Claim:
        """Take the run over, take in decisions whose undo has passed, and load it.

        Such decisions become `final`, their answers pending writes. Only if the run has not ended, its version and
        fingerprint are in `known`, and it is due and free or held under a lapsed lease. Raises `UnknownThread`,
        `RunEnded`, `UnknownVersion` or `NotNow`.
        """
        ...

    def run(self, thread_id: str) -> RunRecord:
        """A run's record alone. Raises `UnknownThread`."""
        ...

    def load(self, thread_id: str) -> Loaded:
        """A run with all it needs to go on. Raises `UnknownThread`."""
        ...

    def record(self, claim: Claim, writes: Sequence[PendingWrite], spent: Spent = NOTHING_SPENT) -> None:
        """Keep what a task has done so far."""
        ...

    def adopt(self, claim: Claim, run: RunRecord, row: Row) -> None:
        """A new child run under its root's claim; one that exists already is left as it is."""
        ...

    def commit(
        self,
        claim: Claim,
        row: Row,
        effects: Sequence[EffectRow] = (),
        memories: Sequence[Memory] = (),
        ending: str = "",
    ) -> int:
        """Step whole: the next checkpoint with its effects and memories, and the run ended if that was its last.

        Says when it was saved.
        """
        ...

    def effects(self, thread_id: str, step: int) -> tuple[EffectRow, ...]:
        """The effects committed with one checkpoint, in order."""
        ...

    def pause(self, claim: Claim, pause: Pause) -> None:
        """Keep, ask and release. `due_at` is only ever lowered: to `wake_at` or the earliest undo still open."""
        ...

    def end(self, claim: Claim, thread_id: str, ending: str, error: str = "") -> None:
        """End a run: the root with its whole tree, open approvals and pending effects closed; a child alone."""
        ...

    def answer(self, thread_id: str, interrupt_id: str, value: JsonValue, by: str = "") -> None:
        """Answer an open interrupt and make the root due. Raises the distinct errors of `graphs.engine.errors`."""
        ...

    def interrupts(self, thread_id: str) -> tuple[Interrupt, ...]:
        """The open interrupts of the whole tree, oldest first."""
        ...

    def reopen(self, thread_id: str, max_steps: int | None = None) -> None:
        """Make a failed or halted run due again, what it had open when it failed included."""
        ...

    def edit(self, thread_id: str, row: Row) -> None:
        """Put an edited checkpoint on top of a run nobody is advancing. Raises `NotNow`."""
        ...

    def history(self, thread_id: str, before: int | None = None, limit: int | None = None) -> tuple[Row, ...]:
        """Rows from the head down to (and with) the snapshot that the oldest asked-for row needs, newest first."""
        ...

    def recall(self, namespace: str, key: str) -> JsonValue:
        """What a memory holds, or None."""
        ...

    def delete(self, thread_id: str) -> None:
        """Forget a root run and its children. Raises `EffectsPending`."""
        ...

    def prune(self, thread_id: str) -> None:
        """Forget checkpoints before the last snapshot, keeping the head resumable."""
        ...
