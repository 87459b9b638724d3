"""Where a run goes after a superstep: edges, joins, routers, `Command(goto=...)` and `Send`."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import Next, Task
from graphs.engine.commands import Send, Signal
from graphs.engine.errors import NodeFailed, UpdateRefused
from graphs.engine.graph import Branch, Graph
from graphs.engine.shape import END, START
from graphs.engine.state import is_plain
from graphs.engine.values import freeze


@dataclass(slots=True, eq=False, repr=False)
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
    nodes = dict.fromkeys(task.node for task in done)
    for node in nodes:
        _edges(graph, state, node, way)
    for task in done:
        chosen = read_gotos(gotos.get(task.name)) if gotos else []
        if not chosen and task.node in graph.silent:
            raise NodeFailed(f"{task.node} goes nowhere: its only ways on are {graph.specs[task.node].destinations}.")
        for target in chosen:
            _go(way, task.node, target, "goto")
    if graph.joins:
        _joins(graph, nodes, way)
    tasks = [Task(name, step) for name in graph.specs if name in way.targets] if way.targets else []
    if way.sends:
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
    except (Exception, Signal) as error:
        raise NodeFailed(f"The router {branch.name} after {branch.source} raised {_say(error)}.") from error
    if not isinstance(answer, list | tuple | set | frozenset):
        return [answer]
    if not answer:
        raise NodeFailed(f"The router {branch.name} after {branch.source} answered nothing; END is an answer too.")
    return list(answer)


def _target(branch: Branch, answer: Any) -> tuple[str | Send, str]:
    if isinstance(answer, Send):
        if answer.node in branch.targets.values() and answer.node != END:
            check_send(f"The router {branch.name}", answer)
            return answer, "send"
        answer = answer.node
    elif isinstance(answer, Hashable) and answer in branch.targets:
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


def check_send(sender: str, send: Send) -> None:
    """Raise `UpdateRefused` for a payload that is no JSON."""
    if not is_plain(send.payload):
        raise UpdateRefused(f"{sender} sends {send.node!r} something that is no JSON: {send.payload!r}.")


def _joins(graph: Graph[Any], nodes: Collection[str], way: Way) -> None:
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


def write_gotos(targets: Sequence[str | Send]) -> JsonValue:
    """Where a `Command` goes, as JSON."""
    return [[target.node, target.payload] if isinstance(target, Send) else target for target in targets]


def read_gotos(data: Any) -> list[str | Send]:
    """Read what `write_gotos` wrote."""
    return [Send(*target) if isinstance(target, list) else target for target in data or ()]


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
