"""Effects: committed with the step, performed after it, settled one by one, merged as receipts, routed by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphs.engine import END, START, Command, Effect, Graph, Receipt, State, StateGraph
from graphs.engine.errors import NodeFailed, UpdateRefused
from tests.graphs.engine.bench import Bench, Calls, Log, Ping, Pong, asks, fan, line, logs, question, sources


def sends(name: str, *effects: Effect, calls: Calls | None = None) -> Any:
    def node(state: Any) -> Command:
        if calls is not None:
            calls(name)
        return Command(update={"log": name}, effects=effects)

    return node


def statuses(values: Any) -> list[tuple[str, str]]:
    return [(receipt.to, receipt.status) for receipt in values.receipts]


def test_effects_are_committed_with_the_step_and_performed_after_it(bench: Bench) -> None:
    seen: list[Any] = []
    perform = bench.outbox.perform

    class Watching:
        def perform(self, claim: Any, effects: Any) -> None:
            seen.append([(row.key, row.kind, row.address, row.content, row.status) for row in effects])
            seen.append(bench.store.history("t")[0].step)
            perform(claim, effects)

    runner = bench.runner()
    runner.performer = Watching()
    graph = line(("a", sends("a", Ping(to="x", content="hi"), Pong(to="y", content=""))), ("b", logs("b")))
    snapshot = runner.invoke(graph, {}, "t")
    assert seen == [[("t:1:0", "ping", "x", "hi", "pending"), ("t:1:1", "pong", "y", "", "pending")], 1]
    assert snapshot.values.to_json()["log"] == ["a", "b"]
    assert sources(runner, "t") == ["input", "step", "receipt", "step"]
    assert runner.get_state("t", 1).next == ()
    assert runner.get_state("t", 2).next == ("b",)


def test_an_effect_carries_what_its_sender_needs(bench: Bench) -> None:
    bench.outbox.says["x"] = "pending"
    runner = bench.runner()
    snapshot = runner.invoke(line(("a", sends("a", Ping(to="x", content="\0 \ud800", color="blue")))), {}, "t")
    (row,) = snapshot.effects
    assert (row.content, row.payload, row.root) == ("\0 \ud800", '{"color":"blue"}', "t")


@pytest.mark.parametrize("worse", ["failed", "unknown"])
def test_effects_settle_one_by_one_and_one_checkpoint_holds_all_receipts(bench: Bench, worse: str) -> None:
    bench.outbox.says["y"] = worse
    effects = [Ping(to=to, content="1", into="receipts") for to in "xyz"]
    runner = bench.runner()
    snapshot = runner.invoke(line(("a", sends("a", *effects)), ("b", logs("b"))), {}, "t")
    if worse == "unknown":
        assert (snapshot.status, snapshot.step) == ("running", 1)
        assert [row.status for row in snapshot.effects] == ["sent", "unknown", "sent"]
        assert snapshot.values.to_json()["receipts"] == []
        return
    assert statuses(snapshot.values) == [("x", "sent"), ("y", "failed"), ("z", "sent")]
    assert sources(runner, "t") == ["input", "step", "receipt", "step"]
    assert [receipt.detail for receipt in snapshot.values.to_json() and snapshot.values.receipts][
        1
    ] == "ping was failed"


def test_an_unknown_outcome_waits_until_somebody_knows(new_bench: Callable[[], Bench]) -> None:
    bench = new_bench()
    bench.outbox.says["x"] = "unknown"
    calls = Calls()
    runner = bench.runner()
    graph = line(("a", sends("a", Ping(to="x", content="1", into="receipts"), calls=calls)), ("b", logs("b", calls)))
    runner.invoke(graph, {}, "t")
    bench.settle(runner, "t", "sent")
    after = runner.advance("t")
    assert (after.status, statuses(after.values)) == ("finished", [("x", "sent")])
    assert (dict(calls.counts), bench.outbox.sent) == ({"a": 1, "b": 1}, [])


def test_routers_run_after_the_receipts_and_see_them(bench: Bench) -> None:
    bench.outbox.says["x"] = "failed"
    graph = StateGraph(Log).add_node("a", sends("a", Ping(to="x", content="1", into="receipts")))
    graph.add_node("good", logs("good")).add_node("bad", logs("bad")).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "good" if s.receipts[0].status == "sent" else "bad", ["good", "bad"])
    graph.add_edge("good", END).add_edge("bad", END)
    snapshot = bench.runner().invoke(graph.compile(name="g"), {}, "t")
    assert snapshot.values.to_json()["log"] == ["a", "bad"]


def test_a_goto_waits_for_the_receipts_too(bench: Bench) -> None:
    def node(state: Log) -> Command:
        return Command(update={"log": "a"}, goto="b", effects=[Ping(to="x", content="1", into="receipts")])

    graph = StateGraph(Log).add_node("a", node, destinations=["b"]).add_node("b", lambda s: {"n": len(s.receipts)})
    snapshot = bench.runner().invoke(graph.add_edge(START, "a").add_edge("b", END).compile(name="g"), {}, "t")
    assert snapshot.values.to_json()["n"] == 1


class Single(State):
    log: list[str] = []
    receipt: Receipt | None = None
    number: int = 0


@pytest.mark.parametrize(
    ("effects", "culprit"),
    [
        ([Ping(to="x", content="1", into="ghost")], "'ghost'"),
        ([Ping(to="x", content="1", into="number")], "'number'"),
        ([Ping(to="x", content="1", into="receipt"), Ping(to="x", content="1", into="receipt")], "both set 'receipt'"),
        (["no effect"], "'no effect'"),
    ],
)
def test_a_receipt_that_could_not_be_merged_is_refused_before_anything_goes_out(
    bench: Bench, effects: list[Any], culprit: str
) -> None:
    runner = bench.runner()
    with pytest.raises(UpdateRefused, match=culprit):
        runner.invoke(line(("a", lambda s: Command(effects=effects)), state=Single), {}, "t")
    assert (runner.get_state("t").step, bench.outbox.sent) == (0, [])


def test_one_receipt_may_go_into_a_key_without_reducer(bench: Bench) -> None:
    graph = line(("a", lambda s: Command(effects=[Ping(to="x", content="1", into="receipt")])), state=Single)
    receipt = bench.runner().invoke(graph, {}, "t").values.to_json()["receipt"]
    assert receipt == {"kind": "ping", "to": "x", "status": "sent", "ref": "t:1:0", "detail": "ping was sent"}


def test_effects_of_a_superstep_that_pauses_wait_with_its_writes(bench: Bench) -> None:
    calls = Calls()
    graph = fan({"a": sends("a", Ping(to="x", content="1", into="receipts"), calls=calls), "b": asks("b")})
    runner = bench.runner()
    snapshot = runner.invoke(graph, {}, "t")
    assert (bench.outbox.sent, snapshot.effects, snapshot.step) == ([], (), 0)
    after = bench.runner(graph).resume("t", {question(snapshot): 1})
    assert (after.values.to_json()["log"], bench.outbox.sent) == (["a", "b:1", "after"], [("ping", "x")])
    assert calls["a"] == 1


def test_a_step_that_fails_to_merge_lets_nothing_out(bench: Bench) -> None:
    graph = fan(
        {"a": sends("a", Ping(to="x", content="1")), "b": lambda s: {"text": "b"}, "c": lambda s: {"text": "c"}}
    )
    with pytest.raises(UpdateRefused, match="b and c"):
        bench.runner().invoke(graph, {}, "t")
    assert bench.outbox.sent == []


def test_a_router_that_fails_after_the_receipts_sends_nothing_again(bench: Bench) -> None:
    broken = [True]

    def route(state: Log) -> str:
        if broken.pop() if broken else False:
            raise ValueError("later")
        return END

    graph = StateGraph(Log).add_node("a", sends("a", Ping(to="x", content="1", into="receipts"))).add_edge(START, "a")
    graph.add_conditional_edges("a", route, [END])
    runner = bench.runner()
    with pytest.raises(NodeFailed, match="route"):
        runner.invoke(graph.compile(name="g"), {}, "t")
    after = runner.retry("t")
    assert (statuses(after.values), bench.outbox.sent) == ([("x", "sent")], [("ping", "x")])


def nested(inner: Graph[Any]) -> Graph[Any]:
    graph = StateGraph(Log)
    for name in ["left", "right"]:
        graph.add_node(name, inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log), "n": len(s.receipts)})
        graph.add_edge(START, name)
    graph.add_node("join", logs("join")).add_edge(["left", "right"], "join").add_edge("join", END)
    return graph.compile(name="outer")


def test_effects_inside_subgraphs_are_the_roots_and_settle_inside(bench: Bench) -> None:
    inner = line(("a", sends("a", Ping(to="x", content="1", into="receipts"))), ("b", logs("b")), name="inner")
    runner = bench.runner()
    snapshot = runner.invoke(nested(inner), {}, "t")
    assert (snapshot.values.to_json()["log"], snapshot.values.to_json()["n"]) == (["a", "b", "a", "b", "join"], 2)
    assert bench.outbox.sent == [("ping", "x")] * 2
    rows = [row for child in ("t/0.left", "t/0.right") for row in bench.store.effects(child, 1)]
    assert [(row.root, row.status) for row in rows] == [("t", "sent")] * 2


def test_an_unsettled_effect_in_one_child_holds_only_that_child(new_bench: Callable[[], Bench]) -> None:
    bench = new_bench()
    bench.outbox.says["x"] = "unknown"
    calls = Calls()
    one = line(("a", sends("a", Ping(to="x", content="1", into="receipts"))), ("b", logs("b", calls)), name="one")
    graph = StateGraph(Log).add_node("left", one, enter=lambda s: {}, leave=lambda s: {"log": list(s.log)})
    graph.add_node("right", logs("right", calls)).add_edge(START, "left").add_edge(START, "right")
    graph.add_edge("left", END).add_edge("right", END)
    runner = bench.runner()
    assert runner.invoke(graph.compile(name="g"), {}, "t").status == "running"
    assert dict(calls.counts) == {"right": 1}
    bench.outbox.settle(None, bench.store.effects("t/0.left", 1)[0], "failed", "no")
    assert runner.advance("t").values.to_json()["log"] == ["a", "b", "right"]
    assert dict(calls.counts) == {"right": 1, "b": 1}


def test_without_a_performer_nothing_goes_out_and_the_run_waits(bench: Bench) -> None:
    runner = bench.runner()
    runner.performer = None
    snapshot = runner.invoke(line(("a", sends("a", Ping(to="x", content="1")))), {}, "t")
    assert ([row.status for row in snapshot.effects], snapshot.status) == (["pending"], "running")
