"""A run as people and code look at it: after one of its steps, or now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphs.engine.checkpoint import EffectRow, Interrupt, Loaded, Row, RunRecord
from graphs.engine.graph import Graph
from graphs.engine.merge import replay
from graphs.engine.state import State, build
from graphs.engine.values import load


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one step.

    `status` is "running", "waiting", "sleeping", "halted" or how it ended; `next` the nodes that come next;
    `interrupts` what is open in its whole tree; `meta` timings, tokens and edges taken.
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


def snapshot_now(graph: Graph[Any], loaded: Loaded, interrupts: tuple[Interrupt, ...]) -> Snapshot:
    """The run as it stands, with what is open."""
    snapshot = snapshot_then(graph, loaded.run, loaded.rows)
    run = loaded.run
    status = run.ending
    if not status and interrupts:
        status = "waiting"
    elif not status:
        status = "halted" if run.error else "running"
    return replace(snapshot, status=status, interrupts=interrupts, effects=loaded.effects, error=run.error)


def snapshot_then(graph: Graph[Any], run: RunRecord, rows: Iterable[Row]) -> Snapshot:
    """The run after the last of `rows`, which start with a snapshot."""
    rows = tuple(rows)
    head, row = replay(graph.state, rows), rows[-1]
    names = tuple(task.name for task in head.next.tasks)
    state = build(graph.state, head.values)
    return Snapshot(run.thread_id, row.step, "", state, names, (), (), row.source, load(row.meta), row.author, row.at)
