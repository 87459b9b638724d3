"""Graphs as nodes: mapped in and out, paused and resumed inside, nested, repeated, edited and fetched again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.engine import END, START, Command, Graph, Later, Message, Runtime, Send, State, StateGraph, add_messages
from graphs.engine.errors import NodeFailed, NothingPending, NotNow, RunEnded, StaleInterrupt, UpdateRefused
from tests.graphs.engine.bench import Bench, Calls, Log, asks, line, logs, question


def log_of(snapshot: Any) -> list[str]:
    found: list[str] = snapshot.values.to_json()["log"]
    return found


def out(child: Any) -> dict[str, Any]:
    return {"log": list(child.log)}


def around(*names: str, inner: Graph[Any], name: str = "outer", before: Any = None, **compiled: Any) -> Graph[Any]:
    """A node `before`, then the same graph under several names side by side, then `after`."""
    graph = StateGraph(Log).add_node("before", before or logs("before")).add_edge(START, "before")
    for each in names:
        graph.add_node(each, inner, enter=lambda s: {"text": s.text}, leave=out)
        graph.add_edge("before", each)
    graph.add_node("after", logs("after")).add_edge(list(names), "after").add_edge("after", END)
    return graph.compile(name=name, **compiled)


class Chat(State):
    messages: Annotated[list[Message], add_messages] = []


def test_a_list_shared_with_a_child_is_not_doubled(bench: Bench) -> None:
    inner = line(("say", lambda s: {"messages": Message(role="assistant", content="hi")}), state=Chat, name="inner")
    graph = StateGraph(Chat).add_node(
        "sub", inner, enter=lambda s: {"messages": s.messages}, leave=lambda s: {"messages": s.messages}
    )
    compiled = graph.add_edge(START, "sub").add_edge("sub", END).compile(name="outer")
    snapshot = bench.runner().invoke(compiled, {"messages": Message(role="user", content="hello")}, "t")
    assert [message["content"] for message in snapshot.values.to_json()["messages"]] == ["hello", "hi"]


def test_a_pause_inside_surfaces_with_its_path_and_goes_on_inside(bench: Bench) -> None:
    calls = Calls()
    inner = line(("x", logs("x", calls)), ("y", asks("y", calls=calls)), ("z", logs("z", calls)), name="inner")
    runner = bench.runner()
    snapshot = runner.invoke(around("sub", inner=inner, before=logs("before", calls)), {}, "t")
    (ask,) = snapshot.interrupts
    assert (ask.path, ask.thread_id, ask.step, snapshot.next) == (("sub", "y"), "t/1.sub", 1, ("sub",))
    assert runner.get_state("t/1.sub").next == ("y",)
    after = bench.runner(around("sub", inner=inner, before=logs("before", calls))).resume("t", {ask.id: 1})
    assert log_of(after) == ["before", "x", "y:1", "z", "after"]
    assert dict(calls.counts) == {"before": 1, "x": 1, "y": 2, "z": 1}
    assert runner.get_state("t/1.sub").status == "finished"


def test_one_answer_reaches_one_question_at_any_depth(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": [runtime.interrupt("same"), runtime.interrupt("same")]}

    inner = line(("x", node), ("y", node), name="inner")
    runner = bench.runner()
    snapshot = runner.invoke(around("sub", inner=inner), {}, "t")
    answers = []
    for answer in "abcd":
        first = question(snapshot)
        snapshot = runner.resume("t", {first: answer})
        answers.append(first)
        if snapshot.interrupts:
            with pytest.raises(StaleInterrupt):
                runner.resume("t", {first: "again"})
    assert (log_of(snapshot), len({*answers})) == (["before", "a", "b", "c", "d", "after"], 4)


@given(st.data())
def test_trees_of_any_depth_ask_and_answer_without_repeating_anything(
    new_bench: Callable[[], Bench], data: st.DataObject
) -> None:
    depth, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    bench, calls = new_bench(), Calls()

    def leaf(state: Log, runtime: Runtime[Any]) -> Any:
        place = "/".join(runtime.world.path)
        runtime.once("paid", lambda: calls(f"paid {place}"))
        answer = runtime.interrupt("same question everywhere")
        assert answer == place
        calls(place)
        return {"log": place}

    inner = line(("leaf", leaf), name="same name")
    for _ in range(depth):
        inner = around(*(f"s{n}" for n in range(width)), inner=inner, name="same name", max_steps=500)
    runner = bench.runner(inner)
    snapshot = runner.invoke(inner, {}, "t")
    assert len(snapshot.interrupts) == width**depth
    while snapshot.interrupts:
        chosen = data.draw(st.lists(st.sampled_from(snapshot.interrupts), min_size=1, unique_by=lambda ask: ask.id))
        snapshot = bench.runner(inner).resume("t", {ask.id: "/".join(ask.path[:-1]) for ask in chosen})
    assert snapshot.status == "finished"
    assert len(calls.counts) == 2 * width**depth
    assert set(calls.counts.values()) == {1}


def test_the_same_graph_twice_and_in_a_loop_does_not_collide(bench: Bench) -> None:
    inner = line(("ask", asks("ask")), name="inner")
    graph = StateGraph(Log)
    for name in ("left", "right"):
        graph.add_node(name, inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log), "n": 1})
    graph.add_node("go", logs("go")).add_edge(START, "go").add_edge("go", "left").add_edge("go", "right")
    graph.add_node("round", logs("round")).add_edge(["left", "right"], "round")
    graph.add_conditional_edges("round", lambda s: "go" if s.n < 4 else END, ["go", END])
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g"), {}, "t")
    seen: list[str] = []
    while snapshot.interrupts:
        first = snapshot.interrupts[-1]
        seen.append(first.id)
        snapshot = runner.resume("t", {first.id: len(seen)})
    assert log_of(snapshot) == ["go", "ask:2", "ask:1", "round", "go", "ask:4", "ask:3", "round"]
    assert len({*seen}) == 4


def test_a_graph_sent_to_runs_once_for_each_payload(bench: Bench) -> None:
    inner = line(("ask", asks("ask")), name="inner")
    graph = StateGraph(Log).add_node(
        "split", lambda s: Command(goto=[Send("sub", {"x": x}) for x in "ab"]), destinations=["sub"]
    )
    graph.add_node("sub", inner, enter=lambda item: {"log": item["x"]}, leave=out)
    runner = bench.runner()
    snapshot = runner.invoke(graph.add_edge(START, "split").add_edge("sub", END).compile(name="g"), {}, "t")
    first, second = snapshot.interrupts
    runner.resume("t", {second.id: 2})
    assert log_of(runner.resume("t", {first.id: 1})) == ["a", "ask:1", "b", "ask:2"]
    assert runner.get_state("t/1.sub#1").values.to_json()["log"] == ["b", "ask:2"]


class Other(State):
    words: list[str] = []


def test_two_graphs_of_one_name_and_structure_keep_their_own_states(bench: Bench) -> None:
    one = line(("x", logs("x")), name="same")
    two = line(("x", lambda s: {"words": ["w"]}), state=Other, name="same")
    graph = StateGraph(Log).add_node("one", one, enter=lambda s: {}, leave=out)
    graph.add_node("two", two, enter=lambda s: {}, leave=lambda s: {"log": list(s.words)})
    graph.add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
    runner = bench.runner()
    assert log_of(runner.invoke(graph.compile(name="same"), {}, "t")) == ["x", "w"]
    assert isinstance(runner.get_state("t/0.one").values, Log)
    assert isinstance(runner.get_state("t/1.two").values, Other)
    assert [each.step for each in runner.get_state_history("t/1.two")] == [1, 0]


def test_editing_the_parent_keeps_the_paused_child(bench: Bench) -> None:
    calls = Calls()
    inner = line(("x", logs("x", calls)), ("y", asks("y")), name="inner")
    runner = bench.runner()
    snapshot = runner.invoke(around("sub", inner=inner), {}, "t")
    runner.update_state("t", {"log": "edited"})
    after = runner.resume("t", {question(snapshot): 1})
    assert log_of(after) == ["before", "edited", "x", "y:1", "after"]
    assert calls["x"] == 1


def test_a_paused_child_can_be_edited(bench: Bench) -> None:
    inner = line(("x", logs("x")), ("y", asks("y")), ("z", lambda s: {"log": s.text}), name="inner")
    runner = bench.runner()
    snapshot = runner.invoke(around("sub", inner=inner), {"text": "given"}, "t")
    assert runner.update_state("t/1.sub", {"text": "edited", "log": "e"}, author="U1") == 2
    with pytest.raises(UpdateRefused):
        runner.update_state("t/1.sub", {"text": 1})
    with pytest.raises(NotNow):
        runner.update_state("t/1.sub", {}, as_node="y")
    with pytest.raises(NotNow):
        runner.update_state("t", {}, as_node="sub")
    assert runner.get_state("t").interrupts == snapshot.interrupts
    after = runner.resume("t", {question(snapshot): 1})
    assert log_of(after) == ["before", "x", "e", "y:1", "edited", "after"]
    with pytest.raises(RunEnded):
        runner.update_state("t/1.sub", {"text": "late"})


def test_a_breakpoint_inside_holds_the_root(bench: Bench) -> None:
    inner = line(("x", logs("x")), ("y", logs("y")), name="inner", interrupt_before=["y"])
    runner = bench.runner()
    snapshot = runner.invoke(around("one", "two", inner=inner), {}, "t")
    assert [(ask.path, ask.payload) for ask in snapshot.interrupts] == [
        (("one",), {"pause_before": ["y"]}), (("two",), {"pause_before": ["y"]}),
    ]  # fmt: skip
    assert log_of(runner.resume("t")) == ["before", "x", "y", "x", "y", "after"]


def test_a_child_that_sleeps_puts_the_root_to_sleep_and_keeps_its_siblings(bench: Bench) -> None:
    from datetime import UTC, datetime

    calls = Calls()
    wake = bench.clock.now + 30_000_000

    def sleepy(state: Log) -> Any:
        if calls("y") == 1:
            raise Later(datetime.fromtimestamp(wake / 1_000_000, UTC))
        return {"log": "y"}

    inner = line(("x", logs("x", calls)), ("y", sleepy), name="inner")
    middle = around("deep", inner=inner, name="middle")
    graph = around("sub", inner=middle)
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    assert (snapshot.status, snapshot.wake_at) == ("sleeping", wake)
    with pytest.raises(NothingPending):
        runner.resume("t")
    bench.clock.now = wake
    assert log_of(runner.advance("t")) == ["before", "before", "x", "y", "after", "after"]
    assert dict(calls.counts) == {"x": 1, "y": 2}


def test_a_failing_child_fails_the_root_and_is_taken_up_where_it_failed(bench: Bench) -> None:
    broken, calls = [True], Calls()

    def node(state: Log) -> Any:
        if broken[0]:
            raise ValueError("inside")
        return {"log": "y"}

    inner = line(("x", logs("x", calls)), ("y", node), name="inner")
    runner = bench.runner()
    with pytest.raises(NodeFailed, match="y raised ValueError: inside"):
        runner.invoke(around("sub", inner=inner, before=logs("before", calls)), {}, "t")
    assert runner.get_state("t").status == runner.get_state("t/1.sub").status == "failed"
    broken[0] = False
    assert log_of(runner.retry("t")) == ["before", "x", "y", "after"]
    assert dict(calls.counts) == {"before": 1, "x": 1}


@pytest.mark.parametrize(
    ("enter", "leave", "culprit"),
    [
        (lambda s: {"ghost": 1}, out, "The input updates 'ghost'"),
        (lambda s: s.nothing, out, "enter of sub raised AttributeError"),
        (lambda s: {}, lambda s: {"ghost": 1}, "sub updates 'ghost'"),
        (lambda s: {}, lambda s: 1 / 0, "leave of sub raised ZeroDivisionError"),
    ],
)
def test_a_mapping_that_does_not_fit_is_named(bench: Bench, enter: Any, leave: Any, culprit: str) -> None:
    graph = StateGraph(Log).add_node("sub", line(("x", logs("x"))), enter=enter, leave=leave)
    with pytest.raises((NodeFailed, UpdateRefused), match=culprit):
        bench.runner().invoke(graph.add_edge(START, "sub").add_edge("sub", END).compile(name="g"), {}, "t")


def test_a_child_carries_what_its_root_was_started_with(bench: Bench) -> None:
    seen: list[Any] = []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        run = runtime.run
        seen.append((run.root, run.parent, run.who, run.channel, run.model, runtime.deps))
        return None

    graph = around("sub", inner=line(("x", node), name="inner"))
    bench.runner(deps="deps").invoke(graph, {}, "t", who="U1", channel="C1", model="m")
    assert seen == [("t", "t", "U1", "C1", "m", "deps")]
