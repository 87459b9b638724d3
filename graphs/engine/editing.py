"""Checkpoints that people make: edits on top of a run, and forks that start another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphs.engine.checkpoint import Loaded, Row, Task
from graphs.engine.errors import EffectsPending, RunError
from graphs.engine.graph import Graph
from graphs.engine.merge import Head, full_text, merge, message_ids, next_row, replay
from graphs.engine.routing import follow
from graphs.engine.state import build, read_update
from graphs.engine.values import dump


def edited_row(graph: Graph[Any], loaded: Loaded, update: Mapping[str, Any], as_node: str | None, author: str) -> Row:
    """The checkpoint that an edit makes on top of the head."""
    head, thread = replay(graph.state, loaded.rows), loaded.run.thread_id
    if as_node is not None and as_node not in graph.specs:
        raise RunError(f"{as_node!r} is no node of {graph.name}; it has {', '.join(graph.nodes)}.", thread)
    step, writer = head.step + 1, as_node or "the edit"
    change = merge(
        graph.state, head.values, [(writer, read_update(graph.state, writer, update))], message_ids(thread, step)
    )
    after = head.next
    if as_node is not None:
        after, _ = follow(
            graph, build(graph.state, change.values), [Task(as_node, head.step)], {}, head.next.arrived, step
        )
    row = Row(thread, step, "update", "", "", False, dump({"as": as_node or ""}), author)
    return next_row(graph.state, head, change, after, row)[0]


def forked_row(graph: Graph[Any], head: Head, update: Any, new_thread: str, origin: str, author: str) -> Row:
    """The first checkpoint of a fork: the state of a settled step, edited, with its tasks to be run afresh."""
    if head.next.after:
        raise EffectsPending(f"Step {head.step} waits for its effects: fork the step after it, or one before.", origin)
    given = read_update(graph.state, "the fork", update or {})
    change = merge(graph.state, head.values, [("the fork", given)], message_ids(new_thread, 0))
    again = replace(head.next, tasks=tuple(replace(task, since=0) for task in head.next.tasks))
    text, meta = full_text(graph.state, change.values), dump({"fork": [origin, head.step]})
    return Row(new_thread, 0, "fork", again.to_text(), text, True, meta, author)
