"""Streams tell what happened, in order, and dropping one lets the run go."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from graphs.engine import END, START, Command, RetryPolicy, Runtime, StateGraph
from graphs.engine.errors import NodeFailed, NotNow
from graphs.engine.events import Chunk, EffectSettled, Ended, Event, NodeStarted, StepCommitted, Waits
from tests.graphs.engine.bench import Bench, Log, Ping, asks, fan, line, logs


def told(events: Any) -> list[tuple[Any, ...]]:
    return [_short(event) for event in events]


def _short(event: Event) -> tuple[Any, ...]:
    match event:
        case NodeStarted(node=node, attempt=attempt):
            return "started", *event.path, node, attempt
        case Chunk(node=node, data=data, attempt=attempt):
            return "chunk", *event.path, node, data, attempt
        case StepCommitted(step=step, nodes=nodes, next=after):
            return "step", *event.path, step, nodes, after
        case EffectSettled(kind=kind, to=to, status=status):
            return "effect", kind, to, status
        case Waits(interrupts=interrupts):
            return "waits", tuple(ask.path for ask in interrupts)
        case Ended(ending=ending):
            return "ended", ending
    raise AssertionError(event)


def test_a_stream_tells_everything_in_the_order_it_happened(bench: Bench) -> None:
    def talks(state: Log, runtime: Runtime[Any]) -> Any:
        for word in ("one", "two"):
            runtime.stream({"word": word})
        return Command(update={"log": "a"}, effects=[Ping(to="x", content="1")])

    inner = line(("y", asks("y")), name="inner")
    graph = StateGraph(Log).add_node("a", talks)
    graph.add_node("sub", inner, enter=lambda s: {}, leave=lambda s: {"log": list(s.log)})
    compiled = graph.add_edge(START, "a").add_edge("a", "sub").add_edge("sub", END).compile(name="g")
    runner = bench.runner()
    assert told(runner.stream(compiled, {}, "t")) == [
        ("started", "a", 1),
        ("chunk", "a", {"word": "one"}, 1),
        ("chunk", "a", {"word": "two"}, 1),
        ("step", 1, ("a",), ()),
        ("effect", "ping", "x", "sent"),
        ("step", 2, (), ("sub",)),
        ("started", "sub", 1),
        ("started", "sub", "y", 1),
        ("waits", (("sub", "y"),)),
    ]
    (ask,) = runner.get_state("t").interrupts
    bench.store.answer("t", ask.id, 1)
    assert told(runner.watch("t")) == [
        ("started", "sub", 1),
        ("started", "sub", "y", 1),
        ("step", "sub", 1, ("y",), ()),
        ("step", 3, ("sub",), ()),
        ("ended", "finished"),
    ]


def test_what_a_retry_repeats_can_be_told_apart(bench: Bench) -> None:
    tries: list[int] = []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.stream("token")
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError
        return None

    graph = StateGraph(Log).add_node("a", node, retry=RetryPolicy(interval=0)).add_edge(START, "a").add_edge("a", END)
    events = told(bench.runner().stream(graph.compile(name="g"), {}, "t"))
    assert events[:6] == [
        event for attempt in (1, 2, 3) for event in (("started", "a", attempt), ("chunk", "a", "token", attempt))
    ]


def test_every_open_question_is_in_the_last_event(bench: Bench) -> None:
    graph = fan({"a": asks("a"), "b": asks("b"), "c": asks("c")})
    runner = bench.runner(graph)
    assert told(runner.stream(graph, {}, "t"))[-1] == ("waits", (("a",), ("b",), ("c",)))
    bench.store.answer("t", runner.get_state("t").interrupts[1].id, 1)
    assert told(runner.watch("t")) == [("started", "b", 1), ("waits", (("a",), ("c",)))]


def test_a_stream_ends_with_how_the_run_ended_and_raises_what_it_raised(bench: Bench) -> None:
    events: list[Event] = []

    def node(state: Log) -> Any:
        raise ValueError("no")

    stream = bench.runner().stream(line(("a", node)), {}, "t")
    with pytest.raises(NodeFailed, match="no"):
        events.extend(stream)  # what came before the error is taken too
    stored = bench.store.load("t").run
    assert (stored.ending, stored.error) == ("failed", "a raised ValueError: no")
    events = []
    with pytest.raises(NodeFailed):
        for event in bench.runner().stream(line(("a", node)), {}, "u"):
            events.append(event)
    assert told(events)[-1] == ("ended", "failed")


def test_a_dropped_stream_stops_the_run_at_its_next_checkpoint_and_lets_it_go(bench: Bench) -> None:
    dropped = threading.Event()

    def node(state: Log) -> Any:
        assert dropped.wait(10)
        return {"log": "a"}

    graph = line(("a", node), ("b", logs("b")))
    runner = bench.runner(graph)
    stream = runner.stream(graph, {}, "t")
    assert told([next(stream)]) == [("started", "a", 1)]
    with pytest.raises(NotNow):
        bench.runner(graph).advance("t")
    dropped.set()
    stream.close()  # type: ignore[attr-defined]
    assert runner.get_state("t").step <= 2
    if runner.get_state("t").status == "running":
        bench.runner(graph).advance("t")
    assert runner.get_state("t").values.to_json()["log"] == ["a", "b"]


def test_a_stream_that_is_read_slowly_holds_nobody_up(bench: Bench) -> None:
    graph = line(*((f"n{n}", logs(f"n{n}")) for n in range(5)))
    stream = bench.runner().stream(graph, {}, "t")
    first = next(stream)
    rest = list(stream)
    assert told([first, *rest])[-1] == ("ended", "finished")
    assert len(rest) == 10


def test_a_runs_outcome_names_its_end(bench: Bench) -> None:
    runner = bench.runner()
    runner.outcome = lambda graph, state: "gave_up"
    assert told(runner.stream(line(("a", logs("a"))), {}, "t"))[-1] == ("ended", "gave_up")
    assert runner.get_state("t").status == "gave_up"
