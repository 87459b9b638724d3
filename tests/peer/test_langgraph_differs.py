"""Where LangGraph goes on in silence and our engine refuses or waits: both, side by side, in the smallest graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, NoReturn, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph as TheirGraph
from langgraph.types import Command as TheirCommand
from langgraph.types import interrupt
from pydantic import JsonValue

from graphs.engine import END, START, Graph, Runner, Runtime, Snapshot, State, StateGraph, add
from graphs.engine.errors import AmbiguousAnswer, GraphError, NodeFailed, StoreFailed, UnknownInterrupt, UpdateRefused
from graphs.engine.memory import MemoryCheckpointer

pytestmark = pytest.mark.peer


class Ours(State):
    """Enough for all of them."""

    text: str = ""
    items: list[JsonValue] = []
    n: Annotated[int, add] = 0


class Theirs(TypedDict, total=False):
    """The same."""

    text: str
    items: list[Any]
    n: Annotated[int, operator.add]


class Bench:
    """One graph of one node after another on both engines, in memory."""

    def __init__(self, ours: list[Callable[..., Any]], theirs: list[Callable[..., Any]], saver: Any = None) -> None:
        self.runner = Runner(MemoryCheckpointer())
        self.ours = chain(ours)
        graph: Any = TheirGraph(Theirs)
        for place, run in enumerate(theirs):
            graph.add_node(f"n{place}", run)
            graph.add_edge(START if not place else f"n{place - 1}", f"n{place}")
        self.theirs = graph.compile(checkpointer=saver or InMemorySaver())
        self.config = {"configurable": {"thread_id": "t"}}

    def start_ours(self, **given: Any) -> Snapshot:
        return self.runner.invoke(self.ours, given, "t")

    def start_theirs(self, given: Any = None, **how: Any) -> Any:
        return self.theirs.invoke(given or {"text": ""}, self.config, **how)

    def answer_theirs(self, value: Any) -> Any:
        return self.theirs.invoke(TheirCommand(resume=value), self.config)


def chain(nodes: list[Callable[..., Any]]) -> Graph[Ours]:
    graph = StateGraph(Ours)
    for place, run in enumerate(nodes):
        graph.add_node(f"n{place}", run)
        graph.add_edge(START if not place else f"n{place - 1}", f"n{place}")
    return graph.add_edge(f"n{len(nodes) - 1}", END).compile(name="differs")


# ---- answers --------------------------------------------------------------------------------------------------------


def asks_ours(state: Ours, runtime: Runtime[Any]) -> Any:
    return {"items": [runtime.interrupt("first"), runtime.interrupt("second")]}


def asks_theirs(state: Theirs) -> Any:
    return {"items": [interrupt("first"), interrupt("second")]}


def test_going_on_without_an_answer_gives_the_second_question_the_answer_to_the_first() -> None:
    """langgraph#8837."""
    bench = Bench([asks_ours], [asks_theirs])
    bench.start_ours()
    (first,) = bench.runner.get_state("t").interrupts
    bench.runner.resume("t", {first.id: "A"})
    with pytest.raises(AmbiguousAnswer):
        bench.runner.resume("t")

    bench.start_theirs()
    bench.answer_theirs("A")
    assert bench.theirs.invoke(None, bench.config)["items"] == ["A", "A"]


def once_ours(state: Ours, runtime: Runtime[Any]) -> Any:
    return {"items": [runtime.interrupt("q")]}


def once_theirs(state: Theirs) -> Any:
    return {"items": [interrupt("q")]}


@pytest.mark.parametrize("answer", [{}, {"a" * 32: 1}], ids=["an empty object", "a key of 32 hex digits"])
def test_an_answer_that_looks_like_a_map_of_answers_is_not_delivered(answer: Any) -> None:
    bench = Bench([once_ours], [once_theirs])
    (ask,) = bench.start_ours().interrupts
    assert state_of(bench.runner.resume("t", {ask.id: answer})).items == [answer]

    bench.start_theirs()
    assert "__interrupt__" in bench.answer_theirs(answer)


def state_of(snapshot: Snapshot) -> Ours:
    assert isinstance(snapshot.values, Ours)
    return snapshot.values


def test_none_is_an_answer_here_and_a_crash_there() -> None:
    """langgraph#7034."""
    bench = Bench([once_ours], [once_theirs])
    (ask,) = bench.start_ours().interrupts
    assert state_of(bench.runner.resume("t", {ask.id: None})).items == [None]

    bench.start_theirs()
    with pytest.raises(UnboundLocalError):
        bench.answer_theirs(None)


def test_an_answer_to_an_unknown_question_is_refused_here_and_dropped_there() -> None:
    bench = Bench([once_ours], [once_theirs])
    bench.start_ours()
    with pytest.raises(UnknownInterrupt):
        bench.runner.resume("t", {"f" * 32: "A"})

    bench.start_theirs()
    assert "__interrupt__" in bench.answer_theirs({"f" * 32: "A"})


def test_a_question_may_be_caught_there() -> None:
    """langgraph#8217: the usual `except Exception` around a tool."""

    def ours(state: Ours, runtime: Runtime[Any]) -> Any:
        try:
            runtime.interrupt("May I?")
        except Exception:
            return {"text": "did it"}

    def theirs(state: Theirs) -> Any:
        try:
            interrupt("May I?")
        except Exception:
            return {"text": "did it"}

    bench = Bench([ours], [theirs])
    assert bench.start_ours().status == "waiting"
    assert bench.start_theirs()["text"] == "did it"


def test_a_branch_that_nobody_answered_runs_again_there() -> None:
    """langgraph#5952."""
    ran: list[str] = []

    def ours(name: str) -> Any:
        def node(state: Ours, runtime: Runtime[Any]) -> Any:
            ran.append(name)
            return {"n": len(str(runtime.interrupt(name)))}

        return node

    def theirs(name: str) -> Any:
        def node(state: Theirs) -> Any:
            ran.append(name)
            return {"n": len(interrupt(name))}

        return node

    graph = StateGraph(Ours)
    their_graph: Any = TheirGraph(Theirs)
    for name in "ab":
        graph.add_node(name, ours(name)).add_edge(START, name).add_edge(name, END)
        their_graph.add_node(name, theirs(name)).add_edge(START, name)
    runner = Runner(MemoryCheckpointer())
    first, _ = runner.invoke(graph.compile(name="two"), {}, "t").interrupts
    runner.resume("t", {first.id: "x"})
    assert ran == ["a", "b", "a"]

    ran.clear()
    compiled, config = their_graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    asked = compiled.invoke({"text": ""}, config)["__interrupt__"]
    compiled.invoke(TheirCommand(resume={asked[0].id: "x"}), config)
    assert sorted(ran) == ["a", "a", "b", "b"]


# ---- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", [{"txet": "x"}, {"text": 5}], ids=["a key that is not there", "a wrong type"])
def test_a_wrong_update_is_refused_here_and_taken_or_dropped_there(update: Any) -> None:
    bench = Bench([lambda state: update], [lambda state: update])
    with pytest.raises(UpdateRefused, match="n0"):
        bench.start_ours()
    assert bench.start_theirs()["text"] == update.get("text", "")


def test_a_node_that_changes_its_input_changes_the_callers_there() -> None:
    """langgraph#8314."""

    def ours(state: Ours) -> Any:
        state.items.append("mine")

    def theirs(state: Theirs) -> Any:
        state["items"].append("mine")

    bench, given = Bench([ours], [theirs]), {"items": ["given"]}
    with pytest.raises(NodeFailed, match="read-only"):
        bench.start_ours(**given)
    assert given == {"items": ["given"]}
    bench.start_theirs(given)
    assert given == {"items": ["given", "mine"]}


# ---- ways -----------------------------------------------------------------------------------------------------------


def test_a_router_that_names_no_node_ends_the_run_there() -> None:
    def router(state: Any) -> str:
        return "nowhere"

    graph: Any = TheirGraph(Theirs).add_node("n", lambda state: {}).add_edge(START, "n")
    assert graph.add_conditional_edges("n", router).compile().invoke({"text": "x"}) == {"text": "x", "n": 0}

    ours = StateGraph(Ours).add_node("n", lambda state: {}).add_edge(START, "n")
    ours.add_conditional_edges("n", router, ["n", END])
    with pytest.raises(NodeFailed, match="'nowhere'"):
        Runner(MemoryCheckpointer()).invoke(ours.compile(name="router"), {}, "t")


def test_a_join_that_never_fills_drops_the_rest_there() -> None:
    """langgraph#7727."""
    ran: list[str] = []

    def shaped(graph: Any) -> Any:
        for name in "abcd":
            graph.add_node(name, lambda state, name=name: ran.append(name))
        graph.add_edge(START, "a").add_conditional_edges("a", lambda state: ["b"], ["b", "c"])
        return graph.add_edge(["b", "c"], "d").add_edge("d", END)

    shaped(TheirGraph(Theirs)).compile().invoke({"text": ""})
    assert ran == ["a", "b"]
    with pytest.raises(GraphError, match="can wait for ever"):
        shaped(StateGraph(Ours)).compile(name="join")


@pytest.mark.parametrize("lost", [True, False], ids=["unreachable", "no way out"])
def test_a_graph_that_cannot_work_compiles_there(lost: bool) -> None:
    """langgraph#6735."""

    def shaped(graph: Any) -> Any:
        graph.add_node("a", lambda state: {}).add_node("b", lambda state: {}).add_edge(START, "a")
        return graph.add_edge("b", END).add_edge("a", END) if lost else graph.add_edge("a", "b").add_edge("b", "a")

    assert shaped(TheirGraph(Theirs)).compile()
    with pytest.raises(GraphError):
        shaped(StateGraph(Ours)).compile(name="shape")


# ---- checkpoints ----------------------------------------------------------------------------------------------------


class TheirFullDisk(InMemorySaver):
    """Keeps nothing after the input."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["step"] > 0:
            raise OSError("The disk is full.")
        return super().put(config, checkpoint, metadata, new_versions)


class OurFullDisk(MemoryCheckpointer):
    """The same."""

    def commit(self, *given: Any, **more: Any) -> NoReturn:
        raise StoreFailed("The disk is full.")


@pytest.mark.parametrize(("durability", "acts"), [("async", True), ("sync", False)])
def test_a_step_that_cannot_be_kept_is_followed_by_the_next_there_unless_told_otherwise(
    durability: str, acts: bool
) -> None:
    """The default is `async`; here the first step cannot be kept, and the second node acts."""
    ran: list[str] = []
    ours, theirs = (lambda state, who=who: ran.append(who) for who in ("ours", "theirs"))
    bench = Bench([lambda state: {}, ours], [lambda state: {}, theirs], TheirFullDisk())
    bench.runner.store = OurFullDisk()
    with pytest.raises(StoreFailed):
        bench.start_ours()
    with pytest.raises(OSError, match="full"):
        bench.start_theirs(durability=durability)
    assert ran == ["theirs"] * acts
