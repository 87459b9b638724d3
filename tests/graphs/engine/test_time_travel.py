"""Forks: what had run does not run again, what comes asks again, lines do not leak, budgets carry over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.engine import END, START, Command, Graph, Runtime, Spent, StateGraph
from graphs.engine.errors import EffectsPending, RunError, ThreadExists, UnknownThread, UpdateRefused
from tests.graphs.engine.bench import Bench, Calls, Log, Ping, asks, fan, line, logs, question


def log_of(snapshot: Any) -> list[str]:
    found: list[str] = snapshot.values.to_json()["log"]
    return found


def out(child: Any) -> dict[str, Any]:
    return {"log": list(child.log)}


def test_a_fork_does_not_rerun_what_ran_and_asks_again_what_comes(bench: Bench) -> None:
    calls = Calls()
    graph = line(("a", logs("a", calls)), ("b", asks("b", calls=calls)), ("c", logs("c", calls)))
    runner = bench.runner()
    snapshot = runner.invoke(graph, {}, "t", who="U1")
    done = runner.resume("t", {question(snapshot): "old"})
    new = runner.fork("t", 1, {"text": "forked"}, author="U2")
    assert runner.get_state(new).source == "fork"
    assert runner.get_state(new).author == "U2"
    again = runner.advance(new)
    assert question(again) != question(snapshot)
    after = runner.resume(new, {question(again): "new"})
    assert (log_of(after), after.values.to_json()["text"]) == (["a", "b:new", "c"], "forked")
    assert runner.get_state("t") == done
    assert calls["a"] == 1
    assert bench.store.load(new).run.who == "U1"


def test_a_fork_of_a_paused_run_leaves_its_question_to_it(bench: Bench) -> None:
    runner = bench.runner()
    snapshot = runner.invoke(line(("a", asks("a"))), {}, "t")
    forked = runner.advance(runner.fork("t", 0, new_thread="u"))
    runner.resume("u", {question(forked): "u"})
    assert log_of(runner.resume("t", {question(snapshot): "t"})) == ["a:t"]
    assert log_of(runner.get_state("u")) == ["a:u"]


@given(st.data())
def test_lines_never_leak_into_one_another(new_bench: Callable[[], Bench], data: st.DataObject) -> None:
    """Any number of forks of any steps of any lines: every line is what its own history says."""
    bench = new_bench()
    graph = StateGraph(Log).add_node("a", lambda s: {"n": 1, "log": f"{s.text}{s.n}"}).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s.n < 6 else END, ["a", END])
    runner = bench.runner()
    runner.invoke(graph.compile(name="g"), {"text": "0:"}, "l0")
    expected = {"l0": [f"0:{n}" for n in range(6)]}
    for number in range(1, data.draw(st.integers(1, 5)) + 1):
        origin = data.draw(st.sampled_from(sorted(expected)))
        step = data.draw(st.sampled_from([each.step for each in runner.get_state_history(origin)]))
        kept = log_of(runner.get_state(origin, step))
        name = runner.fork(origin, step, {"text": f"{number}:"}, new_thread=f"l{number}")
        expected[name] = [*kept, *(f"{number}:{n}" for n in range(len(kept), 6))]
        runner.advance(name)
        for line_, log in expected.items():
            assert log_of(runner.get_state(line_)) == log
    for line_ in expected:
        steps = [each.step for each in runner.get_state_history(line_)]
        assert steps == list(range(steps[0], -1, -1))


def test_only_a_settled_step_that_exists_is_forked(bench: Bench) -> None:
    bench.outbox.says["x"] = "pending"
    runner = bench.runner()
    runner.invoke(line(("a", lambda s: Command(effects=[Ping(to="x", content="1")]))), {}, "t")
    with pytest.raises(EffectsPending, match="Step 1"):
        runner.fork("t", 1)
    with pytest.raises(LookupError, match="no step 7"):
        runner.fork("t", 7)
    with pytest.raises(UnknownThread):
        runner.fork("ghost", 0)
    with pytest.raises(ThreadExists):
        runner.fork("t", 0, new_thread="t")
    with pytest.raises(UpdateRefused, match="'ghost'"):
        runner.fork("t", 0, {"ghost": 1})
    with pytest.raises(RunError, match="cannot name a run"):
        runner.fork("t", 0, new_thread="a/b")


def looping(max_steps: int, until: int = 10) -> Graph[Any]:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.once("call", lambda: 1, spent=lambda _: Spent(1, 10, 5))
        return {"n": 1}

    graph = StateGraph(Log).add_node("a", node).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s.n < until else END, ["a", END])
    return graph.compile(name="loop", max_steps=max_steps)


def test_a_fork_has_the_steps_that_were_left(bench: Bench) -> None:
    graph = looping(8, until=20)
    runner = bench.runner(graph)
    runner.invoke(graph, {}, "t")
    forked = runner.advance(runner.fork("t", 5))
    assert (forked.status, forked.values.to_json()["n"], forked.step) == ("halted", 8, 3)
    second = runner.advance(runner.fork(forked.thread_id, 2))
    assert (second.status, second.values.to_json()["n"]) == ("halted", 8)
    none_left = runner.advance(runner.fork(second.thread_id, 1))
    assert (none_left.status, none_left.step) == ("halted", 0)
    assert runner.retry(none_left.thread_id, max_steps=2).values.to_json()["n"] == 10


def test_what_the_line_spent_counts_for_the_fork(new_bench: Callable[[], Bench]) -> None:
    bench, graph = new_bench(), looping(40)
    runner = bench.runner(graph)
    runner.invoke(graph, {}, "t")
    new = runner.fork("t", 7)
    assert bench.store.load(new).spent == Spent(10, 100, 50)
    runner.advance(new)
    assert bench.store.load(new).spent == Spent(13, 130, 65)


def test_a_fork_knows_what_the_lines_before_it_sent(bench: Bench) -> None:
    def sends(name: str) -> Any:
        return lambda s: Command(update={"log": name}, effects=[Ping(to=name, content=f"from {s.text}")])

    bench.outbox.says["b"] = "failed"
    inner = line(("c", sends("c")), name="inner")
    graph = StateGraph(Log).add_node("a", sends("a")).add_node("b", sends("b"))
    graph.add_node("sub", inner, enter=lambda s: {"text": s.text}, leave=out)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "sub").add_edge("sub", END)
    runner = bench.runner()
    runner.invoke(graph.compile(name="g"), {"text": "one"}, "t")
    assert runner.sent_before("t") == []
    new = runner.fork("t", 2, {"text": "two"}, new_thread="u")
    assert [(sent.kind, sent.to, sent.content, sent.status) for sent in runner.sent_before(new)] == [
        ("ping", "a", "from one", "sent"), ("ping", "c", "from one", "sent"),
    ]  # fmt: skip
    runner.advance(new)
    runner.fork("u", 0, new_thread="v")
    assert [(sent.key, sent.to, sent.content) for sent in runner.sent_before("v")] == [
        ("t:1:0", "a", "from one"), ("t/4.sub:1:0", "c", "from one"), ("u/2.sub:1:0", "c", "from two"),
    ]  # fmt: skip


def test_what_is_half_done_is_done_afresh_in_the_fork(bench: Bench) -> None:
    calls = Calls()
    runner = bench.runner()
    runner.invoke(fan({"a": logs("a", calls), "b": asks("b")}), {}, "t")
    forked = runner.advance(runner.fork("t", 0))
    assert calls["a"] == 2
    assert log_of(runner.resume(forked.thread_id, {question(forked): 1})) == ["a", "b:1", "after"]


def test_a_half_filled_join_is_forked_with_what_it_has_seen(bench: Bench) -> None:
    graph = StateGraph(Log)
    for name in ["a", "b", "c", "join"]:
        graph.add_node(name, logs(name))
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge(["a", "c"], "join")
    runner = bench.runner()
    runner.invoke(graph.add_edge("join", END).compile(name="g"), {}, "t")
    assert log_of(runner.advance(runner.fork("t", 1))) == ["a", "b", "c", "join"]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_fork_of_a_child_forks_its_ancestors_around_it(bench: Bench, depth: int) -> None:
    calls = Calls()
    graph = line(("x", logs("x", calls)), ("y", asks("y", calls=calls)), ("z", logs("z", calls)), name="inner")
    for level in range(depth):
        outer = StateGraph(Log).add_node("pre", logs(f"pre{level}", calls))
        outer.add_node("sub", graph, enter=lambda s: {"text": s.text}, leave=out)
        outer.add_node("post", logs(f"post{level}", calls))
        outer.add_edge(START, "pre").add_edge("pre", "sub").add_edge("sub", "post").add_edge("post", END)
        graph = outer.compile(name=f"outer{level}")
    runner = bench.runner(graph)
    snapshot = runner.invoke(graph, {"text": "given"}, "t")
    child = "t" + "/1.sub" * depth
    done = runner.resume("t", {question(snapshot): "old"})
    calls.counts.clear()
    new = runner.fork(child, 1, {"log": "edited"})
    again = runner.advance(new)
    assert [ask.path for ask in again.interrupts] == [("sub",) * depth + ("y",)]
    after = runner.resume(new, {question(again): "new"})
    pre = [f"pre{level}" for level in reversed(range(depth))]
    post = [f"post{level}" for level in range(depth)]
    assert log_of(after) == [*pre, "x", "edited", "y:new", "z", *post]
    assert log_of(done) == [*pre, "x", "y:old", "z", *post]
    assert dict(calls.counts) == {"y": 2, "z": 1} | dict.fromkeys(post, 1)
    assert runner.get_state(new + "/0.sub" * depth, 0).source == "fork"


def test_a_fork_taken_up_in_a_child_survives_an_edit_before_it_starts(bench: Bench) -> None:
    inner = line(("x", logs("x")), ("y", asks("y")), name="inner")
    graph = StateGraph(Log).add_node("sub", inner, enter=lambda s: {}, leave=out)
    compiled = graph.add_edge(START, "sub").add_edge("sub", END).compile(name="g")
    runner = bench.runner(compiled)
    runner.invoke(compiled, {}, "t")
    new = runner.fork("t/0.sub", 1, {"log": "forked"})
    runner.update_state(new, {"text": "edited"})
    snapshot = runner.advance(new)
    assert log_of(runner.resume(new, {question(snapshot): 1})) == ["x", "forked", "y:1"]


def test_a_fork_of_a_child_has_the_steps_that_were_left(bench: Bench) -> None:
    inner = line(("x", logs("x")), ("y", logs("y")), ("z", logs("z")), name="inner")
    graph = StateGraph(Log).add_node("sub", inner, enter=lambda s: {}, leave=out)
    compiled = graph.add_edge(START, "sub").add_edge("sub", END).compile(name="g", max_steps=4)
    runner = bench.runner(compiled)
    assert runner.invoke(compiled, {}, "t").status == "finished"
    assert log_of(runner.advance(runner.fork("t/0.sub", 1))) == ["x", "y", "z"]
    graph.compile(name="g", max_steps=3)
    short = runner.invoke(compiled, {}, "u", max_steps=3)
    assert short.status == "halted"
    forked = runner.advance(runner.fork("u/0.sub", 1))
    assert (forked.status, runner.get_state(f"{forked.thread_id}/0.sub").step) == ("halted", 1)
    assert log_of(runner.retry(forked.thread_id, max_steps=3)) == ["x", "y", "z"]
