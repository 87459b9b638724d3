"""Where a run goes after a superstep: edges, joins, routers, `Command(goto=...)` and `Send`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import Next, Task
from graphs.engine.commands import Send
from graphs.engine.errors import NodeFailed
from graphs.engine.graph import Branch, Graph
from graphs.engine.shape import END, START
from graphs.engine.values import freeze


@dataclass(slots=True)
class Way:
    """What the routing of one superstep adds up to."""

    targets: set[str] = field(default_factory=set)
    sends: list[Send] = field(default_factory=list)
    arrived: dict[str, tuple[str, ...]] = field(default_factory=dict)
    taken: list[list[str]] = field(default_factory=list)  # [source, target, label], for the trace


def entry(graph: Graph[Any], state: Any, step: int) -> tuple[Next, list[list[str]]]:
    """The tasks that follow START."""
    return follow(graph, state, [Task(START, step)], {}, {}, step)


def follow(
    graph: Graph[Any],
    state: Any,
    done: Sequence[Task],
    gotos: Mapping[str, JsonValue],
    arrived: Mapping[str, tuple[str, ...]],
    step: int,
) -> tuple[Next, list[list[str]]]:
    """The tasks that follow the finished ones, in declaration order, and the edges taken with their labels."""
    way = Way(arrived=dict(arrived))
    for node in dict.fromkeys(task.node for task in done):
        _edges(graph, state, node, way)
    for task in done:
        for target in read_gotos(gotos.get(task.name)):
            _go(way, task.node, target, "goto")
    _joins(graph, {task.node for task in done}, way)
    tasks = [Task(name, step) for name in graph.specs if name in way.targets]
    tasks += _sent(way.sends, step)
    tasks.sort(key=lambda task: (graph.specs[task.node].order, task.sent, task.index))
    return Next(tasks=tuple(tasks), arrived=way.arrived), way.taken


def _edges(graph: Graph[Any], state: Any, node: str, way: Way) -> None:
    for target in graph.plain.get(node, ()):
        _go(way, node, target, "")
    for branch in graph.branches.get(node, ()):
        for answer in _answers(branch, state):
            _go(way, node, *_target(branch, answer))


def _answers(branch: Branch, state: Any) -> list[Any]:
    try:
        answer = branch.router(state)
    except Exception as error:
        raise NodeFailed(f"The router {branch.name} after {branch.source} raised {_say(error)}.") from error
    return list(answer) if isinstance(answer, list | tuple | set | frozenset) else [answer]


def _target(branch: Branch, answer: Any) -> tuple[str | Send, str]:
    if isinstance(answer, Send):
        if answer.node in branch.targets.values():
            return answer, "send"
        answer = answer.node
    elif isinstance(answer, str | int | bool | float) and answer in branch.targets:
        return branch.targets[answer], str(answer)
    choices = ", ".join(repr(choice) for choice in branch.targets)
    raise NodeFailed(f"The router {branch.name} after {branch.source} answered {answer!r}; its choices are {choices}.")


def _go(way: Way, source: str, target: str | Send, label: str) -> None:
    if isinstance(target, Send):
        way.sends.append(target)
        way.taken.append([source, target.node, label])
        return
    way.taken.append([source, target, label])
    if target != END:
        way.targets.add(target)


def _joins(graph: Graph[Any], nodes: set[str], way: Way) -> None:
    for join in graph.joins:
        came = [parent for parent in join.parents if parent in nodes]
        if not came:
            continue
        seen = tuple(dict.fromkeys((*way.arrived.pop(join.name, ()), *came)))
        if len(seen) == len(join.parents):
            for parent in join.parents:
                _go(way, parent, join.target, "")
        else:
            way.arrived[join.name] = seen


def _sent(sends: Sequence[Send], step: int) -> list[Task]:
    counts: dict[str, int] = {}
    tasks = []
    for send in sends:
        counts[send.node] = index = counts.get(send.node, -1) + 1
        tasks.append(Task(send.node, step, index, freeze(send.payload), True))
    return tasks


def write_gotos(goto: Any) -> JsonValue:
    """A `Command`'s goto as JSON."""
    targets = [goto] if isinstance(goto, str | Send) else list(goto)
    return [[target.node, target.payload] if isinstance(target, Send) else target for target in targets]


def read_gotos(data: Any) -> list[str | Send]:
    """Read what `write_gotos` wrote."""
    return [Send(*target) if isinstance(target, list) else target for target in data or ()]


def _say(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
