"""The graph as data: nodes, edges, joins and routers, checked as a whole when it is compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from graphs.engine.draw import draw_mermaid
from graphs.engine.errors import GraphError
from graphs.engine.json_types import type_name
from graphs.engine.shape import END, GOTO, START, Edge, check_shape
from graphs.engine.state import State, keys_of
from graphs.engine.values import dump

S = TypeVar("S", bound=State)

Node = Callable[..., Any]
Router = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Try a node again when it raises one of `retry_on`: `max_attempts` in all, waits in seconds, growing."""

    max_attempts: int = 3
    interval: float = 0.2
    backoff: float = 2.0
    retry_on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError)

    def wait(self, attempt: int) -> float:
        """Seconds to wait after the given attempt (1 is the first)."""
        return float(self.interval * self.backoff ** (attempt - 1))


class NodeSpec(NamedTuple):
    """One node: a function, or a compiled graph with `enter(state) -> input` and `leave(child state) -> update`."""

    name: str
    run: Node | None
    order: int
    retry: RetryPolicy | None = None
    timeout: float | None = None
    destinations: tuple[str, ...] = ()
    subgraph: Graph[Any] | None = None
    enter: Callable[[Any], Mapping[str, Any]] | None = None
    leave: Callable[[Any], Mapping[str, Any]] | None = None


class Branch(NamedTuple):
    """A router and what its answers mean."""

    source: str
    router: Router
    targets: Mapping[Any, str]

    @property
    def name(self) -> str:
        """The router's own name, for messages and drawings."""
        return getattr(self.router, "__name__", type(self.router).__name__)


class Join(NamedTuple):
    """An edge from several nodes at once: `target` runs when every parent has."""

    parents: tuple[str, ...]
    target: str

    @property
    def name(self) -> str:
        """The join's name among those that are half filled."""
        return f"{'+'.join(self.parents)}>{self.target}"


@dataclass(frozen=True)
class Graph(Generic[S]):
    """A compiled graph: immutable, shared by all runs and threads."""

    name: str
    version: int
    state: type[S]
    specs: Mapping[str, NodeSpec]
    plain: Mapping[str, tuple[str, ...]]
    joins: tuple[Join, ...]
    branches: Mapping[str, tuple[Branch, ...]]
    max_steps: int
    interrupt_before: frozenset[str]
    fingerprint: str = field(default="", compare=False)
    silent: frozenset[str] = frozenset()  # nodes that must say where to go: nothing but their Command leads on

    @property
    def nodes(self) -> tuple[str, ...]:
        """Node names in declaration order."""
        return tuple(self.specs)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every way from one node to another, conditional ones with their label."""
        return _edges(self.plain, self.joins, self.branches, self.specs)

    def draw_mermaid(self, highlight: str | Sequence[str] | None = None) -> str:
        """The graph as Mermaid flowchart text, `highlight`ed nodes marked."""
        names = (highlight,) if isinstance(highlight, str) else tuple(highlight or ())
        inner = {name for name, spec in self.specs.items() if spec.subgraph is not None}
        return draw_mermaid(self.nodes, self.edges, inner, names)


class StateGraph(Generic[S]):
    """Collects nodes and edges; `compile` checks the whole and returns a `Graph`."""

    def __init__(self, state: type[S]) -> None:
        if not (isinstance(state, type) and issubclass(state, State)):
            raise GraphError(f"{state!r} is no State: derive your state from graphs.engine.State.")
        keys_of(state)
        self._state = state
        self._specs: dict[str, NodeSpec] = {}
        self._plain: dict[str, list[str]] = {}
        self._joins: list[Join] = []
        self._branches: dict[str, list[Branch]] = {}

    def add_node(
        self,
        name: str,
        run: Node | Graph[Any],
        *,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        destinations: Sequence[str] = (),
        enter: Callable[[Any], Mapping[str, Any]] | None = None,
        leave: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> StateGraph[S]:
        """Add a node. `timeout` in seconds; `destinations` are the nodes its `Command(goto=...)` may name."""
        if not isinstance(name, str) or not name.strip() or name in (START, END) or "#" in name or "/" in name:
            raise GraphError(f"{name!r} cannot name a node: use a plain name without '#' and '/', not START or END.")
        if name in self._specs:
            raise GraphError(f"There are two nodes called {name!r}.")
        child = run if isinstance(run, Graph) else None
        if child and (enter is None or leave is None):
            raise GraphError(f"The graph in node {name!r} needs enter(state) -> input and leave(state) -> update.")
        if child and (retry or timeout or destinations):
            raise GraphError(f"The graph in node {name!r} takes no retry, timeout or destinations; its own nodes do.")
        if not child and (not callable(run) or enter or leave):
            raise GraphError(f"Node {name!r} is no function of the state, or maps a state that only graphs map.")
        function = None if isinstance(run, Graph) else run
        self._specs[name] = NodeSpec(
            name, function, len(self._specs), retry, timeout, tuple(destinations), child, enter, leave
        )
        return self

    def add_edge(self, source: str | Sequence[str], target: str) -> StateGraph[S]:
        """Add an edge; a list of sources is a join: the target runs when all of them have."""
        if isinstance(source, str):
            if target in self._plain.setdefault(source, []):
                raise GraphError(f"The edge from {source!r} to {target!r} is there twice.")
            self._plain[source].append(target)
            return self
        join = Join(tuple(source), target)
        if len(set(join.parents)) != len(join.parents) or not join.parents:
            raise GraphError(f"The join into {target!r} names no parents, or one twice.")
        if any(set(other.parents) == set(join.parents) and other.target == target for other in self._joins):
            raise GraphError(f"The join of {', '.join(join.parents)} into {target!r} is there twice.")
        self._joins.append(join)
        return self

    def add_conditional_edges(
        self, source: str, router: Router, targets: Mapping[Any, str] | Sequence[str]
    ) -> StateGraph[S]:
        """Add a router: `targets` maps every answer it may give to a node or END."""
        mapping = dict(targets) if isinstance(targets, Mapping) else {target: target for target in targets}
        if not mapping:
            raise GraphError(f"The router of {source!r} declares no targets; give a mapping of answers to nodes.")
        branch = Branch(source, router, mapping)
        if any(other.router == router for other in self._branches.setdefault(source, [])):
            raise GraphError(f"The router {branch.name!r} of {source!r} is there twice.")
        self._branches[source].append(branch)
        return self

    def compile(
        self, *, name: str, version: int = 1, max_steps: int = 40, interrupt_before: Sequence[str] = ()
    ) -> Graph[S]:
        """Check the whole and freeze it; raises `GraphError` naming the culprit."""
        if not name or "/" in name or version < 1 or max_steps < 1:
            raise GraphError("A graph needs a name without '/', a version and a step limit of at least 1.")
        for node in interrupt_before:
            if node not in self._specs:
                raise GraphError(f"interrupt_before names {node!r}, which is no node.")
        plain = {source: tuple(targets) for source, targets in self._plain.items()}
        branches = {source: tuple(found) for source, found in self._branches.items()}
        joins = tuple(self._joins)
        edges = _edges(plain, joins, branches, self._specs)
        check_shape(tuple(self._specs), edges, [(join.parents, join.target) for join in joins])
        return Graph(
            name=name,
            version=version,
            state=self._state,
            specs=dict(self._specs),
            plain=plain,
            joins=joins,
            branches=branches,
            max_steps=max_steps,
            interrupt_before=frozenset(interrupt_before),
            fingerprint=_fingerprint(self._state, self._specs, edges),
            silent=_silent(self._specs, edges),
        )


def _edges(
    plain: Mapping[str, Sequence[str]],
    joins: Sequence[Join],
    branches: Mapping[str, Sequence[Branch]],
    specs: Mapping[str, NodeSpec],
) -> tuple[Edge, ...]:
    out = [Edge(source, target) for source, targets in plain.items() for target in targets]
    out += [Edge(parent, join.target, join=join.name) for join in joins for parent in join.parents]
    for source, found in branches.items():
        for branch in found:
            out += [Edge(source, target, str(label), branch.name) for label, target in branch.targets.items()]
    for spec in specs.values():
        out += [Edge(spec.name, target, target, GOTO) for target in spec.destinations]
    return tuple(out)


def _silent(specs: Mapping[str, NodeSpec], edges: Sequence[Edge]) -> frozenset[str]:
    led = {edge.source for edge in edges if edge.router != GOTO}
    return frozenset(name for name, spec in specs.items() if name not in led and END not in spec.destinations)


def _fingerprint(state: type[State], specs: Mapping[str, NodeSpec], edges: Sequence[Edge]) -> str:
    shape = {
        "keys": {name: type_name(state.model_fields[name].annotation) for name in keys_of(state)},
        "nodes": [[spec.name, spec.subgraph.fingerprint if spec.subgraph else ""] for spec in specs.values()],
        "edges": sorted([edge.source, edge.target, edge.label, edge.router, edge.join] for edge in edges),
    }
    return hashlib.sha256(dump(shape).encode()).hexdigest()[:16]
