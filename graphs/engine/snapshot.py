"""A run as people and code look at it: after one of its steps, or now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphs.engine.checkpoint import Checkpointer, EffectRow, Interrupt, Loaded, Next, Row, RunRecord
from graphs.engine.errors import UnknownThread
from graphs.engine.graph import Graph
from graphs.engine.merge import Head, replay
from graphs.engine.state import State, build
from graphs.engine.subgraphs import child_id
from graphs.engine.values import Value, load


class Snapshot(NamedTuple):
    """A run at one step.

    `status` is "running", "waiting", "sleeping" (`wake_at` in microseconds says until when), "halted" or how it ended;
    `next` the tasks that come next; `interrupts` what is open in its whole tree; `meta` timings, tokens, edges taken.
    """

    thread_id: str
    step: int
    status: str
    values: State
    next: tuple[str, ...]
    interrupts: tuple[Interrupt, ...] = ()
    effects: tuple[EffectRow, ...] = ()
    source: str = ""
    meta: Mapping[str, Any] | None = None
    author: str = ""
    at: int = 0
    error: str = ""
    wake_at: int | None = None


class Sent(Value):
    """What an earlier line of a fork has sent, or may have sent (`status` sending or unknown)."""

    key: str
    kind: str
    to: str
    content: str
    status: str


def snapshot_now(
    graph: Graph[Any],
    loaded: Loaded,
    interrupts: tuple[Interrupt, ...],
    wake_at: int | None = None,
    head: Head | None = None,
) -> Snapshot:
    """The run as it stands, with what is open; `head` is its last checkpoint where that is in memory already."""
    snapshot = snapshot_then(graph, loaded.run, loaded.rows, head)
    run = loaded.run
    status = run.ending
    if not status and interrupts:
        status = "waiting"
    elif not status and wake_at is not None:
        status = "sleeping"
    elif not status:
        status = "halted" if run.error else "running"
    wake_at = wake_at if status == "sleeping" else None
    return snapshot._replace(
        status=status, interrupts=interrupts, effects=loaded.effects, error=run.error, wake_at=wake_at
    )


def snapshot_then(graph: Graph[Any], run: RunRecord, rows: Iterable[Row], head: Head | None = None) -> Snapshot:
    """The run after the last of `rows`, which start with a snapshot."""
    rows = tuple(rows)
    row = rows[-1]
    if head is None or head.step != row.step:
        head = replay(graph.state, rows)
    names = tuple(task.name for task in head.next.tasks)
    state = build(graph.state, head.values)
    return Snapshot(run.thread_id, row.step, "", state, names, (), (), row.source, load(row.meta), row.author, row.at)


def wakes_at(store: Checkpointer, graph: Graph[Any], loaded: Loaded) -> int | None:
    """When the first of the tasks that sleep will go on, in the run and its children; None if none sleeps."""
    tasks = Next.from_text(loaded.rows[-1].next).tasks
    names = {(task.since, task.name) for task in tasks}
    times = [int(w.value) for w in loaded.writes if w.key.startswith("later:") and (w.step, w.task) in names]
    for task in tasks:
        if (inner := graph.specs[task.node].subgraph) is not None:
            times += _child_wakes(store, inner, child_id(loaded.run.thread_id, task))
    now = store.now()
    return min((time for time in times if time > now), default=None)


def _child_wakes(store: Checkpointer, graph: Graph[Any], thread_id: str) -> Iterator[int]:
    try:
        wake_at = wakes_at(store, graph, store.load(thread_id))
    except UnknownThread:
        return
    if wake_at is not None:
        yield wake_at
