"""Checkpoints that people make: edits on top of a run, and forks that start another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import Checkpointer, EffectRow, Interrupt, Loaded, Next, Row, RunRecord, Task
from graphs.engine.errors import EffectsPending, NotNow, RunError, UnknownThread
from graphs.engine.graph import Graph
from graphs.engine.merge import Head, full_text, merge, message_ids, next_row, replay
from graphs.engine.routing import follow
from graphs.engine.snapshot import Sent
from graphs.engine.state import build, read_update
from graphs.engine.subgraphs import child_id, graph_at, task_of
from graphs.engine.values import dump, load

_MAY_BE_OUT = frozenset({"sent", "sending", "unknown"})


def edited_row(graph: Graph[Any], loaded: Loaded, update: Mapping[str, Any], as_node: str | None, author: str) -> Row:
    """The checkpoint that an edit makes on top of the head."""
    head, thread = replay(graph.state, loaded.rows), loaded.run.thread_id
    if head.next.after:
        raise EffectsPending("The run waits for its effects: edit it when they are settled.", thread)
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
    meta = dump({"as": as_node or "", "steps": loaded.steps})
    return next_row(graph.state, head, change, after, thread, "update", meta, author)[0]


def refuse_jump(thread_id: str, asked: Iterable[Interrupt]) -> None:
    """An edit as a node drops what the run was about to do: not while that waits for an answer."""
    below = [ask.id for ask in asked if ask.task != "*" and f"{ask.thread_id}/".startswith(f"{thread_id}/")]
    if below:
        raise NotNow(f"Nobody would hear the answer to {', '.join(below)} any more: answer first, or fork.", thread_id)


def rows_at(store: Checkpointer, thread_id: str, step: int) -> list[Row]:
    """What the state after `step` is made of, oldest first; raises `LookupError` for a step that is not there."""
    rows = list(reversed(store.history(thread_id, before=step + 1, limit=1)))
    if not rows or rows[-1].step != step:
        raise LookupError(f"{thread_id} has no step {step}.")
    return rows


def forked(
    store: Checkpointer, root_graph: Graph[Any], run: RunRecord, step: int, update: Any, new: str, author: str
) -> tuple[RunRecord, Row]:
    """The new root run of a fork and its first checkpoint; a fork of a child forks its ancestors around it.

    The steps taken up to there and everything spent so far count for the new run too.
    """
    levels = list(_levels(store, run))
    root = store.load(run.root)
    origin: list[JsonValue] = [run.thread_id, step]
    sent: list[JsonValue] = [each.to_json() for each in sent_by(store, root_graph, root.run.thread_id)]
    inner: dict[str, JsonValue] = {}
    used = 0
    for depth, (each, since) in enumerate(levels, 1):
        at = step if depth == 1 else since
        graph = graph_at(root_graph, run.root, each.thread_id)
        rows = rows_at(store, each.thread_id, at)
        name = _new_name(new, run.root, each.thread_id)
        meta: dict[str, JsonValue] = {"fork": origin, "sent": sent} if depth == len(levels) else {"fork": origin}
        row = _forked_row(graph, replay(graph.state, rows), update if depth == 1 else None, name, meta, author, inner)
        if depth == 1:
            used = max(int(load(rows[-1].meta).get("steps", 0)) - len(levels) + 1, 0)
        inner = {task_of(each.thread_id, each.parent)[1]: [row.next, row.body, row.meta]} if each.parent else {}
    left = (root.run.max_steps or root_graph.max_steps) - used
    record = root.run._replace(
        thread_id=new, root=new, ending="", error="", max_steps=left if left > 0 else -1, spent=root.spent
    )
    return record, row


def _levels(store: Checkpointer, run: RunRecord) -> Iterator[tuple[RunRecord, int]]:
    """A run and its ancestors, each with the step of it that activated the one before."""
    since = 0
    while True:
        yield run, since
        if not run.parent:
            return
        since, _ = task_of(run.thread_id, run.parent)
        run = store.run(run.parent)


def _new_name(new: str, root: str, thread_id: str) -> str:
    """What a child is called in the fork, where all tasks start at step 0."""
    parts = thread_id[len(root) :].split("/")[1:]
    return "/".join((new, *(f"0.{part.partition('.')[2]}" for part in parts)))


def _forked_row(
    graph: Graph[Any],
    head: Head,
    update: Any,
    new_thread: str,
    meta: Mapping[str, JsonValue],
    author: str,
    inner: Mapping[str, JsonValue],
) -> Row:
    """The first checkpoint of a fork: the state of a settled step, edited, with its tasks to be run afresh."""
    if head.next.after:
        raise EffectsPending(f"Step {head.step} waits for its effects: fork the step after it, or one before.")
    given = read_update(graph.state, "the fork", update or {})
    change = merge(graph.state, head.values, [("the fork", given)], message_ids(new_thread, 0))
    again = head.next._replace(
        tasks=tuple(task._replace(since=0) for task in head.next.tasks),
        inner={**head.next.inner, **inner},
    )
    text = full_text(graph.state, change.values)
    return Row(new_thread, 0, "fork", again.to_text(), text, True, dump(dict(meta)), author)


def sent_by(store: Checkpointer, root_graph: Graph[Any], root: str) -> list[Sent]:
    """What a line and the ones before it have sent or may have sent, oldest first."""
    found: dict[str, Sent] = {sent.key: sent for sent in sent_before(store, root)}
    for thread, step in _effect_steps(store, root_graph, root):
        for row in store.effects(thread, step):
            if row.status in _MAY_BE_OUT:
                found[row.key] = _sent(row)
    return list(found.values())


def sent_before(store: Checkpointer, root: str) -> list[Sent]:
    """What the lines that a run was forked from had sent or may have sent by then."""
    first = store.history(root, before=1)
    return [Sent.from_json(each) for each in load(first[0].meta).get("sent", ())] if first else []


def _sent(row: EffectRow) -> Sent:
    return Sent(key=row.key, kind=row.kind, to=row.address, content=row.content, status=row.status)


def _effect_steps(store: Checkpointer, graph: Graph[Any], thread_id: str) -> Iterator[tuple[str, int]]:
    """Every step of a tree that was committed with effects."""
    children: dict[str, Graph[Any]] = {}
    for row in reversed(store.history(thread_id)):
        after = Next.from_text(row.next)
        if after.after:
            yield thread_id, row.step
        for task in after.tasks:
            if (inner := graph.specs[task.node].subgraph) is not None:
                children[child_id(thread_id, task)] = inner
    for child, inner in children.items():
        try:
            yield from _effect_steps(store, inner, child)
        except UnknownThread:
            continue
