"""Whether a graph can work at all: every node reachable, every path able to end, every join certain to fill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphs.engine.errors import GraphError

START = "__start__"
END = "__end__"
GOTO = "goto"


class Edge(NamedTuple):
    """One way from `source` to `target`: conditional if it has a `router`, whose answer is `label`."""

    source: str
    target: str
    label: str = ""
    router: str = ""
    join: str = ""

    @property
    def conditional(self) -> bool:
        """Whether a router or a `Command` decides about it."""
        return bool(self.router)


def check_shape(nodes: Sequence[str], edges: Sequence[Edge], joins: Sequence[tuple[Sequence[str], str]]) -> None:
    """Raise `GraphError` naming what is wrong first."""
    _ends_exist(nodes, edges)
    if not any(edge.source == START for edge in edges):
        raise GraphError("Nothing follows START: add an edge from START to the first node.")
    forward = _neighbours((edge.source, edge.target) for edge in edges)
    if lost := [node for node in nodes if node not in _reach(forward, START)]:
        raise GraphError(f"No path leads from START to {_list(lost)}.")
    if dead := [node for node in nodes if not forward[node]]:
        raise GraphError(f"{_list(dead)} is a dead end: add an edge from it, to END if the run is over there.")
    backward = _neighbours((edge.target, edge.source) for edge in edges)
    if caught := [node for node in nodes if node not in _reach(backward, END)]:
        raise GraphError(f"{_list(caught)} can never reach END: give the cycle a way out.")
    for parents, target in joins:
        _join_fills(nodes, edges, frozenset(parents), target)


def _ends_exist(nodes: Sequence[str], edges: Sequence[Edge]) -> None:
    for edge in edges:
        if (edge.source not in nodes and edge.source != START) or (edge.source == START and edge.join):
            raise GraphError(f"An edge starts at {edge.source!r}, which is no node.")
        if edge.target not in nodes and edge.target != END:
            raise GraphError(f"The edge from {edge.source!r} leads to {edge.target!r}, which is no node.")


def _neighbours(pairs: Iterable[tuple[str, str]]) -> defaultdict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in pairs:
        found[one].add(other)
    return found


def _reach(neighbours: Mapping[str, set[str]], origin: str) -> set[str]:
    seen, todo = {origin}, [origin]
    while todo:
        for node in neighbours.get(todo.pop(), ()):
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen


def _list(nodes: Sequence[str]) -> str:
    return ", ".join(repr(node) for node in nodes)


def _join_fills(nodes: Sequence[str], edges: Sequence[Edge], parents: frozenset[str], target: str) -> None:
    """Refuse a join that can stay half filled because a router may skip some of its parents but not others.

    `certain[n]` are the parents that run whatever the routers say once n has (the loops assumed to end), `possible[n]`
    those that may. A choice is harmless if it decides about no parent, or brings all of them.
    """
    forward = _neighbours((edge.source, edge.target) for edge in edges if edge.target != target)
    possible = {node: _reach(forward, node) & parents for node in (*nodes, START, END)}
    certain = _certain(nodes, edges, parents, target)
    for choices in _choices(edges).values():
        common = frozenset.intersection(*(certain[choice] for choice in choices))
        for choice in choices:
            if possible[choice] - common and not certain[choice] >= parents:
                _refuse_join(parents, target)
    for origin in (START, target):  # each time the join has been used up, it has to fill again or not at all
        if certain[origin] and not certain[origin] >= parents:
            _refuse_join(parents, target)


def _certain(
    nodes: Sequence[str], edges: Sequence[Edge], parents: frozenset[str], target: str
) -> dict[str, frozenset[str]]:
    """The largest solution of: what runs for certain after each node, up to the join's target."""
    certain: dict[str, frozenset[str]] = dict.fromkeys((*nodes, START), parents)
    certain[END] = frozenset()
    plain = _neighbours((edge.source, edge.target) for edge in edges if not edge.conditional and edge.target != target)
    choices = _choices(edges)
    changed = True
    while changed:
        changed = False
        for node in (*nodes, START):
            sure = frozenset({node}) & parents
            sure = sure.union(*(certain[after] for after in plain[node]))
            for (source, _), targets in choices.items():
                if source == node:
                    sure |= frozenset.intersection(*(certain[after] for after in targets))
            if sure != certain[node]:
                certain[node], changed = sure, True
    return certain


def _choices(edges: Sequence[Edge]) -> dict[tuple[str, str], list[str]]:
    """The targets each router chooses from; a `Command` may also choose none, as if it chose END."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for edge in edges:
        if edge.conditional:
            chosen = found[edge.source, edge.router]
            if edge.router == GOTO and not chosen:
                chosen.append(END)
            chosen.append(edge.target)
    return found


def _refuse_join(parents: frozenset[str], target: str) -> None:
    raise GraphError(
        f"The join of {_list(sorted(parents))} into {target!r} can wait for ever: a router may skip some of them. "
        f"Route to all of them or to none."
    )
