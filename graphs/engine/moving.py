"""A run taken from one version of its graph to another: its state mapped by the flow's author, its place kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from graphs.engine.checkpoint import Loaded, Next, Row
from graphs.engine.errors import GraphError, UpdateRefused
from graphs.engine.graph import Graph
from graphs.engine.merge import full_text, raw_values
from graphs.engine.state import State, defaults_of, keys_of, revive
from graphs.engine.values import dump, load

Move = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Maps the JSON values of an old version's state to those of the new one."""


def moved_row(graph: Graph[Any], loaded: Loaded, move: Move, author: str) -> Row:
    """The checkpoint with which a run goes on in `graph`: whole, with the same nodes next.

    Raises `GraphError` if a node that comes next is gone, `UpdateRefused` if the mapped state does not fit.
    """
    head = loaded.rows[-1]
    after = Next.from_text(head.next)
    if gone := [task.node for task in (*after.tasks, *after.after) if task.node not in graph.specs]:
        raise GraphError(f"The run stands before {gone[0]!r}, which {graph.name} v{graph.version} does not have.")
    values = _fit(graph, move(raw_values(loaded.rows)))
    meta = dump({"moved": [loaded.run.version, graph.version], "steps": load(head.meta).get("steps", 0)})
    return Row(head.thread_id, head.step + 1, "update", head.next, full_text(graph.state, values), True, meta, author)


def _fit(graph: Graph[Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    state: type[State] = graph.state
    keys = keys_of(state)
    if unknown := set(raw) - set(keys):
        raise UpdateRefused(f"The mapped state has {sorted(unknown)[0]!r}, which v{graph.version} does not have.")
    try:
        mapped = {name: revive(keys[name].adapter, value) for name, value in raw.items()}
    except ValidationError as error:
        raise UpdateRefused(f"The mapped state does not fit v{graph.version}: {error}") from error
    values = {**defaults_of(state), **mapped}
    if missing := [name for name in keys if name not in values]:
        raise UpdateRefused(f"The mapped state misses {', '.join(missing)}.")
    return values
