"""Supersteps: what runs beside what, joins, routers, retries, and that finished work is never done twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.engine import END, START, Command, Graph, Halt, Later, RetryPolicy, Runner, Runtime, Send, Spent, StateGraph
from graphs.engine.checkpoint import NOTHING_SPENT, Pause, PendingWrite
from graphs.engine.errors import ClaimLost, NodeFailed, NotNow, StoreFailed, UnknownThread, UpdateRefused
from graphs.engine.memory import MemoryCheckpointer
from graphs.engine.values import load
from tests.graphs.engine.bench import Bench, Calls, Clock, Dying, Log, Ping, asks, fan, keep_going, line, logs, sources

QUICK = RetryPolicy(max_attempts=3, interval=0.0)


def log_of(snapshot: Any) -> list[str]:
    found: list[str] = snapshot.values.to_json()["log"]
    return found


def test_writes_are_invisible_until_the_superstep_ends_and_routers_see_them_all(bench: Bench) -> None:
    seen: dict[str, Any] = {}

    def node(name: str) -> Callable[[Log], Any]:
        def run(state: Log) -> Any:
            seen[name] = (state.n, list(state.log))
            return {"n": 1, "log": name}

        return run

    def route(state: Log) -> str:
        seen["router"] = (state.n, list(state.log))
        return END

    graph = StateGraph(Log).add_node("a", node("a")).add_node("b", node("b"))
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("b", END).add_conditional_edges("a", route, [END])
    bench.runner().invoke(graph.compile(name="g"), {}, "t")
    assert seen == {"a": (0, []), "b": (0, []), "router": (2, ["a", "b"])}


def test_branches_really_run_side_by_side(bench: Bench) -> None:
    meet = threading.Barrier(3, timeout=10)

    def node(state: Log) -> None:
        meet.wait()

    assert bench.runner().invoke(fan({"a": node, "b": node, "c": node}), {}, "t").status == "finished"


def test_a_join_runs_once_after_branches_of_unequal_length(bench: Bench) -> None:
    graph = StateGraph(Log)
    for name in ["a", "b1", "b2", "b3", "join"]:
        graph.add_node(name, logs(name))
    graph.add_edge(START, "a").add_edge(START, "b1").add_edge("b1", "b2").add_edge("b2", "b3")
    graph.add_edge(["a", "b3"], "join").add_edge("join", END)
    assert log_of(bench.runner().invoke(graph.compile(name="g"), {}, "t")) == ["a", "b1", "b2", "b3", "join"]


def test_a_join_in_a_loop_waits_for_both_parents_in_every_round(bench: Bench) -> None:
    graph = StateGraph(Log)
    for name in ["a", "b", "c"]:
        graph.add_node(name, logs(name))
    graph.add_node("join", logs("join", n=1))
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c").add_edge(["a", "c"], "join")
    graph.add_conditional_edges("join", lambda s: ["a", "b"] if s.n < 3 else END, {"a": "a", "b": "b", END: END})
    with pytest.raises(Exception, match="can wait for ever"):
        graph.compile(name="g")  # the router might choose one of them alone
    graph = StateGraph(Log)
    for name in ["again", "a", "b", "c"]:
        graph.add_node(name, logs(name))
    graph.add_node("join", logs("join", n=1)).add_edge(START, "again").add_edge("again", "a").add_edge("again", "b")
    graph.add_edge("b", "c").add_edge(["a", "c"], "join")
    graph.add_conditional_edges("join", lambda s: "again" if s.n < 3 else END, ["again", END])
    snapshot = bench.runner().invoke(graph.compile(name="g"), {}, "t")
    assert log_of(snapshot) == ["again", "a", "b", "c", "join"] * 3


def test_several_joins_and_a_plain_edge_lead_into_one_node(bench: Bench) -> None:
    graph = StateGraph(Log)
    for name in "abcd":
        graph.add_node(name, logs(name)).add_edge(START, name)
    for name in ["x", "y", "z"]:
        graph.add_node(name, logs(name))
    graph.add_edge(["a", "b"], "x").add_edge(["c", "d"], "y").add_edge("a", "z").add_edge(["x", "y"], "z")
    graph.add_edge("z", END)
    snapshot = bench.runner().invoke(graph.compile(name="g"), {}, "t")
    assert log_of(snapshot) == ["a", "b", "c", "d", "x", "y", "z", "z"]


@pytest.mark.parametrize(
    ("answer", "ran"),
    [
        (["b", "c"], ["a", "b", "c"]),
        (["c", "b"], ["a", "b", "c"]),
        (["b", "b"], ["a", "b"]),
        (["b", END], ["a", "b"]),
        ({"b", "c"}, ["a", "b", "c"]),
        (END, ["a"]),
    ],
)
def test_a_router_may_choose_several_one_twice_and_end_beside_others(bench: Bench, answer: Any, ran: list[str]) -> None:
    graph = StateGraph(Log)
    for name in "abc":
        graph.add_node(name, logs(name))
    graph.add_edge(START, "a").add_conditional_edges("a", lambda s: answer, ["b", "c", END])
    graph.add_edge("b", END).add_edge("c", END)
    assert log_of(bench.runner().invoke(graph.compile(name="g"), {}, "t")) == ran


def test_a_command_goes_on_beside_plain_edges(bench: Bench) -> None:
    graph = StateGraph(Log)
    graph.add_node("a", lambda s: Command(update={"log": "a"}, goto=["c", END]), destinations=["c", END])
    graph.add_node("b", logs("b")).add_node("c", logs("c"))
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).add_edge("c", END)
    runner = bench.runner()
    assert log_of(runner.invoke(graph.compile(name="g"), {}, "t")) == ["a", "b", "c"]
    took = runner.get_state("t", 1).meta
    assert took is not None
    assert took["took"] == [["a", "b", ""], ["a", "c", "goto"], ["a", END, "goto"]]


def test_send_runs_a_node_once_for_each_payload_in_order(bench: Bench) -> None:
    graph = StateGraph(Log)
    graph.add_node("split", lambda s: Command(goto=[Send("work", {"x": x}) for x in "abc"]), destinations=["work"])
    graph.add_node("work", lambda item: {"log": item["x"]}).add_node("sum", logs("sum"))
    graph.add_edge(START, "split").add_edge("work", "sum").add_edge("sum", END)
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g"), {}, "t")
    assert log_of(snapshot) == ["a", "b", "c", "sum"]
    assert runner.get_state("t", 1).next == ("work#0", "work#1", "work#2")


def test_a_router_may_send_too_and_the_payload_cannot_be_changed(bench: Bench) -> None:
    def work(item: Any) -> Any:
        with pytest.raises(TypeError):
            item.append(1)
        return {"n": sum(item)}

    graph = StateGraph(Log).add_node("a", logs("a")).add_node("work", work).add_edge(START, "a").add_edge("work", END)
    graph.add_conditional_edges("a", lambda s: [Send("work", [1, 2]), Send("work", [3])], ["work"])
    assert bench.runner().invoke(graph.compile(name="g"), {}, "t").values.to_json()["n"] == 6


@pytest.mark.parametrize("payload", [{1, 2}, (1, 2), float("nan"), object(), {1: 2}, [Ping(to="x", content="y")]])
def test_a_payload_that_is_no_json_is_refused_before_anything_is_stored(bench: Bench, payload: Any) -> None:
    by_node = StateGraph(Log).add_node("a", lambda s: Command(goto=Send("b", payload)), destinations=["b"])
    by_node.add_node("b", logs("b")).add_edge(START, "a").add_edge("b", END)
    by_router = StateGraph(Log).add_node("a", logs("a")).add_node("b", logs("b")).add_edge(START, "a")
    by_router.add_conditional_edges("a", lambda s: Send("b", payload), ["b"]).add_edge("b", END)
    runner = bench.runner()
    for name, graph, culprit in [("n", by_node, "a sends 'b'"), ("r", by_router, "router .* sends 'b'")]:
        with pytest.raises(UpdateRefused, match=culprit):
            runner.invoke(graph.compile(name=name), {}, name)
        assert runner.get_state(name).step == 0


def test_a_failed_branch_costs_its_finished_siblings_nothing(bench: Bench) -> None:
    calls, broken = Calls(), [True]

    def fails(state: Log, runtime: Runtime[Any]) -> Any:
        calls("b")
        runtime.once("paid", lambda: calls("paid"))
        if broken[0]:
            raise ValueError("broken")
        return Command(update={"log": "b"})

    def effects(state: Log) -> Any:
        calls("c")
        return Command(update={"log": "c", "n": 2}, effects=[Ping(to="x", content="y")])

    runner = bench.runner()
    with pytest.raises(NodeFailed, match="b raised ValueError: broken"):
        runner.invoke(fan({"a": logs("a", calls), "b": fails, "c": effects}), {}, "t")
    failed = runner.get_state("t")
    assert (failed.status, failed.step, log_of(failed)) == ("failed", 0, [])
    assert bench.outbox.sent == []
    broken[0] = False
    after = runner.retry("t")
    assert (log_of(after), after.values.to_json()["n"]) == (["a", "b", "c", "after"], 2)
    assert dict(calls.counts) == {"a": 1, "b": 2, "c": 1, "paid": 1}
    assert bench.outbox.sent == [("ping", "x")]


@given(st.data())
def test_whatever_branches_do_first_what_has_finished_is_not_repeated(data: st.DataObject) -> None:
    """Branches that fail, ask, sleep or finish, each in its own order: in the end everyone has finished once."""
    plans = data.draw(
        st.lists(st.lists(st.sampled_from(["fail", "ask", "later", "halt"]), max_size=3), min_size=2, max_size=4)
    )
    clock, calls, finished = Clock(), Calls(), Calls()
    runner = Runner(MemoryCheckpointer(clock))
    from_now = runner.store.now

    def branch(name: str, plan: list[str]) -> Callable[[Log, Runtime[Any]], Any]:
        todo = list(plan)

        def node(state: Log, runtime: Runtime[Any]) -> Any:
            runtime.once("paid", lambda: calls(name))
            asked = plan.count("ask") - todo.count("ask")
            for place in range(asked):
                assert runtime.interrupt(f"{name} {place}") == f"yes {name}"
            while todo:
                match todo[0]:
                    case "ask":
                        todo.pop(0)
                        assert runtime.interrupt(f"{name} {asked}") == f"yes {name}"
                    case "fail":
                        todo.pop(0)
                        raise ValueError(name)
                    case what:
                        todo.pop(0)
                        raise _signal(what, from_now())
            finished(name)
            return {"log": name}

        return node

    names = [f"b{place}" for place in range(len(plans))]
    graph = fan({name: branch(name, plan) for name, plan in zip(names, plans, strict=True)})
    runner.start(graph, {}, "t")
    _drive(runner, clock, names)
    assert log_of(runner.get_state("t")) == [*names, "after"]
    assert all(finished[name] == 1 and calls[name] == 1 for name in names)


def _signal(what: str, now: int) -> BaseException:
    wake = datetime.fromtimestamp(now / 1_000_000, UTC) + timedelta(seconds=60)
    return Later(wake) if what == "later" else Halt("stop")


def _drive(runner: Runner, clock: Clock, names: list[str]) -> None:
    for _ in range(80):
        snapshot = runner.get_state("t")
        try:
            if snapshot.status == "finished":
                return
            if snapshot.interrupts:
                runner.resume("t", {ask.id: f"yes {ask.path[-1]}" for ask in snapshot.interrupts})
            elif snapshot.status in ("failed", "halted"):
                runner.retry("t")
            else:
                clock.now += 61_000_000
                runner.advance("t")
        except NodeFailed:
            continue
    raise AssertionError(f"gets nowhere: {snapshot}")


class Flaky:
    """Raises what it is told to, one after the other, then returns its count."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, state: Any) -> Any:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return {"n": self.calls}


def retried(node: Any, policy: RetryPolicy = QUICK, **settings_: Any) -> Graph[Any]:
    graph = StateGraph(Log).add_node("a", node, retry=policy, **settings_)
    return graph.add_edge(START, "a").add_edge("a", END).compile(name="g")


def test_listed_errors_are_retried_and_no_others(bench: Bench) -> None:
    runner = bench.runner()
    flaky = Flaky(ConnectionError(), TimeoutError())
    assert runner.invoke(retried(flaky), {}, "ok").values.to_json()["n"] == 3
    exhausted = Flaky(*[ConnectionError("down")] * 5)
    with pytest.raises(NodeFailed, match="a raised ConnectionError: down"):
        bench.runner().invoke(retried(exhausted), {}, "no")
    assert exhausted.calls == 3
    other = Flaky(ValueError())
    with pytest.raises(NodeFailed):
        bench.runner().invoke(retried(other), {}, "other")
    assert other.calls == 1


def test_a_pause_is_never_retried(bench: Bench) -> None:
    calls = Calls()
    everything = RetryPolicy(interval=0, retry_on=(Exception,))
    snapshot = bench.runner().invoke(retried(asks("a", calls=calls), everything), {}, "t")
    assert (snapshot.status, calls["a"]) == ("waiting", 1)


def test_an_attempt_sees_what_the_one_before_recorded_saved_or_not(bench: Bench) -> None:
    seen: list[Any] = []
    calls = Calls()

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        bench.clock.now += 1
        seen.append((runtime.now(), runtime.memory.get("k"), runtime.random.random(), runtime.attempt))
        runtime.memory.put("kept", len(seen))
        if len(seen) == 1:
            raise ConnectionError
        runtime.once("call", lambda: calls("call"), spent=lambda _: Spent(1, 2, 3))
        if len(seen) == 2:
            raise ConnectionError
        return {"n": 1}

    runner = bench.runner()
    runner.invoke(retried(node), {}, "t", who="U1")
    assert [attempt for *_, attempt in seen] == [1, 2, 3]
    assert len({tuple(rest) for *rest, _ in seen}) == 1
    assert calls["call"] == 1
    assert bench.store.recall("g:U1", "kept") == 3
    meta = runner.get_state("t").meta
    assert meta is not None
    assert meta["spent"] == [1, 2, 3]
    assert bench.store.load("t").spent == Spent(1, 2, 3)


def test_what_a_failed_run_had_recorded_is_there_when_it_is_tried_again(bench: Bench) -> None:
    times: list[Any] = []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        bench.clock.now += 1
        times.append(runtime.now())
        if len(times) == 1:
            raise ValueError
        return None

    runner = bench.runner()
    with pytest.raises(NodeFailed):
        runner.invoke(line(("a", node)), {}, "t")
    runner.retry("t")
    assert len({*times}) == 1


def test_an_attempt_that_took_too_long_writes_nothing_any_more(bench: Bench) -> None:
    late, tried = threading.Event(), threading.Event()
    calls, stopped = Calls(), []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        if calls("node") > 1:
            return {"log": f"second {runtime.once('call', lambda: 'second')}"}
        try:
            late.wait(10)
            runtime.once("call", lambda: calls("late call"))
        except BaseException as error:
            stopped.append(type(error).__name__)
            raise
        finally:
            tried.set()
        return {"log": "late"}

    graph = retried(node, RetryPolicy(max_attempts=2, interval=0), timeout=0.05)
    snapshot = bench.runner().invoke(graph, {}, "t")
    late.set()
    assert tried.wait(10)
    assert log_of(snapshot) == ["second second"]
    assert (stopped, calls["late call"]) == (["Abandoned"], 0)
    assert bench.runner(graph).get_state("t").values == snapshot.values


def test_a_result_that_arrives_too_late_is_not_recorded(bench: Bench) -> None:
    """The call itself is what takes too long: its result must not become the answer of another attempt's call."""
    late, returned = threading.Event(), threading.Event()
    calls = Calls()

    def slow() -> str:
        if calls("call") == 1:
            late.wait(10)
            return "late"
        return "in time"

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        try:
            return {"log": runtime.once("call", slow)}
        finally:
            returned.set()

    def after(state: Log, runtime: Runtime[Any]) -> Any:
        late.set()
        assert returned.wait(10)
        return {"log": "after"}

    graph = StateGraph(Log).add_node("a", node, retry=RetryPolicy(interval=0), timeout=0.05).add_node("after", after)
    compiled = graph.add_edge(START, "a").add_edge("a", "after").add_edge("after", END).compile(name="g")
    assert log_of(bench.runner().invoke(compiled, {}, "t")) == ["in time", "after"]


def test_a_timeout_without_retries_fails_the_run_and_says_how_long_it_waited(bench: Bench) -> None:
    release = threading.Event()
    graph = StateGraph(Log).add_node("a", lambda s: release.wait(10), timeout=0.01)
    with pytest.raises(NodeFailed, match=r"a raised TimeoutError: no result within 0\.01 s"):
        bench.runner().invoke(graph.add_edge(START, "a").add_edge("a", END).compile(name="g"), {}, "t")
    release.set()


def test_stopping_the_caller_stops_the_nodes_and_leaves_the_last_step(bench: Bench) -> None:
    began, go, over = threading.Event(), threading.Event(), threading.Event()
    calls, stopped = Calls(), []

    def slow(state: Log, runtime: Runtime[Any]) -> Any:
        if calls("slow") > 1:
            return {"log": "slow"}
        began.set()
        go.wait(10)
        for work in (lambda: runtime.once("late", lambda: 1), lambda: runtime.stream("late")):
            try:
                work()
            except BaseException as error:
                stopped.append(type(error).__name__)
        over.set()
        return None

    def quick(state: Log) -> Any:  # the first one is run by the caller's own thread
        if calls("quick") > 1:
            return {"log": "quick"}
        assert began.wait(10)
        raise KeyboardInterrupt

    graph = StateGraph(Log)
    for name, node in {"a": logs("a"), "quick": quick, "slow": slow}.items():
        graph.add_node(name, node)
    graph.add_edge(START, "a").add_edge("a", "slow").add_edge("a", "quick").add_edge(["slow", "quick"], END)
    compiled = graph.compile(name="g")
    with pytest.raises(KeyboardInterrupt):
        bench.runner().invoke(compiled, {}, "t")
    go.set()
    assert over.wait(10)
    assert stopped == ["ClaimLost", "Abandoned"]
    runner = bench.runner(compiled)
    assert log_of(runner.get_state("t")) == ["a"]
    with pytest.raises(NotNow):
        runner.advance("t")
    bench.clock.lapse()
    assert log_of(runner.advance("t")) == ["a", "quick", "slow"]


def test_two_hundred_runs_of_one_graph_do_not_mix() -> None:
    def double(state: Log, runtime: Runtime[Any]) -> Any:
        return {"n": state.n, "log": f"{runtime.thread_id}:{state.n}"}

    graph = fan({"a": double, "b": double}, after=double)
    runner = Runner(MemoryCheckpointer())
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda n: runner.invoke(graph, {"n": n}, f"t{n}"), range(200)))
    for n, snapshot in enumerate(found):
        assert snapshot.values.to_json()["n"] == 6 * n
        assert log_of(snapshot) == [f"t{n}:{n}", f"t{n}:{n}", f"t{n}:{3 * n}"]


def test_there_is_one_checkpoint_for_every_superstep_and_the_input_is_one(bench: Bench) -> None:
    steps: list[int] = []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        steps.append(max(row.step for row in bench.store.history(runtime.thread_id)))
        return {"log": runtime.node}

    graph = fan({"a": node, "b": node}, after=node, version=3)
    runner = bench.runner()
    runner.invoke(graph, {}, "t", who="U1")
    assert sorted(steps) == [0, 0, 1]
    assert sources(runner, "t") == ["input", "step", "step"]
    history = list(runner.get_state_history("t"))
    assert [(each.step, each.next) for each in history] == [(2, ()), (1, ("after",)), (0, ("a", "b"))]
    assert history[-1].author == "U1"
    run = bench.store.load("t").run
    assert (run.flow, run.version, run.fingerprint) == ("fan", 3, graph.fingerprint)


@pytest.mark.parametrize("saved", [False, True])
def test_a_checkpoint_that_cannot_be_written_stops_the_run_before_the_next_node(bench: Bench, saved: bool) -> None:
    calls = Calls()
    graph = line(("a", logs("a", calls)), ("b", logs("b", calls)))
    dying = Dying(bench.store, 1, saved=saved)
    runner = bench.runner(store=dying)
    with pytest.raises(StoreFailed):
        runner.invoke(graph, {}, "t")
    assert dict(calls.counts) == {"a": 1}
    with pytest.raises(NotNow):
        bench.runner(graph).advance("t")
    bench.clock.lapse()
    assert log_of(bench.runner(graph).advance("t")) == ["a", "b"]
    assert calls["a"] == (1 if saved else 2)


class Full:
    """A store that has no room for a finished sibling."""

    def __init__(self, inner: Any, refused: threading.Event) -> None:
        self.inner, self.refused = inner, refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def record(self, claim: Any, writes: Any, spent: Spent = NOTHING_SPENT) -> None:
        self.refused.set()
        raise StoreFailed("the disk is full")


def test_a_sibling_that_cannot_be_kept_stops_the_run_once_nothing_runs_any_more(bench: Bench) -> None:
    refused, calls = threading.Event(), Calls()

    def slow(state: Log) -> Any:
        assert refused.wait(10)
        calls("slow")
        return {"log": "slow"}

    graph = fan({"slow": slow, "quick": logs("quick")})
    with pytest.raises(StoreFailed):
        bench.runner(store=Full(bench.store, refused)).invoke(graph, {}, "t")
    assert calls["slow"] == 1
    assert bench.runner(graph).get_state("t").step == 0


def test_a_late_owner_can_save_nothing(bench: Bench) -> None:
    held, go = threading.Event(), threading.Event()
    calls = Calls()

    def slow(state: Log, runtime: Runtime[Any]) -> Any:
        if calls("slow") == 1:
            held.set()
            assert go.wait(10)
        return {"log": f"owner {runtime.once('who', lambda: calls('call'))}"}

    graph = line(("slow", slow))
    runner = bench.runner(graph)
    runner.start(graph, {}, "t")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(runner.advance, "t")
        assert held.wait(10)
        bench.clock.lapse()
        assert log_of(runner.advance("t")) == ["owner 1"]
        go.set()
        with pytest.raises(ClaimLost):
            first.result(10)
    assert log_of(runner.get_state("t")) == ["owner 1"]


def test_the_same_result_kept_twice_has_no_effect(bench: Bench) -> None:
    graph = line(("a", asks("a")))
    runner = bench.runner(graph)
    thread = runner.start(graph, {}, "t")
    claim = bench.store.claim(thread, runner.known)
    for value in ("1", "2"):
        bench.store.record(claim, [PendingWrite("t", 0, "a", "once:x:0", value)])
    assert [write.value for write in bench.store.load("t").writes] == ["1"]
    bench.store.pause(claim, Pause(wake_at=bench.store.now()))


def test_runs_are_isolated_and_a_deleted_one_leaves_nothing(bench: Bench) -> None:
    graph = line(("a", asks("a")), ("b", logs("b")))
    runner = bench.runner(graph)
    snapshots = {name: runner.invoke(graph, {"text": name}, name) for name in ("one", "two")}
    bench.store.delete("one")
    with pytest.raises(UnknownThread):
        runner.get_state("one")
    assert bench.store.interrupts("two") == snapshots["two"].interrupts
    assert runner.resume("two", {snapshots["two"].interrupts[0].id: 1}).values.to_json()["text"] == "two"
    assert runner.invoke(graph, {}, "one").values.to_json()["text"] == ""


def test_a_pruned_run_goes_on_from_its_head(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", lambda s: {"n": 1, "text": "x" * 900}).add_node("ask", asks("ask"))
    graph.add_edge(START, "a").add_conditional_edges("a", lambda s: "a" if s.n < 20 else "ask", ["a", "ask"])
    compiled = graph.add_edge("ask", END).compile(name="g")
    runner = bench.runner()
    snapshot = runner.invoke(compiled, {}, "t")
    before = len(bench.store.history("t"))
    bench.store.prune("t")
    assert len(bench.store.history("t")) < before
    assert runner.get_state("t").values == snapshot.values
    with pytest.raises(LookupError, match="no step 0"):
        runner.get_state("t", 0)
    assert runner.resume("t", {snapshot.interrupts[0].id: 1}).status == "finished"


def test_history_pages_from_the_newest(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", lambda s: {"n": 1, "text": "x" * 700}).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s.n < 25 else END, ["a", END])
    runner = bench.runner()
    runner.invoke(graph.compile(name="g"), {}, "t")
    whole = list(runner.get_state_history("t"))
    assert [each.step for each in whole] == list(range(25, -1, -1))
    assert [each.values.to_json()["n"] for each in whole] == list(range(25, -1, -1))
    for before in (26, 25, 13, 1):
        page = list(runner.get_state_history("t", before=before, limit=4))
        assert page == [each for each in whole if each.step < before][:4]
    assert list(runner.get_state_history("t", limit=0)) == []
    assert runner.get_state("t", 7).values == whole[25 - 7].values


class Traced:
    """The graph of the crash law: everything that is saved on the way, with counters that outlive crashes."""

    def __init__(self) -> None:
        self.calls, self.repeats = Calls(), Calls()
        self.safe: Callable[[], Dying | None] = lambda: None

    def node(self, name: str, *effects: Ping, ask: bool = False) -> Callable[[Any, Runtime[Any]], Any]:
        def run(state: Any, runtime: Runtime[Any]) -> Any:
            if (store := self.safe()) is not None:
                assert (runtime.thread_id, runtime.step, runtime.task.name) not in store.done, f"{name} repeated"
            before = runtime.once("before", lambda: self._paid(runtime, "before"))
            answer = runtime.interrupt(f"{name}?") if ask else ""
            runtime.once("after", lambda: self._paid(runtime, "after"))
            runtime.memory.put(name, before)
            return Command(update={"log": f"{name}{answer}"}, effects=effects)

        return run

    def _paid(self, runtime: Runtime[Any], name: str) -> str:
        key = (runtime.thread_id, runtime.step, runtime.task.name, f"once:{name}:0")
        store = self.safe()
        assert store is None or key not in store.once, f"{key} paid twice"
        return self.calls(f"{runtime.node} {name}") and name

    def graph(self) -> Graph[Any]:
        inner = line(
            ("x", self.node("x", Ping(to="inner", content="1", into="receipts"))),
            ("y", self.node("y", ask=True)),
            name="inner",
        )
        graph = StateGraph(Log).add_node("a", self.node("a")).add_node("b", self.node("b", ask=True))
        graph.add_node("c", self.node("c", Ping(to="c", content="2")))
        graph.add_node("sub", inner, enter=lambda s: {"n": s.n}, leave=lambda s: {"log": list(s.log)})
        graph.add_node(
            "join", self.node("join", Ping(to="one", content="3", into="receipts"), Ping(to="two", content="4"))
        )
        for name in ["b", "c", "sub"]:
            graph.add_edge("a", name)
        graph.add_edge(["b", "c", "sub"], "join").add_edge(START, "a").add_edge("join", END)
        return graph.compile(name="crash")


ANSWERS: Mapping[str, Any] = {"b": "!", "y": "?"}


def crash(new_bench: Callable[[], Bench], at: int, *, saved: bool) -> tuple[Any, Dying, Bench]:
    bench, traced = new_bench(), Traced()
    graph = traced.graph()
    dying = Dying(bench.store, at, saved=saved)
    traced.safe = lambda: dying
    runner = bench.runner(graph, store=dying)
    runner.start(graph, {}, "t", who="U1")
    return keep_going(runner, "t", bench.clock, ANSWERS), dying, bench


@pytest.mark.parametrize("saved", [False, True])
def test_whatever_save_a_process_dies_at_the_run_ends_the_same(new_bench: Callable[[], Bench], saved: bool) -> None:
    """No finished node and no recorded call is repeated (the nodes check it), nothing is sent twice or lost."""
    undisturbed, counted, bench = crash(new_bench, 0, saved=False)
    assert undisturbed.status == "finished"
    assert log_of(undisturbed) == ["a", "b!", "c", "x", "y?", "join"]
    assert sorted(bench.outbox.sent) == [("ping", "c"), ("ping", "inner"), ("ping", "one"), ("ping", "two")]
    assert counted.saves > 15
    for at in range(1, counted.saves + 1):
        snapshot, _, after = crash(new_bench, at, saved=saved)
        assert snapshot.values == undisturbed.values, at
        assert sorted(after.outbox.sent) == sorted(bench.outbox.sent), at
        assert after.store.load("t").steps == bench.store.load("t").steps


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=5))
def test_a_run_survives_any_number_of_deaths(new_bench: Callable[[], Bench], deaths: list[tuple[int, bool]]) -> None:
    bench, traced = new_bench(), Traced()
    graph = traced.graph()
    store: Any = bench.store
    runner = bench.runner(graph)
    runner.start(graph, {}, "t", who="U1")
    for at, saved in deaths:
        store = Dying(bench.store, at, saved=saved)
        try:
            keep_going(bench.runner(graph, store=store), "t", bench.clock, ANSWERS, tries=2)
        except AssertionError:
            continue
        bench.clock.lapse()
    bench.clock.lapse()
    snapshot = keep_going(runner, "t", bench.clock, ANSWERS)
    assert log_of(snapshot) == ["a", "b!", "c", "x", "y?", "join"]
    assert sorted(bench.outbox.sent) == [("ping", "c"), ("ping", "inner"), ("ping", "one"), ("ping", "two")]


def test_what_a_step_took_is_in_its_checkpoint(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        time.sleep(0.002)
        return {"log": "a"}

    graph = StateGraph(Log).add_node("a", node).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "done", {"done": END, "again": "a"})
    runner = bench.runner()
    runner.invoke(graph.compile(name="g"), {}, "t")
    row = bench.store.history("t")[0]
    meta = load(row.meta)
    ((name, ms),) = meta["ran"]
    assert name == "a"
    assert ms >= 2
    assert meta["took"] == [["a", END, "done"]]
    assert meta["steps"] == 1
