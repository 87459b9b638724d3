"""Runs that sleep, halt, reach their limit, or stop for a deploy: nothing done is lost, nothing done is repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.engine import END, START, Graph, Halt, Later, Runner, Runtime, Spent, StateGraph
from graphs.engine.errors import NodeFailed, NothingPending, NotNow, RunEnded
from graphs.engine.memory import MemoryCheckpointer
from tests.graphs.engine.bench import BEGIN, SECOND, Bench, Calls, Clock, Log, asks, fan, line, logs, question


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(BEGIN / SECOND, UTC) + timedelta(seconds=seconds)


def sleeps(name: str, seconds: int, clock: Clock, calls: Calls | None = None) -> Callable[[Log], Any]:
    def node(state: Log) -> Any:
        if calls is not None:
            calls(name)
        if clock.now < BEGIN + seconds * SECOND:
            raise Later(at(seconds), "overloaded")
        return {"log": name}

    return node


def test_a_node_that_sleeps_is_run_again_at_its_time_and_its_siblings_are_kept(bench: Bench) -> None:
    calls = Calls()
    graph = fan({"a": logs("a", calls), "b": sleeps("b", 60, bench.clock, calls)})
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    assert (snapshot.status, snapshot.wake_at) == ("sleeping", BEGIN + 60 * SECOND)
    with pytest.raises(NotNow):
        runner.advance("t")
    with pytest.raises(NothingPending):
        runner.resume("t")
    bench.clock.now += 60 * SECOND
    after = runner.advance("t")
    assert (after.status, after.wake_at, after.values.to_json()["log"]) == ("finished", None, ["a", "b", "after"])
    assert dict(calls.counts) == {"a": 1, "b": 2}


def test_the_earliest_sleeper_wakes_the_run_and_the_others_sleep_on(bench: Bench) -> None:
    calls = Calls()
    graph = fan({"a": sleeps("a", 60, bench.clock, calls), "b": sleeps("b", 20, bench.clock, calls)})
    runner = bench.runner(graph)
    assert runner.invoke(graph, {}, "t").wake_at == BEGIN + 20 * SECOND
    bench.clock.now += 20 * SECOND
    assert runner.advance("t").wake_at == BEGIN + 60 * SECOND
    assert dict(calls.counts) == {"a": 1, "b": 2}
    bench.clock.now += 40 * SECOND
    assert runner.advance("t").values.to_json()["log"] == ["a", "b", "after"]


def test_an_answer_wakes_a_run_but_not_its_sleepers(bench: Bench) -> None:
    calls = Calls()
    graph = fan({"a": sleeps("a", 60, bench.clock, calls), "b": asks("b")})
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    assert snapshot.status == "waiting"
    after = runner.resume("t", {question(snapshot): 1})
    assert (after.status, calls["a"]) == ("sleeping", 1)
    bench.clock.now += 60 * SECOND
    assert runner.advance("t").values.to_json()["log"] == ["a", "b:1", "after"]


def test_a_node_may_sleep_many_times_and_pays_its_calls_once(bench: Bench) -> None:
    calls = Calls()

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.once("first", lambda: calls("first"))
        now = bench.clock.now
        if (rounds := calls("rounds")) < 4:
            raise Later(datetime.fromtimestamp(now / SECOND, UTC) + timedelta(seconds=rounds))
        return {"log": runtime.once("second", lambda: f"{calls('second')}")}

    graph = line(("a", node))
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    while snapshot.status == "sleeping":
        assert snapshot.wake_at is not None
        bench.clock.now = snapshot.wake_at
        snapshot = runner.advance("t")
    assert (snapshot.status, snapshot.values.to_json()["log"]) == ("finished", ["1"])
    assert dict(calls.counts) == {"first": 1, "rounds": 4, "second": 1}


def test_a_time_without_a_zone_fails_the_node(bench: Bench) -> None:
    def node(state: Log) -> None:
        raise Later(datetime(2026, 1, 1))  # noqa: DTZ001

    with pytest.raises(NodeFailed, match="time zone"):
        bench.runner().invoke(line(("a", node)), {}, "t")


def test_a_router_cannot_sleep(bench: Bench) -> None:
    def route(state: Log) -> str:
        raise Later(at(60))

    graph = StateGraph(Log).add_node("a", logs("a")).add_edge(START, "a").add_conditional_edges("a", route, [END])
    with pytest.raises(NodeFailed, match="router route after a raised Later"):
        bench.runner().invoke(graph.compile(name="g"), {}, "t")


@pytest.mark.parametrize("reason", ["the key is wrong", ""])
def test_a_halted_run_says_why_and_goes_on_when_somebody_says_so(bench: Bench, reason: str) -> None:
    wrong, calls = [True], Calls()

    def node(state: Log) -> Any:
        if wrong[0]:
            raise Halt(reason)
        return {"log": "b"}

    graph = fan({"a": logs("a", calls), "b": node})
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    assert (snapshot.status, snapshot.error) == ("halted", reason or "halted")
    with pytest.raises(NotNow):
        runner.advance("t")
    assert runner.resume("t").status == "halted"
    wrong[0] = False
    after = runner.resume("t")
    assert (after.status, after.error, after.values.to_json()["log"]) == ("finished", "", ["a", "b", "after"])
    assert calls["a"] == 1


def test_only_a_failed_or_halted_run_is_tried_again(bench: Bench) -> None:
    runner = bench.runner()
    runner.invoke(line(("a", logs("a"))), {}, "done")
    runner.invoke(line(("a", asks("a")), name="asking"), {}, "asks")
    for thread in ("done", "asks"):
        with pytest.raises(RunEnded, match="cannot be tried again"):
            runner.retry(thread)


def test_what_a_failed_run_asked_is_asked_again_when_it_is_tried_again(bench: Bench) -> None:
    broken = [False]

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        answer = runtime.interrupt("ok?")
        if broken[0]:
            raise ValueError
        return {"log": f"b:{answer}"}

    graph = fan({"a": asks("a"), "b": node})
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    broken[0] = True
    with pytest.raises(NodeFailed):
        runner.resume("t", {question(snapshot, "b"): 1})
    assert runner.get_state("t").interrupts == ()
    broken[0] = False
    again = runner.retry("t")
    assert [ask.path for ask in again.interrupts] == [("a",)]
    assert runner.resume("t", {question(again): 2}).values.to_json()["log"] == ["a:2", "b:1", "after"]


def looping(max_steps: int, calls: Calls | None = None) -> Graph[Any]:
    graph = StateGraph(Log).add_node("a", logs("a", calls, n=1)).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s.n < 10 else END, ["a", END])
    return graph.compile(name="loop", max_steps=max_steps)


@pytest.mark.parametrize("limit", [1, 3, 9, 10])
def test_the_step_limit_is_exact_and_keeps_what_is_done(bench: Bench, limit: int) -> None:
    calls = Calls()
    runner = bench.runner()
    snapshot = runner.invoke(looping(limit, calls), {}, "t")
    assert snapshot.values.to_json()["n"] == limit == calls["a"]
    if limit == 10:
        assert snapshot.status == "finished"
        return
    assert snapshot.status == "halted"
    assert "used all its steps" in snapshot.error
    assert runner.retry("t").values.to_json()["n"] == limit
    more = runner.retry("t", max_steps=limit + 1)
    assert (more.values.to_json()["n"], calls["a"]) == (limit + 1, limit + 1)
    assert more.status == ("finished" if limit == 9 else "halted")


def test_the_step_limit_counts_a_run_not_a_graph_and_may_be_given_at_the_start(bench: Bench) -> None:
    runner = bench.runner()
    for thread in ("t", "u"):
        assert runner.invoke(looping(10), {}, thread).status == "finished"
    assert runner.invoke(looping(10), {}, "v", max_steps=4).values.to_json()["n"] == 4


def test_pauses_and_sleeps_use_no_steps(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.interrupt("one")
        runtime.interrupt("two")
        return None

    graph = line(("a", node), ("b", logs("b")), max_steps=2)
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    while snapshot.interrupts:
        snapshot = runner.resume("t", {question(snapshot): 1})
    assert snapshot.status == "finished"


@given(st.integers(1, 14), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_the_limit_holds_for_the_whole_tree_and_nothing_done_is_repeated(limit: int, sizes: list[int]) -> None:
    """Parallel subgraphs share the steps of their root; given more, the run ends as one that had enough."""
    calls = Calls()
    graph = StateGraph(Log)
    for place, size in enumerate(sizes):
        inner = line(*((f"n{n}", logs(f"{place}.{n}", calls)) for n in range(size)), name=f"inner{place}")
        graph.add_node(f"sub{place}", inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log)})
        graph.add_edge(START, f"sub{place}").add_edge(f"sub{place}", END)
    compiled = graph.compile(name="tree", max_steps=limit)
    runner = Runner(MemoryCheckpointer())
    snapshot = runner.invoke(compiled, {}, "t")
    needed = sum(sizes) + 1
    assert snapshot.status == ("finished" if limit >= needed else "halted")
    committed = sum(calls.counts.values())
    assert committed == min(limit - 1, sum(sizes)) if limit < needed else sum(sizes)
    if limit < needed:
        snapshot = runner.retry("t", max_steps=needed)
    assert snapshot.status == "finished"
    assert snapshot.values.to_json()["log"] == [f"{place}.{n}" for place, size in enumerate(sizes) for n in range(size)]
    assert set(calls.counts.values()) == {1}
    assert runner.store.load("t").steps == needed


def test_a_question_beside_a_child_at_its_limit_is_still_asked(bench: Bench) -> None:
    inner = line(("x", logs("x")), ("y", logs("y")), name="inner")
    graph = StateGraph(Log).add_node("ask", asks("ask"))
    graph.add_node("sub", inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log)})
    graph.add_edge(START, "ask").add_edge(START, "sub").add_edge("ask", END).add_edge("sub", END)
    compiled = graph.compile(name="g", max_steps=2)
    runner = bench.runner(compiled)
    snapshot = runner.invoke(compiled, {}, "t")
    assert [ask.path for ask in snapshot.interrupts] == [("ask",)]
    after = runner.resume("t", {question(snapshot): 1})
    assert after.status == "halted"
    assert runner.retry("t", max_steps=3).values.to_json()["log"] == ["ask:1", "x", "y"]


def test_draining_stops_at_the_next_checkpoint_and_another_process_goes_on(bench: Bench) -> None:
    runners: list[Runner] = []

    def node(state: Log) -> Any:
        runners[0].drain()
        return {"log": "a"}

    inner = line(("x", node), ("y", logs("y")), name="inner")
    graph = StateGraph(Log).add_node("sub", inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log)})
    graph.add_node("b", logs("b")).add_edge(START, "sub").add_edge("sub", "b").add_edge("b", END)
    compiled = graph.compile(name="g")
    runners.append(bench.runner(compiled))
    snapshot = runners[0].invoke(compiled, {}, "t")
    assert (snapshot.status, snapshot.step) == ("running", 0)
    assert runners[0].get_state("t/0.sub").step == 1
    assert bench.runner(compiled).advance("t").values.to_json()["log"] == ["a", "y", "b"]


def test_nested_parallel_branches_never_wait_for_one_anothers_threads(new_bench: Callable[[], Bench]) -> None:
    """Every leaf of a tree of 4 x 4 x 4 branches waits until all others run too."""
    bench = new_bench()
    meet = threading.Barrier(64, timeout=20)

    def leaf(state: Log) -> Any:
        meet.wait()
        return {"n": 1}

    graph = fan({f"b{n}": leaf for n in range(4)}, after=lambda s: None, name="g0")
    for depth in (1, 2):
        outer = StateGraph(Log)
        for n in range(4):
            outer.add_node(f"b{n}", graph, enter=lambda s: {}, leave=lambda s: {"n": s.n})
            outer.add_edge(START, f"b{n}").add_edge(f"b{n}", END)
        graph = outer.compile(name=f"g{depth}", max_steps=200)
    assert bench.runner().invoke(graph, {}, "t").values.to_json()["n"] == 64


def test_what_calls_cost_is_counted_for_the_run_once(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.once("call", lambda: "x", spent=lambda reply: Spent(1, 10, len(reply)))
        runtime.interrupt("ok?")
        return None

    graph = fan({"a": node, "b": node})
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {}, "t")
    for ask in snapshot.interrupts:
        runner.resume("t", {ask.id: 1})
    assert bench.store.load("t").spent == Spent(2, 20, 2)
