"""Graphs as nodes: where the run of a child lives, and what crosses between parent and child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphs.engine.checkpoint import Next, Row, RunRecord, Task
from graphs.engine.errors import NodeFailed
from graphs.engine.graph import Graph, NodeSpec
from graphs.engine.merge import first_values, full_text, message_ids
from graphs.engine.routing import entry
from graphs.engine.state import State, build, read_update
from graphs.engine.values import dump


def child_id(parent: str, task: Task) -> str:
    """The thread of the child run that a task starts."""
    return f"{parent}/{task.since}.{task.name}"


def task_of(thread_id: str, parent: str) -> tuple[int, str]:
    """The step that activated a child run in its parent, and the name of the task."""
    since, _, name = thread_id[len(parent) + 1 :].partition(".")
    return int(since), name


def graph_at(root: Graph[Any], root_id: str, thread_id: str) -> Graph[Any]:
    """The graph of a run of a tree, found by its place in it: two graphs may have one name."""
    graph = root
    for part in thread_id[len(root_id) :].split("/")[1:]:
        name = part.partition(".")[2].partition("#")[0]
        inner = graph.specs[name].subgraph
        assert inner is not None
        graph = inner
    return graph


def child_record(graph: Graph[Any], parent: RunRecord, thread_id: str) -> RunRecord:
    """The record of a child run: whatever its parent was started with, it was too."""
    return RunRecord(
        thread_id=thread_id,
        flow=graph.name,
        version=graph.version,
        fingerprint=graph.fingerprint,
        root=parent.root,
        parent=parent.thread_id,
        model=parent.model,
        who=parent.who,
        team=parent.team,
        channel=parent.channel,
    )


def first_row(spec: NodeSpec, graph: Graph[Any], after: Next, task: Task, given: Any, thread_id: str) -> Row:
    """The first checkpoint of a child: what `enter` makes of the parent's state, or where a fork takes the child up."""
    if (forked := after.inner.get(task.name)) is not None:
        next_, body, meta = (str(part) for part in forked) if isinstance(forked, list) else ("", "", "")
        return Row(thread_id, 0, "fork", next_, body, True, meta)
    return input_row(graph, mapped(spec.name, "enter", spec.enter, given), thread_id)


def input_row(graph: Graph[Any], given: Mapping[str, Any], thread_id: str, author: str = "") -> Row:
    """The first checkpoint of a run. Raises `UpdateRefused`, or `NodeFailed` from a router after START."""
    update = read_update(graph.state, "The input", given)
    change = first_values(graph.state, update, message_ids(thread_id, 0))
    after, took = entry(graph, build(graph.state, change.values), 0)
    text = full_text(graph.state, change.values)
    return Row(thread_id, 0, "input", after.to_text(), text, True, dump({"took": took}), author)


def leaving(spec: NodeSpec, state: type[State], child: State) -> dict[str, Any]:
    """The update that a finished child is to its parent. Raises `NodeFailed` or `UpdateRefused`."""
    return read_update(state, spec.name, mapped(spec.name, "leave", spec.leave, child))


def mapped(node: str, name: str, mapping: Callable[[Any], Mapping[str, Any]] | None, given: Any) -> Mapping[str, Any]:
    """What a mapping makes of a state; raises `NodeFailed` naming it."""
    assert mapping is not None
    try:
        return mapping(given)
    except Exception as error:
        raise NodeFailed(f"{name} of {node} raised {type(error).__name__}: {error}") from error
