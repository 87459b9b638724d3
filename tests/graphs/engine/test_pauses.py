"""Questions to people: ids, answers, what is refused, and that an answer reaches nobody but its question."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from graphs.engine import END, START, Command, Graph, Runner, Runtime, Send, Snapshot, StateGraph, Value
from graphs.engine.errors import (
    AmbiguousAnswer,
    EffectsPending,
    EngineError,
    NodeFailed,
    NothingPending,
    NotNow,
    RunEnded,
    RunError,
    StaleInterrupt,
    UnknownInterrupt,
    UnknownThread,
    UpdateRefused,
)
from tests.graphs.engine.bench import Bench, Calls, Log, Ping, asks, fan, line, logs, question


def log_of(snapshot: Snapshot) -> list[str]:
    found: list[str] = snapshot.values.to_json()["log"]
    return found


def held(*nodes: str, before: list[str], calls: Calls | None = None) -> Graph[Any]:
    return line(*((name, logs(name, calls)) for name in nodes), interrupt_before=before)


def test_a_breakpoint_stops_before_the_whole_superstep_and_each_node_runs_once(bench: Bench) -> None:
    calls = Calls()
    graph = StateGraph(Log)
    for name in ["a", "b", "c", "d"]:
        graph.add_node(name, logs(name, calls))
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d").add_edge("d", END)
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g", interrupt_before=["c"]), {}, "t")
    assert (snapshot.status, snapshot.next, dict(calls.counts)) == ("waiting", ("b", "c"), {"a": 1})
    assert snapshot.interrupts[0].payload == {"pause_before": ["c"]}
    assert log_of(runner.resume("t")) == ["a", "b", "c", "d"]
    assert set(calls.counts.values()) == {1}


def test_a_breakpoint_in_a_loop_holds_every_round(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", logs("a", n=1)).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s.n < 3 else END, ["a", END])
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g", interrupt_before=["a"]), {}, "t")
    ids = set()
    for n in range(3):
        assert (snapshot.status, snapshot.values.to_json()["n"]) == ("waiting", n)
        ids.add(question(snapshot))
        snapshot = runner.resume("t")
    assert (snapshot.status, len(ids)) == ("finished", 3)


def test_a_run_may_be_started_with_breakpoints_of_its_own(bench: Bench) -> None:
    graph = held("a", "b", before=[])
    runner = bench.runner()
    assert runner.invoke(graph, {}, "t", pause_before=["b"]).next == ("b",)
    assert runner.invoke(graph, {}, "u").status == "finished"
    assert log_of(bench.runner(graph).resume("t")) == ["a", "b"]


def test_an_edit_at_a_breakpoint_leaves_it_the_same_breakpoint(bench: Bench) -> None:
    runner = bench.runner()
    snapshot = runner.invoke(held("a", "b", before=["b"]), {}, "t")
    runner.update_state("t", {"text": "edited"}, author="U1")
    edited = runner.get_state("t")
    assert edited.interrupts == snapshot.interrupts
    assert (edited.next, edited.author, edited.source) == (("b",), "U1", "update")
    after = runner.resume("t", {question(edited): None})
    assert (after.status, after.values.to_json()["text"]) == ("finished", "edited")


def test_a_jump_at_a_breakpoint_passes_it(bench: Bench) -> None:
    runner = bench.runner()
    runner.invoke(held("a", "b", "c", before=["b"]), {}, "t")
    runner.update_state("t", {"log": "instead of b"}, as_node="b")
    assert runner.get_state("t").next == ("c",)
    after = runner.resume("t")
    assert (after.status, log_of(after), after.interrupts) == ("finished", ["a", "instead of b", "c"], ())


@pytest.mark.parametrize("answer", [False, True, 0, "", None, {}, [], "yes", {"a": [1]}, {"0" * 32: 1}])
def test_any_json_is_an_answer(bench: Bench, answer: JsonValue) -> None:
    got: list[Any] = []

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        got.append(runtime.interrupt({"q": 1}))
        return {"log": "done"}

    runner = bench.runner()
    snapshot = runner.invoke(line(("a", node)), {}, "t")
    (ask,) = snapshot.interrupts
    assert (ask.payload, ask.asks, ask.path, snapshot.next, snapshot.status) == (
        {"q": 1}, "signal", ("a",), ("a",), "waiting",
    )  # fmt: skip
    assert runner.resume("t", {ask.id: answer}).status == "finished"
    assert got == [answer]
    assert type(got[0]) in (type(answer), *type(answer).__mro__) or got[0] == answer


def test_several_questions_of_a_node_come_one_after_the_other(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": [runtime.interrupt("one"), runtime.interrupt("two"), runtime.interrupt("three")]}

    runner = bench.runner()
    snapshot = runner.invoke(line(("a", node)), {}, "t")
    seen = []
    for answer in "xyz":
        assert snapshot.next == ("a",)
        seen.append(question(snapshot))
        snapshot = runner.resume("t", {question(snapshot): answer})
    assert log_of(snapshot) == ["x", "y", "z"]
    assert len({*seen}) == 3


def test_going_on_without_an_answer_answers_nothing(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": [runtime.interrupt("one"), runtime.interrupt("two")]}

    runner = bench.runner()
    first = runner.invoke(line(("a", node)), {}, "t")
    second = runner.resume("t", {question(first): "x"})
    for nothing in (None, {}):
        with pytest.raises(AmbiguousAnswer, match=question(second)):
            runner.resume("t", nothing)
    with pytest.raises(AmbiguousAnswer, match="by interrupt id"):
        runner.resume("t", "yes")  # type: ignore[arg-type]
    with pytest.raises(NotNow):
        runner.advance("t")
    assert runner.get_state("t").interrupts == second.interrupts


def test_every_round_of_a_loop_asks_anew(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", lambda s, runtime: {"n": 1, "log": runtime.interrupt("more?")})
    graph.add_edge(START, "a").add_conditional_edges("a", lambda s: "a" if s.n < 3 else END, ["a", END])
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g"), {}, "t")
    ids = []
    for answer in "xyz":
        ids.append(question(snapshot))
        snapshot = runner.resume("t", {ids[-1]: answer})
    assert log_of(snapshot) == ["x", "y", "z"]
    assert len({*ids}) == 3


@pytest.mark.parametrize("swallow", [Exception, BaseException])
@pytest.mark.parametrize("then", ["go on", "raise"])
def test_a_node_cannot_swallow_its_own_pause(bench: Bench, swallow: type[BaseException], then: str) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        answer = "none"
        try:
            answer = str(runtime.interrupt("really?"))
        except swallow:
            if then == "raise":
                raise ValueError("swallowed") from None
        return {"log": answer}

    runner = bench.runner()
    snapshot = runner.invoke(line(("a", node)), {}, "t")
    assert snapshot.status == "waiting"
    assert log_of(runner.resume("t", {question(snapshot): "yes"})) == ["yes"]


def test_parallel_questions_all_surface_and_answers_go_by_id(bench: Bench) -> None:
    calls = Calls()
    graph = fan({name: asks(name, calls=calls) for name in "abc"} | {"d": logs("d", calls)})
    runner = bench.runner()
    snapshot = runner.invoke(graph, {}, "t")
    assert [ask.path for ask in snapshot.interrupts] == [("a",), ("b",), ("c",)]
    assert len({ask.id for ask in snapshot.interrupts}) == 3
    assert log_of(snapshot) == []
    part = runner.resume("t", {question(snapshot, "b"): 2})
    assert [ask.path for ask in part.interrupts] == [("a",), ("c",)]
    assert dict(calls.counts) == {"a": 1, "b": 2, "c": 1, "d": 1}
    assert part.step == 0
    rest = {question(part, "c"): 3, question(part, "a"): 1}
    assert log_of(runner.resume("t", rest)) == ["a:1", "b:2", "c:3", "d", "after"]
    assert dict(calls.counts) == {"a": 2, "b": 2, "c": 2, "d": 1}


def test_the_same_node_sent_to_twice_asks_two_questions(bench: Bench) -> None:
    graph = StateGraph(Log)
    graph.add_node("split", lambda s: Command(goto=[Send("w", x) for x in "ab"]), destinations=["w"])
    graph.add_node("w", lambda item, runtime: {"log": f"{item}{runtime.interrupt('same text')}"})
    graph.add_edge(START, "split").add_edge("w", END)
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g"), {}, "t")
    first, second = snapshot.interrupts
    assert first.id != second.id
    part = runner.resume("t", {second.id: 2})
    assert question(part) == first.id
    assert log_of(runner.resume("t", {first.id: 1})) == ["a1", "b2"]


@given(st.data())
def test_whatever_order_answers_come_in_each_reaches_its_own_question(
    new_bench: Callable[[], Bench], data: st.DataObject
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    bench, calls = new_bench(), Calls()

    def branch(name: str, size: int) -> Callable[[Log, Runtime[Any]], Any]:
        def node(state: Log, runtime: Runtime[Any]) -> Any:
            calls(name)
            return {"log": [f"{runtime.interrupt([name, place])}" for place in range(size)]}

        return node

    runner = bench.runner()
    snapshot = runner.invoke(fan({f"b{n}": branch(f"b{n}", size) for n, size in enumerate(sizes)}), {}, "t")
    answered: list[str] = []
    while snapshot.status == "waiting":
        chosen = data.draw(st.lists(st.sampled_from(snapshot.interrupts), min_size=1, unique_by=lambda ask: ask.id))
        snapshot = runner.resume("t", {ask.id: f"{ask.payload}" for ask in chosen})
        answered += [ask.id for ask in chosen]
    expected = [f"{[f'b{n}', place]}" for n, size in enumerate(sizes) for place in range(size)]
    assert log_of(snapshot) == [*expected, "after"]
    assert len({*answered}) == len(answered) == sum(sizes)
    assert dict(calls.counts) == {f"b{n}": size + 1 for n, size in enumerate(sizes)}


def refused(work: Callable[[], Any]) -> type[EngineError]:
    with pytest.raises(EngineError) as error:
        work()
    return type(error.value)


def test_every_wrong_answer_is_refused_in_its_own_way_and_no_node_runs(bench: Bench) -> None:
    calls = Calls()
    runner = bench.runner()
    graph = line(("a", asks("a", "one", calls)), ("b", asks("b", "two", calls)), ("c", logs("c", calls)))
    first = runner.invoke(graph, {}, "t")
    other = runner.invoke(graph, {}, "other")
    second = runner.resume("t", {question(first): 1})
    calls.counts.clear()
    mixed = {question(second): 1, question(first): 2}
    assert refused(lambda: runner.resume("nobody", {"x": 1})) is UnknownThread
    assert refused(lambda: runner.resume("t", {"x": 1})) is UnknownInterrupt
    assert refused(lambda: runner.resume("t", {question(other): 1})) is UnknownInterrupt
    assert refused(lambda: runner.resume("t", {question(first): 2})) is StaleInterrupt
    assert refused(lambda: runner.resume("t", mixed)) is StaleInterrupt
    assert refused(lambda: runner.resume("t", {question(second): 1, "x": 1})) is UnknownInterrupt
    assert refused(lambda: runner.resume("t")) is AmbiguousAnswer
    assert runner.get_state("t").interrupts == second.interrupts
    assert dict(calls.counts) == {}
    runner.resume("t", {question(second): 2})
    assert refused(lambda: runner.resume("t", {question(second): 2})) is RunEnded
    assert refused(lambda: runner.resume("t")) is RunEnded
    assert refused(lambda: runner.advance("t")) is RunEnded
    assert dict(calls.counts) == {"b": 1, "c": 1}


def test_a_run_that_asks_nothing_has_nothing_to_resume(bench: Bench) -> None:
    runner = bench.runner()
    graph = line(("a", logs("a")))
    runner.start(graph, {}, "t")
    with pytest.raises(NothingPending):
        runner.resume("t")


def test_a_part_of_a_run_is_not_resumed_by_itself(bench: Bench) -> None:
    graph = line(("x", asks("x")))
    outer = StateGraph(Log).add_node("sub", graph, enter=lambda s: {}, leave=lambda s: {})
    runner = bench.runner()
    snapshot = runner.invoke(outer.add_edge(START, "sub").add_edge("sub", END).compile(name="g"), {}, "t")
    with pytest.raises(UnknownThread, match="part of t"):
        runner.resume(snapshot.interrupts[0].thread_id, {question(snapshot): 1})


def test_of_two_who_answer_at_once_one_wins(bench: Bench) -> None:
    calls = Calls()
    graph = line(("a", asks("a", calls=calls)), ("b", logs("b", calls)))
    for n in range(12):
        runner = bench.runner(graph)
        ident = question(runner.invoke(graph, {}, f"t{n}"))
        with ThreadPoolExecutor(2) as pool:
            tries = [pool.submit(bench.runner(graph).resume, f"t{n}", {ident: who}) for who in "xy"]
        losers = [error for each in tries if (error := each.exception()) is not None]
        assert len(losers) == 1
        assert isinstance(losers[0], StaleInterrupt | RunEnded | NotNow)
        assert calls["b"] == n + 1


class Asked(Value):
    """A question like those that people meet."""

    asks: ClassVar[str] = "question"
    text: str

    def answered(self, value: JsonValue) -> str:
        return f"<{value}>"


def test_a_question_reads_its_own_answer(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": runtime.interrupt(Asked(text="far?"))}

    runner = bench.runner()
    snapshot = runner.invoke(line(("a", node)), {}, "t")
    (ask,) = snapshot.interrupts
    assert (ask.asks, ask.payload) == ("question", {"text": "far?"})
    assert log_of(runner.resume("t", {ask.id: "yes"})) == ["<yes>"]


@pytest.mark.parametrize("ask", [{1}, float("nan"), (1, 2), object()])
def test_a_question_that_is_no_json_fails_the_node(bench: Bench, ask: Any) -> None:
    with pytest.raises(NodeFailed, match="a asks something that is no JSON"):
        bench.runner().invoke(line(("a", asks("a", ask))), {}, "t")


def test_an_answer_is_for_the_question_it_was_given_to(bench: Bench) -> None:
    """If the node asks something else at the same place, the old question is closed and the new one asked."""
    asked = ["first", "second", "second"]

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": f"{asked[0]}:{runtime.interrupt(asked.pop(0))}"}

    runner = bench.runner()
    first = runner.invoke(line(("a", node)), {}, "t")
    second = runner.resume("t", {question(first): "old"})
    assert (second.status, second.interrupts[0].payload) == ("waiting", "second")
    with pytest.raises(StaleInterrupt):
        runner.resume("t", {question(first): "again"})
    assert log_of(runner.resume("t", {question(second): "new"})) == ["second:new"]


def test_an_edited_state_changes_the_question_when_the_node_runs_again(bench: Bench) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> Any:
        return {"log": f"{state.text}:{runtime.interrupt(state.text)}"}

    runner = bench.runner()
    first = runner.invoke(line(("a", node)), {"text": "draft 1"}, "t")
    runner.update_state("t", {"text": "draft 2"})
    assert runner.get_state("t").interrupts == first.interrupts
    second = runner.resume("t", {question(first): "approved"})
    assert [ask.payload for ask in second.interrupts] == ["draft 2"]
    assert log_of(runner.resume("t", {question(second): "approved"})) == ["draft 2:approved"]


def test_an_edit_goes_through_reducers_and_what_follows_sees_it(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("a", asks("a")).add_node("b", logs("b")).add_node("c", logs("c"))
    graph.add_edge(START, "a").add_conditional_edges("a", lambda s: "b" if s.n == 3 else "c", ["b", "c"])
    graph.add_edge("b", END).add_edge("c", END)
    runner = bench.runner()
    snapshot = runner.invoke(graph.compile(name="g"), {"n": 1, "log": "given"}, "t")
    with pytest.raises(UpdateRefused, match="'n'"):
        runner.update_state("t", {"n": "two"})
    assert runner.update_state("t", {"n": 2, "log": "edited"}) == 1
    edited = runner.get_state("t")
    assert (edited.interrupts, edited.next, edited.status) == (snapshot.interrupts, ("a",), "waiting")
    assert log_of(runner.resume("t", {question(edited): "ok"})) == ["given", "edited", "a:ok", "b"]


def test_an_edit_keeps_what_finished_siblings_wrote(bench: Bench) -> None:
    calls = Calls()
    runner = bench.runner()
    snapshot = runner.invoke(fan({"a": asks("a"), "b": logs("b", calls)}), {}, "t")
    runner.update_state("t", {"log": "edited"})
    assert log_of(runner.resume("t", {question(snapshot): 1})) == ["edited", "a:1", "b", "after"]
    assert calls["b"] == 1


def test_a_jump_that_would_leave_a_question_without_its_node_is_refused(bench: Bench) -> None:
    runner = bench.runner()
    snapshot = runner.invoke(line(("a", asks("a")), ("b", logs("b"))), {}, "t")
    with pytest.raises(NotNow, match=question(snapshot)):
        runner.update_state("t", {"log": "x"}, as_node="a")
    with pytest.raises(RunError, match="'ghost' is no node"):
        bench.runner(line(("a", asks("a")), ("b", logs("b")))).update_state("t", {}, as_node="ghost")
    assert runner.get_state("t").step == 0


def test_nobody_edits_a_run_that_is_being_advanced_or_has_ended(bench: Bench) -> None:
    runner = bench.runner()

    def node(state: Log, runtime: Runtime[Any]) -> Any:
        with pytest.raises(NotNow):
            runner.update_state("t", {"text": "x"})
        return {"log": "a"}

    assert log_of(runner.invoke(line(("a", node)), {}, "t")) == ["a"]
    with pytest.raises(RunEnded):
        runner.update_state("t", {"text": "x"})


def test_a_run_that_waits_for_its_effects_is_not_edited(bench: Bench) -> None:
    bench.outbox.says["x"] = "unknown"
    graph = line(("a", lambda s: Command(effects=[Ping(to="x", content="y")])), ("b", logs("b")))
    runner = bench.runner()
    runner.invoke(graph, {}, "t")
    with pytest.raises(EffectsPending):
        runner.update_state("t", {"text": "x"})


def test_an_edit_of_a_run_whose_owner_died_leaves_it_to_be_taken_up(bench: Bench) -> None:
    graph = line(("a", logs("a")), ("b", logs("b")))
    runner = bench.runner(graph)
    runner.start(graph, {}, "t")
    bench.store.claim("t", runner.known)
    bench.clock.lapse()
    runner.update_state("t", {"log": "edited"})
    assert log_of(runner.advance("t")) == ["edited", "a", "b"]


def test_a_paused_run_goes_on_with_its_own_version_or_not_at_all(bench: Bench) -> None:
    old = line(("a", asks("a")), ("b", logs("b old")), name="flow", version=1)
    new = line(("a", asks("a")), ("b", logs("b new")), ("c", logs("c")), name="flow", version=2)
    moved = line(("a", asks("a")), ("c", logs("c")), name="flow", version=1)
    snapshot = bench.runner().invoke(old, {}, "t")
    for other in (bench.runner(new), bench.runner(moved), bench.runner()):
        with pytest.raises(EngineError, match="flow v1"):
            other.resume("t", {question(snapshot): 1})
    both = bench.runner(new, old)
    assert log_of(both.resume("t", {question(snapshot): 1})) == ["a:1", "b old"]
    assert both.invoke(new, {}, "u").status == "waiting"


def test_an_empty_thread_name_and_one_with_a_slash_are_refused(bench: Bench) -> None:
    for name in ("", "a/b"):
        with pytest.raises(RunError, match="cannot name a run"):
            Runner(bench.store).invoke(line(("a", logs("a"))), {}, name)


class Age(Value):
    """A question that only a whole number answers."""

    asks: ClassVar[str] = "question"
    text: str = "How old?"

    def answered(self, value: JsonValue) -> int:
        return int(str(value))


def test_an_answer_that_cannot_be_read_is_void_and_the_question_is_asked_anew(bench: Bench) -> None:
    def ask(state: Log, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"n": runtime.interrupt(Age())}

    runner = bench.runner()
    first = runner.invoke(line(("ask", ask)), {}, "t").interrupts[0]
    again = runner.resume("t", {first.id: "quite old"})
    assert again.status == "waiting"
    second = again.interrupts[0]
    assert second.id != first.id
    assert second.payload == first.payload
    with pytest.raises(StaleInterrupt):
        runner.resume("t", {first.id: "41"})
    assert runner.resume("t", {second.id: "41"}).values.to_json()["n"] == 41
