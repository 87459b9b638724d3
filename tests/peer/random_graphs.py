"""Random graphs as data, run by our engine and by LangGraph, and what may differ between the two."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest

from graphs.engine import END, START, Graph, Runner, Runtime, Snapshot, State, StateGraph, add, append, merge
from graphs.engine.errors import GraphError, NodeFailed
from graphs.engine.memory import MemoryCheckpointer

PAUSES = 40
"""After so many pauses nobody goes on."""


SAME = "the same"
UNREACHABLE = "unreachable nodes: refused; without them the same"
NEVER_FILLED = "a join was never filled: the rest is not dropped in silence, the run fails"
REFUSED = {
    "can wait for ever": "a join that routing can starve: refused",
    "dead end": "a dead end: refused",
    "can never reach END": "a cycle without a way out: refused",
}


@dataclass(frozen=True)
class Spec:
    """A graph: nodes with what they add to `n`, those that ask, and every kind of edge ("END" for the end)."""

    nodes: Mapping[str, int]
    ask: Sequence[str]
    entry: Sequence[str]
    edges: Mapping[str, Sequence[str]]
    cond: Mapping[str, Sequence[str]]
    joins: Sequence[tuple[Sequence[str], str]]
    pause_before: Sequence[str]
    limit: int = 25

    def without(self, lost: set[str]) -> Spec:
        """The same graph without nodes that nothing leads to."""
        return Spec(
            {name: more for name, more in self.nodes.items() if name not in lost},
            [name for name in self.ask if name not in lost],
            self.entry,
            {name: targets for name, targets in self.edges.items() if name not in lost},
            {name: targets for name, targets in self.cond.items() if name not in lost},
            [(parents, target) for parents, target in self.joins if not {*parents, target} & lost],
            [name for name in self.pause_before if name not in lost],
            self.limit,
        )


@dataclass
class Told:
    """What a run did: how it ended, each superstep's nodes, and at each pause what asked, what came next, and `n`."""

    end: str
    n: int
    supersteps: list[set[str]] = field(default_factory=list)
    pauses: list[tuple[set[str], set[str], int]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


def reachable(spec: Spec) -> set[str]:
    """The nodes that something leads to; a join leads on only if all its parents can run."""
    seen: set[str] = set()
    more = set(spec.entry)
    while more:
        seen |= more
        more = {target for node in seen for target in (*spec.edges.get(node, ()), *spec.cond.get(node, ()))}
        more |= {target for parents, target in spec.joins if {*parents} <= seen}
        more -= {*seen, "END"}
    return seen


class Ours(State):
    """`own` is what a node knew of `n` when it finished: LangGraph's routers see their own node's write alone."""

    n: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []
    own: Annotated[dict[str, int], merge] = {}


def compile_ours(spec: Spec, *, own_view: bool = True) -> Graph[Any]:
    """The graph for our engine; its routers see what LangGraph's would, unless told otherwise."""
    graph = StateGraph(Ours)
    for name, more in spec.nodes.items():
        graph.add_node(name, _node(name, more, name in spec.ask))
    for target in spec.entry:
        graph.add_edge(START, target)
    for name, targets in spec.edges.items():
        for target in targets:
            graph.add_edge(name, END if target == "END" else target)
    for parents, target in spec.joins:
        graph.add_edge(parents, END if target == "END" else target)
    for name, targets in spec.cond.items():
        mapping = {place: END if target == "END" else target for place, target in enumerate(targets)}
        graph.add_conditional_edges(name, _router(name, len(targets), own_view), mapping)
    return graph.compile(name="peer", max_steps=2000, interrupt_before=spec.pause_before)


def _node(name: str, more: int, asks: bool) -> Any:
    def node(state: Ours, runtime: Runtime[Any]) -> Any:
        said = f"{name}:{runtime.interrupt(name)}" if asks else name
        return {"n": more, "log": said, "own": {name: state.n + more}}

    return node


def _router(name: str, size: int, own_view: bool) -> Any:
    return lambda state: (state.own[name] if own_view else state.n) % size


def run_ours(graph: Graph[Any], supersteps: int, pauses: int) -> Told:
    """Run until the end, or as far as the other one went."""
    runner = Runner(MemoryCheckpointer())
    told = Told("", 0)
    try:
        snapshot = runner.invoke(graph, {}, "t", max_steps=supersteps)
        while snapshot.status == "waiting" and len(told.pauses) < pauses:
            told.pauses.append(_pause(snapshot))
            gates = {ask.id: None for ask in snapshot.interrupts if ask.task == "*"}
            snapshot = runner.resume("t", gates or {ask.id: "ok" for ask in snapshot.interrupts})
    except NodeFailed as error:
        told.end = str(error)
    snapshot = runner.get_state("t")
    values = snapshot.values.to_json()
    told.end, told.n, told.log = told.end or snapshot.status, values["n"], values["log"]
    rows = reversed(list(runner.get_state_history("t")))
    told.supersteps = [{name for name, _ in row.meta["ran"]} for row in rows if row.meta and "ran" in row.meta]
    return told


def _pause(snapshot: Snapshot) -> tuple[set[str], set[str], int]:
    asked = {ask.path[-1] for ask in snapshot.interrupts if ask.task != "*"}
    return asked, set(snapshot.next), snapshot.values.to_json()["n"]


class Theirs(TypedDict):
    n: Annotated[int, operator.add]
    log: Annotated[list[str], operator.add]


def run_theirs(spec: Spec) -> Told:
    """The same graph on LangGraph, driven in the same way."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.errors import GraphRecursionError
    from langgraph.types import Command

    graph = _their_graph(spec).compile(checkpointer=InMemorySaver(), interrupt_before=list(spec.pause_before))
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": spec.limit}
    told, given = Told("finished", 0), {"n": 0, "log": []}
    while True:
        try:
            graph.invoke(given, config, durability="sync")
        except GraphRecursionError:
            told.end = "GraphRecursionError"
            break
        state = graph.get_state(config)
        if not state.next:
            break
        if len(told.pauses) == PAUSES:
            told.end = "too many pauses"
            break
        asks = {task.name: interrupt.id for task in state.tasks for interrupt in task.interrupts}
        told.pauses.append((set(asks), set(state.next), state.values["n"]))
        given = Command(resume=dict.fromkeys(asks.values(), "ok")) if asks else None  # type: ignore[assignment]
    values = graph.get_state(config).values
    told.n, told.log, told.supersteps = values["n"], values["log"], _supersteps(graph, config)
    return told


def _supersteps(graph: Any, config: Any) -> list[set[str]]:
    """The nodes of each superstep that is whole."""
    history = reversed(list(graph.get_state_history(config)))
    return [{task.name for task in before.tasks} for before in history if before.next and _was_whole(before)]


def _was_whole(before: Any) -> bool:
    return all(task.result is not None for task in before.tasks) and "__start__" not in before.next


def _their_graph(spec: Spec) -> Any:
    from langgraph.graph import END as END_
    from langgraph.graph import START as START_
    from langgraph.graph import StateGraph as TheirGraph

    graph: Any = TheirGraph(Theirs)
    for name, more in spec.nodes.items():
        graph.add_node(name, _their_node(name, more, name in spec.ask))
    for target in spec.entry:
        graph.add_edge(START_, target)
    for name, targets in spec.edges.items():
        for target in targets:
            graph.add_edge(name, END_ if target == "END" else target)
    for parents, target in spec.joins:
        graph.add_edge(list(parents), END_ if target == "END" else target)
    for name, targets in spec.cond.items():
        mapping = {place: END_ if target == "END" else target for place, target in enumerate(targets)}
        graph.add_conditional_edges(name, _their_router(len(targets)), mapping)
    return graph


def _their_router(size: int) -> Any:
    return lambda state: state["n"] % size


def _their_node(name: str, more: int, asks: bool) -> Any:
    from langgraph.types import interrupt

    def node(state: Theirs) -> Any:
        said = f"{name}:{interrupt(name)}" if asks else name
        return {"n": more, "log": [said]}

    return node


def compare(spec: Spec, theirs: Told) -> str:
    """Run ours and check everything that must be the same; returns the intended difference, or "the same"."""
    lost = set(spec.nodes) - reachable(spec)
    kept = spec.without(lost)
    if lost:
        with _refused("No path leads from START|can wait for ever"):
            compile_ours(spec)
    try:
        graph = compile_ours(kept)
    except GraphError as error:
        return REFUSED[next(part for part in REFUSED if part in str(error))]
    limit = len(theirs.supersteps) if theirs.end == "GraphRecursionError" else 2000
    ours = run_ours(graph, limit, len(theirs.pauses))
    if "a join was never filled" in ours.end:
        assert theirs.end == "finished"
        _check(kept, ours, theirs)
        return NEVER_FILLED
    assert ours.end == {"finished": "finished", "too many pauses": "waiting"}.get(theirs.end, "halted")
    _check(kept, ours, theirs)
    return UNREACHABLE if lost else SAME


def _check(spec: Spec, ours: Told, theirs: Told) -> None:
    size = len(theirs.supersteps)
    assert ours.supersteps[:size] == theirs.supersteps
    assert len(ours.pauses) == len(theirs.pauses)
    for (our_asks, our_next, our_n), (their_asks, their_next, their_n) in zip(ours.pauses, theirs.pauses, strict=True):
        finished = our_next - their_next  # they show what finished siblings wrote; we, not before the step is whole
        assert (our_asks, our_next) == (their_asks, our_next | their_next)
        assert our_n + sum(spec.nodes[name] for name in finished) == their_n
    if theirs.end == "finished":
        assert (ours.n, sorted(ours.log), len(ours.supersteps)) == (theirs.n, sorted(theirs.log), size)


def _refused(part: str) -> Any:
    return pytest.raises(GraphError, match=part)
