"""Graphs that cannot work are refused when they are compiled, and the message names the culprit."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graphs.engine import END, START, Command, Graph, RetryPolicy, Runner, Runtime, Send, State, StateGraph, append
from graphs.engine.errors import GraphError, NodeFailed
from graphs.engine.memory import MemoryCheckpointer
from tests.graphs.engine.bench import Bench, Log, asks, line, logs

Build = Callable[[StateGraph[Log]], Any]


def begun(*names: str) -> StateGraph[Log]:
    graph = StateGraph(Log)
    for name in names or ("a",):
        graph.add_node(name, logs(name))
    return graph.add_edge(START, (names or ("a",))[0])


def stuck(graph: StateGraph[Log]) -> None:
    graph.add_node("b", logs("b")).add_node("c", logs("c"))
    graph.add_edge("a", "b").add_edge("b", "c").add_edge("c", "b").add_edge("a", END)


def skipped(graph: StateGraph[Log]) -> None:
    for name in "bcd":
        graph.add_node(name, logs(name))
    graph.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    graph.add_edge(["b", "c"], "d").add_edge("d", END)


def once_more(graph: StateGraph[Log]) -> None:
    """After the join only one of its parents runs again."""
    for name in "bcd":
        graph.add_node(name, logs(name))
    graph.add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d")
    graph.add_edge("d", "b").add_edge("d", END)


REFUSED: list[tuple[str, Build, str]] = [
    ("an edge to no node", lambda g: g.add_edge("a", "ghost"), "'ghost'"),
    ("an edge from no node", lambda g: g.add_edge("a", END).add_edge("ghost", "a"), "'ghost'"),
    ("a second node of one name", lambda g: g.add_node("a", logs("a")), "two nodes called 'a'"),
    ("a reserved name", lambda g: g.add_node(END, logs("a")), "__end__"),
    ("an empty name", lambda g: g.add_node(" ", logs("a")), "' '"),
    ("a name with a slash", lambda g: g.add_node("a/b", logs("a")), "'a/b'"),
    ("the same edge twice", lambda g: g.add_edge("a", END).add_edge("a", END), "from 'a' to '__end__' is there twice"),
    ("the same join twice", lambda g: g.add_node("b", logs("b")).add_edge(["a", "b"], END).add_edge(["b", "a"], END),
     "is there twice"),
    ("a join of a node with itself", lambda g: g.add_edge(["a", "a"], END), "names no parents, or one twice"),
    ("an unreachable node", lambda g: g.add_edge("a", END).add_node("b", logs("b")).add_edge("b", END),
     "No path leads from START to 'b'"),
    ("a dead end", lambda g: g.add_node("b", logs("b")).add_edge("a", "b"), "'b' is a dead end"),
    ("a cycle without a way out", stuck, "'b', 'c' can never reach END"),
    ("a join that a router may starve", skipped, "join of 'b', 'c' into 'd' can wait for ever"),
    ("a join that starves in the second round", once_more, "join of 'b', 'c' into 'd' can wait for ever"),
    ("a router without targets", lambda g: g.add_conditional_edges("a", lambda s: END, {}), "of 'a' declares no"),
    ("a router to no node", lambda g: g.add_conditional_edges("a", lambda s: "x", {"x": "ghost"}), "'ghost'"),
    ("a goto to no node", lambda g: g.add_node("b", logs("b"), destinations=["ghost"]), "'ghost'"),
    ("what is no function", lambda g: g.add_node("b", "nothing"), "'b'"),  # type: ignore[arg-type]
    ("a function with mappings", lambda g: g.add_node("b", logs("b"), enter=lambda s: {}), "'b'"),
    ("a graph without mappings", lambda g: g.add_node("b", line(("x", logs("x")))), "needs enter"),
    ("a graph with retries", lambda g: g.add_node(
        "b", line(("x", logs("x"))), enter=lambda s: {}, leave=lambda s: {}, retry=RetryPolicy()), "takes no retry"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "culprit"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_graph_that_cannot_work_is_refused_by_name(build: Build, culprit: str) -> None:
    graph = begun()
    with pytest.raises(GraphError) as refused:
        build(graph)
        graph.compile(name="g")
    assert culprit in str(refused.value)


def test_a_graph_without_an_entry_is_refused() -> None:
    with pytest.raises(GraphError, match="Nothing follows START"):
        StateGraph(Log).add_node("a", logs("a")).add_edge("a", END).compile(name="g")


@pytest.mark.parametrize(
    "settings", [{"name": ""}, {"name": "a/b"}, {"name": "g", "version": 0}, {"name": "g", "max_steps": 0}]
)
def test_a_graph_needs_a_name_a_version_and_a_limit(settings: dict[str, Any]) -> None:
    with pytest.raises(GraphError):
        begun().add_edge("a", END).compile(**settings)


def test_a_breakpoint_names_a_node_when_compiled_and_when_started() -> None:
    with pytest.raises(GraphError, match="ghost"):
        begun().add_edge("a", END).compile(name="g", interrupt_before=["ghost"])
    with pytest.raises(GraphError, match="ghost"):
        Runner(MemoryCheckpointer()).invoke(line(("a", logs("a"))), {}, "t", pause_before=["ghost"])


def test_a_graph_that_may_pause_cannot_run_without_a_store() -> None:
    with pytest.raises(TypeError, match="checkpointer"):
        Runner()  # type: ignore[call-arg]


class Plain(BaseModel):
    x: int = 0


@dataclass
class Loose:
    x: int = 0


class Holder(State):
    inner: int


@pytest.mark.parametrize(
    "kind", [set[str], bytes, deque[str], Plain, Loose, object, Callable[[], int], list[set[int]], dict[str, Plain]]
)
def test_a_state_of_what_json_cannot_hold_or_anybody_may_change_is_refused(kind: Any) -> None:
    state = type("Bad", (State,), {"__annotations__": {"key": kind}, "__module__": __name__})
    with pytest.raises(GraphError, match=r"Bad\.key"):
        StateGraph(state)


def test_a_key_that_grows_has_to_be_a_list() -> None:
    class Bad(State):
        log: Annotated[str, append] = ""

    with pytest.raises(GraphError, match="log"):
        StateGraph(Bad)


def test_a_default_that_does_not_fit_its_key_is_refused_when_a_run_starts() -> None:
    class Bad(State):
        size: int = "large"  # type: ignore[assignment]

    with pytest.raises(Exception, match="default gives 'size'"):
        Runner(MemoryCheckpointer()).invoke(line(("a", lambda s: None), state=Bad), {}, "t")


class Odd(enum.StrEnum):
    LEFT = "left"


@pytest.mark.parametrize("answer", ["elsewhere", None, 7, "", [], ["b", "elsewhere"], Send("elsewhere", 1)])
def test_a_router_that_answers_outside_its_targets_fails_naming_itself_answer_and_choices(
    bench: Bench, answer: Any
) -> None:
    def choose(state: Log) -> Any:
        return answer

    graph = begun("a", "b").add_conditional_edges("a", choose, {"b": "b", "end": END}).add_edge("b", END)
    runner = bench.runner()
    with pytest.raises(NodeFailed, match="router choose after a answered"):
        runner.invoke(graph.compile(name="g"), {}, "t")
    assert runner.get_state("t").status == "failed"
    assert runner.get_state("t").values.to_json()["log"] == []


def test_a_router_may_answer_anything_its_mapping_names(bench: Bench) -> None:
    answers = [True, Odd.LEFT, 3, None]
    graph = begun("a", "b").add_conditional_edges(
        "a", lambda s: answers[s.n], {True: "b", Odd.LEFT: "b", 3: "b", None: END}
    )
    graph.add_edge("b", END)
    compiled = graph.compile(name="g")
    for n, expected in enumerate([["a", "b"], ["a", "b"], ["a", "b"], ["a"]]):
        assert bench.runner().invoke(compiled, {"n": n}, f"t{n}").values.to_json()["log"] == expected


def test_a_command_may_only_go_where_the_node_declares(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", lambda s: Command(goto="b"), destinations=["a"]).add_node("b", logs("b"))
    compiled = graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile(name="g")
    with pytest.raises(NodeFailed, match="a goes to 'b', which is none of its destinations"):
        bench.runner().invoke(compiled, {}, "t")


def test_a_node_that_only_its_command_leads_on_from_has_to_say_where(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", logs("a"), destinations=["b"]).add_node("b", logs("b"))
    compiled = graph.add_edge(START, "a").add_edge("b", END).compile(name="g")
    with pytest.raises(NodeFailed, match="a goes nowhere"):
        bench.runner().invoke(compiled, {}, "t")


def test_the_fingerprint_tells_structures_apart_and_nothing_else() -> None:
    class Other(State):
        log: Annotated[list[str], append] = []
        n: str = ""

    base = line(("a", logs("a")), ("b", logs("b")))
    assert base.fingerprint == line(("a", asks("a")), ("b", logs("b")), max_steps=7).fingerprint
    others = [
        line(("a", logs("a"))),
        line(("b", logs("a")), ("a", logs("b"))),
        line(("a", logs("a")), ("b", logs("b")), state=Other),
        begun("a", "b").add_edge("a", "b").add_edge("b", END).add_edge("a", END).compile(name="line"),
    ]
    assert len({base.fingerprint, *(graph.fingerprint for graph in others)}) == 1 + len(others)


def test_one_name_and_version_has_one_structure_in_a_process() -> None:
    runner = Runner(MemoryCheckpointer(), graphs=[line(("a", logs("a")), name="g")])
    with pytest.raises(GraphError, match="give it a new version"):
        runner.know(line(("b", logs("b")), name="g"))


NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def routed(draw: st.DrawFn) -> tuple[Graph[Any], list[int]] | None:
    """A random graph with a join, if it compiles, and what its routers will answer."""
    size = draw(st.integers(3, 5))
    names, choices = NAMES[:size], iter(draw(st.lists(st.integers(0, 99), min_size=60, max_size=60)))
    picks: list[int] = [next(choices) for _ in range(40)]
    turn = iter(picks * 10)
    graph = StateGraph(Log)
    for name in names:
        graph.add_node(name, logs(name))
    targets = st.lists(st.sampled_from([*names, END]), min_size=1, max_size=3, unique=True)
    for target in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        graph.add_edge(START, target)
    parents = draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
    graph.add_edge(parents, draw(st.sampled_from([*names, END])))
    for name in names:
        if draw(st.booleans()):
            for target in draw(targets):
                graph.add_edge(name, target)
        if draw(st.booleans()):
            given_targets = draw(targets)
            graph.add_conditional_edges(name, lambda s, t=given_targets: t[next(turn) % len(t)], given_targets)
    try:
        return graph.compile(name="g", max_steps=30), picks
    except GraphError:
        return None


@given(routed())
def test_a_graph_that_compiles_never_drops_a_join_in_silence(case: tuple[Graph[Any], list[int]] | None) -> None:
    """It runs to its end with every join used up, stops at its limit, or fails naming the join."""
    if case is None:
        return
    runner = Runner(MemoryCheckpointer())
    try:
        snapshot = runner.invoke(case[0], {}, "t")
    except NodeFailed as error:
        assert "a join was never filled" in str(error)
        return
    assert snapshot.status in ("finished", "halted")


def test_a_join_left_half_filled_at_the_end_fails_the_run_and_says_so(bench: Bench) -> None:
    graph = begun("a", "b", "c", "d")
    graph.add_edge("a", "b").add_edge("a", "c").add_edge("b", "d").add_edge(["b", "c"], END)
    graph.add_conditional_edges("d", lambda s: "b" if s.n == 0 else END, {"b": "b", END: END})
    with pytest.raises(GraphError, match="can wait for ever"):
        graph.compile(name="g")

    def step(state: Log, runtime: Runtime[Any]) -> Any:
        return {"n": 1, "log": "e"}

    late = StateGraph(Log)
    for name in "abce":
        late.add_node(name, logs(name))
    late.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge("c", "a").add_edge(["a", "b"], "e")
    late.add_edge("e", END)
    with pytest.raises(NodeFailed, match=r"never filled: a\+b>e has only seen a"):
        bench.runner().invoke(late.compile(name="late"), {}, "t")
