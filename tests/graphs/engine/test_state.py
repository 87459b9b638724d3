"""State: partial updates, reducers, the boundary every value crosses, and that nobody changes what others see."""

from __future__ import annotations

import enum
import math
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from graphs.engine import (
    END,
    REMOVE_ALL,
    START,
    Command,
    Message,
    Overwrite,
    RemoveMessage,
    Runner,
    Send,
    State,
    StateGraph,
    Value,
    add,
    add_messages,
    append,
    merge,
)
from graphs.engine.checkpoint import Next, Row
from graphs.engine.errors import NodeFailed, StoreFailed, UpdateRefused
from graphs.engine.memory import MemoryCheckpointer
from graphs.engine.merge import Head, full_text, message_ids, next_row, replay
from graphs.engine.merge import merge as merge_updates
from graphs.engine.state import build, defaults_of, read_update
from graphs.engine.values import same
from tests.graphs.engine.bench import Bench, Log, asks, fan, line, logs, question


class Chat(State):
    messages: Annotated[list[Message], add_messages] = []
    note: str | None = "none yet"
    facts: Annotated[dict[str, JsonValue], merge] = {}
    total: Annotated[float, add] = 0.0


def run(bench: Bench, *updates: Any, given: Mapping[str, Any] | None = None, state: type[State] = Chat) -> Any:
    """The values after nodes that return these updates one after the other, as they are after a restart."""
    nodes = [(f"n{place}", lambda s, u=update: u) for place, update in enumerate(updates)]
    graph = line(*nodes, state=state)
    values = bench.runner().invoke(graph, given or {}, "t").values
    again = bench.runner(graph).get_state("t").values
    assert same(again, values)
    return again


def said(*ids: str) -> list[Message]:
    return [Message(role="user", content=f"text {ident}", id=ident) for ident in ids]


def test_an_update_leaves_other_keys_alone_and_nothing_changes_nothing(bench: Bench) -> None:
    values = run(bench, {"note": "a"}, None, {}, {"total": 1.5}, Command())
    assert (values.note, values.total, values.facts) == ("a", 1.5, {})


def test_an_explicit_none_is_a_write(bench: Bench) -> None:
    assert run(bench, {"note": None}).note is None


@pytest.mark.parametrize(
    ("update", "culprit"),
    [
        ({"ghost": 1}, "'ghost'"),
        ({"note": 1}, "'note'"),
        ({"total": "1"}, "'total'"),
        ({"total": math.nan}, "'total'"),
        ({"total": math.inf}, "'total'"),
        ({"facts": {"a": {1, 2}}}, "'facts'"),
        ({"facts": {"a": (1, 2)}}, "'facts'"),
        ({"facts": {"a": float("nan")}}, "'facts'"),
        ({"facts": {1: 2}}, "'facts'"),
        ({"messages": "hello"}, "'messages'"),
        ({"messages": [{"role": "user", "text": "x"}]}, "'messages'"),
        ({"messages": Overwrite("x")}, "'messages'"),
        ("note", "a node returns a mapping"),
        (open, "a node returns a mapping"),
    ],
)
def test_what_does_not_fit_is_refused_everywhere_naming_who_and_which_key(
    bench: Bench, update: Any, culprit: str
) -> None:
    runner = bench.runner()
    with pytest.raises(UpdateRefused, match=culprit) as refused:
        runner.invoke(line(("worker", lambda s: update), state=Chat), {}, "node")
    assert "worker" in str(refused.value)
    assert [row.step for row in bench.store.history("node")] == [0]
    with pytest.raises(UpdateRefused, match=culprit):
        runner.invoke(line(("worker", lambda s: update), state=Chat), update, "input")
    with pytest.raises(Exception, match="There is no run input"):
        runner.get_state("input")
    held = line(("worker", asks("worker")))
    runner.invoke(held, {}, "edit")
    with pytest.raises(UpdateRefused, match=r"'log'|mapping|does not have"):
        runner.update_state("edit", {"log": 7} if isinstance(update, dict) else update)
    assert runner.get_state("edit").step == 0


def test_an_answer_that_is_no_json_is_refused_before_anything_is_kept(bench: Bench) -> None:
    runner = bench.runner()
    snapshot = runner.invoke(line(("a", asks("a"))), {}, "t")
    with pytest.raises(UpdateRefused, match="no JSON"):
        runner.resume("t", {question(snapshot): {1, 2}})  # type: ignore[dict-item]
    assert runner.get_state("t").interrupts == snapshot.interrupts


def test_the_input_goes_through_reducers(bench: Bench) -> None:
    values = run(bench, given={"messages": said("a", "a", "b"), "facts": {"x": 1}})
    assert [message.id for message in values.messages] == ["a", "b"]


def test_a_missing_key_of_the_input_is_named() -> None:
    class Needs(State):
        request: str

    with pytest.raises(UpdateRefused, match="misses request"):
        Runner(MemoryCheckpointer()).invoke(line(("a", lambda s: None), state=Needs), {}, "t")


def test_defaults_are_fresh_for_every_run(bench: Bench) -> None:
    graph = line(("a", logs("a")))
    for thread in "xyz":
        assert bench.runner().invoke(graph, {}, thread).values.to_json()["log"] == ["a"]


MESSAGES: list[tuple[list[Any], Any, list[tuple[str, str]]]] = [
    (said("a"), said("b"), [("a", "text a"), ("b", "text b")]),
    (said("a", "b"), Message(role="user", content="new", id="a"), [("a", "new"), ("b", "text b")]),
    (said("a"), [*said("b"), Message(role="user", content="last", id="b")], [("a", "text a"), ("b", "last")]),
    (said("a", "b"), RemoveMessage(id="a"), [("b", "text b")]),
    (said("a", "b"), [RemoveMessage(id=REMOVE_ALL), *said("c", "b")], [("c", "text c"), ("b", "text b")]),
    (said("a"), [*said("b"), RemoveMessage(id="a"), RemoveMessage(id="b")], []),
    (said("a"), Overwrite(said("z")), [("z", "text z")]),
    (said("a"), [], [("a", "text a")]),
]


@pytest.mark.parametrize(("first", "second", "expected"), MESSAGES)
def test_messages_are_appended_replaced_in_place_and_removed(
    bench: Bench, first: Any, second: Any, expected: list[tuple[str, str]]
) -> None:
    values = run(bench, {"messages": first}, {"messages": second})
    assert [(message.id, message.content) for message in values.messages] == expected


def test_removing_an_unknown_message_fails_and_names_it(bench: Bench) -> None:
    with pytest.raises(NodeFailed, match="no message 'ghost'"):
        run(bench, {"messages": RemoveMessage(id="ghost")})


def test_ids_are_given_once_and_stay(bench: Bench) -> None:
    graph = line(
        ("a", lambda s: {"messages": [Message(role="user"), Message(role="user")]}),
        ("b", lambda s: {"messages": Message(role="user")}),
        ("c", asks("c")),
        state=type("Both", (Chat,), {"__annotations__": {"log": Annotated[list[str], append]}, "log": []}),
    )
    runner = bench.runner()
    snapshot = runner.invoke(graph, {"messages": Message(role="user")}, "t")
    ids = [message["id"] for message in snapshot.values.to_json()["messages"]]
    assert len({*ids}) == 4
    assert "" not in ids
    after = bench.runner(graph).resume("t", {question(snapshot): 1})
    assert [message["id"] for message in after.values.to_json()["messages"]] == ids


def test_an_overwrite_bypasses_the_reducer_and_others_reduce_onto_it(bench: Bench) -> None:
    graph = fan({"a": logs("a"), "b": lambda s: {"log": Overwrite(["clean"])}, "c": logs("c")})
    assert bench.runner().invoke(graph, {"log": ["old"]}, "t").values.to_json()["log"] == ["clean", "a", "c", "after"]


@pytest.mark.parametrize(
    "updates",
    [
        [{"log": Overwrite([])}, {"log": Overwrite([])}],
        [{"text": "a"}, {"text": "a"}],
        [{"text": Overwrite("a")}, {"text": "b"}],
    ],
)
def test_two_who_set_one_key_in_one_superstep_are_refused_by_name(bench: Bench, updates: list[Any]) -> None:
    graph = fan({"left": lambda s: updates[0], "right": lambda s: updates[1], "other": logs("other")})
    runner = bench.runner()
    with pytest.raises(UpdateRefused, match=r"left and right both set '(log|text)'"):
        runner.invoke(graph, {}, "t")
    assert runner.get_state("t").step == 0


def test_a_node_sent_to_twice_counts_as_two_writers(bench: Bench) -> None:
    graph = StateGraph(Log).add_node("split", lambda s: Command(goto=[Send("w", 1), Send("w", 2)]), destinations=["w"])
    graph.add_node("w", lambda item: {"text": str(item)}).add_edge(START, "split").add_edge("w", END)
    with pytest.raises(UpdateRefused, match="w and w both set 'text'"):
        bench.runner().invoke(graph.compile(name="g"), {}, "t")


@given(st.permutations(range(4)))
def test_reduced_order_is_declaration_order_whoever_finishes_first(order: list[int]) -> None:
    done = [threading.Event() for _ in order]

    def branch(place: int) -> Callable[[Any], Any]:
        def node(state: Any) -> Any:
            before = order.index(place) - 1
            assert before < 0 or done[order[before]].wait(10)
            done[place].set()
            return {"log": f"b{place}"}

        return node

    graph = fan({f"b{place}": branch(place) for place in range(4)})
    assert Runner(MemoryCheckpointer()).invoke(graph, {}, "t").values.to_json()["log"] == [
        "b0", "b1", "b2", "b3", "after",
    ]  # fmt: skip


def built(**given_values: Any) -> State:
    """The state as nodes see it."""
    return build(Chat, defaults_of(Chat) | read_update(Chat, "the input", given_values))


def mutations(state: Any) -> list[Callable[[], Any]]:
    return [
        lambda: state.messages.append(1),
        lambda: state.messages.clear(),
        lambda: state.messages.__setitem__(0, 1),
        lambda: state.messages[0].content.append("x"),
        lambda: state.messages[0].content[0].update(a=2),
        lambda: state.facts.update(a=1),
        lambda: state.facts["deep"]["list"].sort(),
        lambda: state.facts.__setitem__("a", 1),
        lambda: state.facts.setdefault("z", 1),
        lambda: setattr(state, "note", "x"),
        lambda: setattr(state.messages[0], "role", "x"),
        lambda: state.facts["deep"].pop("list"),
    ]


@pytest.mark.parametrize("place", range(12))
def test_a_node_that_changes_its_input_is_stopped_and_changes_nobody(bench: Bench, place: int) -> None:
    mine: dict[str, Any] = {
        "messages": [Message(role="user", content=[{"a": 1}], id="m")],
        "facts": {"deep": {"list": [2, 1]}},
    }
    before = {"messages": list(mine["messages"]), "facts": {"deep": {"list": [2, 1]}}}

    def node(state: Any) -> Any:
        with pytest.raises(Exception, match=r"read-only|frozen"):
            mutations(state)[place]()
        return {"note": "tried"}

    node(built(**mine))
    values = bench.runner().invoke(line(("node", node), state=Chat), mine, "t").values
    assert mine == before
    assert values.to_json()["facts"] == before["facts"]


def test_what_a_node_keeps_of_its_update_is_not_the_state(bench: Bench) -> None:
    kept: list[Any] = [1]
    loose = Message(role="user").model_copy(update={"content": kept})

    def first(state: Any) -> Any:
        return {"messages": loose, "facts": {"x": kept}}

    def second(state: Any) -> Any:
        kept.append(2)
        return None

    graph = line(("first", first), ("second", second), state=Chat)
    runner = bench.runner()
    for values in (runner.invoke(graph, {}, "t").values.to_json(), runner.get_state("t", 1).values.to_json()):
        assert values["facts"] == {"x": [1]}
        assert values["messages"][0]["content"] == [1]


def test_a_reducer_that_raises_or_returns_nonsense_costs_no_node_its_work(bench: Bench) -> None:
    broken = [True]

    def picky(old: int, new: int) -> Any:
        if broken[0]:
            raise RuntimeError("no room")
        return old + new if new < 9 else "nine"

    class Picky(State):
        n: Annotated[int, picky] = 0

    ran: list[str] = []

    def node(state: Any) -> Any:
        ran.append("a")
        return {"n": 1}

    runner = bench.runner()
    with pytest.raises(NodeFailed, match="reducer picky of 'n' could not take the update of a: no room"):
        runner.invoke(line(("a", node), state=Picky), {}, "t")
    broken[0] = False
    assert runner.retry("t").values.to_json() == {"n": 1}
    assert ran == ["a"]
    with pytest.raises(UpdateRefused, match="'n'"):
        runner.invoke(line(("a", lambda s: {"n": 9}), state=Picky, name="other"), {}, "u")


def test_a_router_that_raises_costs_no_node_its_work(bench: Bench) -> None:
    broken, ran = [True], []

    def route(state: Any) -> str:
        if broken[0]:
            raise KeyError("way")
        return END

    def node(state: Any) -> Any:
        ran.append("a")
        return {"n": 1}

    graph = StateGraph(Log).add_node("a", node).add_edge(START, "a").add_conditional_edges("a", route, [END])
    runner = bench.runner()
    with pytest.raises(NodeFailed, match="router route after a raised KeyError"):
        runner.invoke(graph.compile(name="g"), {}, "t")
    assert runner.get_state("t").step == 0
    broken[0] = False
    assert runner.retry("t").values.to_json()["n"] == 1
    assert ran == ["a"]


class Shade(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Inner(Value):
    when: datetime
    shade: Shade = Shade.RED
    anything: Any = None


class Typed(State):
    text: str = ""
    whole: int = 0
    number: float = 0.0
    free: JsonValue = None
    anything: Any = None
    shade: Shade = Shade.RED
    pair: tuple[int, str] = (0, "")
    money: Decimal = Decimal(0)
    when: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    day: date = date(2026, 1, 1)
    span: timedelta = timedelta(0)
    ident: UUID = UUID(int=0)
    by_number: dict[int, str] = {}
    choice: Literal["a", "b", 3] = "a"
    inner: Inner | None = None
    deep: list[dict[str, list[Shade]]] = []
    log: Annotated[list[str], append] = []
    grid: Annotated[list[list[int]], append] = []


BERLIN = timezone(timedelta(hours=1))
COMES_BACK: list[tuple[str, Any]] = [
    ("text", "NUL \0, lone \ud800, \U0001f600, \u2028"),
    ("whole", 2**200),
    ("number", -0.0),
    ("number", 1e308),
    ("free", {"a": [1, 1.0, True, None, "x", {"": []}]}),
    ("anything", [1, "a", {"k": 1.5}]),
    ("shade", Shade.RED),
    ("pair", (1, "a")),
    ("money", Decimal("1.10")),
    ("when", datetime(2026, 3, 1, 12, 30, 1, 5, tzinfo=BERLIN)),
    ("day", date(2026, 2, 28)),
    ("span", timedelta(days=-1, microseconds=1)),
    ("ident", UUID(int=2**127)),
    ("by_number", {1: "a", -2: "b"}),
    ("choice", 3),
    ("inner", Inner(when=datetime(2026, 3, 1, tzinfo=BERLIN), anything=[1, {"a": 2}])),
    ("deep", [{"a": [Shade.RED]}]),
    ("grid", [[1, 2], []]),
]
REFUSED: list[tuple[str, Any]] = [
    ("text", Shade.RED),
    ("whole", Size.BIG),
    ("whole", True),
    ("number", math.nan),
    ("free", {"a": Shade.RED}),
    ("free", [(1, 2)]),
    ("free", {Shade.RED: 1}),
    ("anything", [Shade.RED]),
    ("anything", {1: "a"}),
    ("anything", {"a", "b"}),
    ("anything", (1, 2)),
    ("anything", Decimal(1)),
    ("anything", object()),
    ("anything", lambda: None),
    ("shade", "red"),
    ("pair", [1, "a"]),
    ("money", Decimal("NaN")),
    ("when", "2026-01-01T00:00:00Z"),
    ("inner", Inner(when=datetime(2026, 3, 1, tzinfo=UTC), anything=(1, 2))),
    ("inner", Inner(when=datetime(2026, 3, 1, tzinfo=UTC), anything=Shade.RED)),
    ("deep", [{"a": ["red"]}]),
    ("log", [Shade.RED]),
    ("log", {"a": 1}),
    ("grid", [1, 2]),
]


def named(cases: list[tuple[str, Any]]) -> list[str]:
    """Names that are the same in every process: a value's own words may hold an address or the order of a set."""
    return [f"{number} {key} {type(value).__name__}" for number, (key, value) in enumerate(cases)]


@pytest.mark.parametrize(("key", "value"), COMES_BACK, ids=named(COMES_BACK))
def test_a_value_comes_back_equal_in_value_and_type(bench: Bench, key: str, value: Any) -> None:
    def check(state: Any) -> None:
        assert same(getattr(state, key), value)

    graph = line(("write", lambda s: {key: value}), ("read", check), state=Typed)
    assert same(getattr(bench.runner().invoke(graph, {}, "t").values, key), value)
    assert same(getattr(bench.runner(graph).get_state("t", 1).values, key), value)
    whole = Overwrite(value)
    assert same(
        getattr(bench.runner().invoke(line(("w", lambda s: {key: whole}), state=Typed), {}, "u").values, key), value
    )


@pytest.mark.parametrize(("key", "value"), REFUSED, ids=named(REFUSED))
def test_a_value_that_would_not_come_back_is_refused(bench: Bench, key: str, value: Any) -> None:
    runner = bench.runner()
    with pytest.raises(UpdateRefused, match=f"w gives '{key}' a value it cannot hold"):
        runner.invoke(line(("w", lambda s: {key: value}), state=Typed), {}, "t")
    assert runner.get_state("t").step == 0


def test_a_whole_number_or_a_mapping_is_taken_as_what_the_key_declares_at_once(bench: Bench) -> None:
    values = run(bench, {"total": 1, "messages": {"role": "user", "content": "x", "id": "m"}})
    assert same(values.total, 1.0)
    assert values.messages == [Message(role="user", content="x", id="m")]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.sampled_from([Shade.RED]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.tuples(inner),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(["free", "anything"]))
@example({"a": "\ud800\0"}, "free")
def test_any_value_is_kept_as_it_is_or_refused(value: Any, key: str) -> None:
    graph = line(("write", lambda s: {key: value}), state=Typed)
    runner = Runner(MemoryCheckpointer())
    try:
        after = runner.invoke(graph, {}, "t").values
    except UpdateRefused:
        assert runner.get_state("t").step == 0
        return
    assert same(getattr(after, key), value)


def test_json_nested_too_deep_is_refused_like_any_other_value(bench: Bench) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UpdateRefused, match="'free'"):
        bench.runner().invoke(line(("w", lambda s: {"free": deep}), state=Typed), {}, "t")


NEW = st.builds(Message, role=st.just("user"), content=st.text(max_size=9), id=st.sampled_from(["", "a", "b"]))
UPDATES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "messages": st.lists(
                st.builds(
                    Message, role=st.just("user"), content=st.text(max_size=9), id=st.sampled_from(["", "a", "b"])
                ),
                max_size=3,
            )
            | st.just([RemoveMessage(id=REMOVE_ALL)])
            | st.builds(Overwrite, st.lists(st.builds(Message, role=st.just("user"), id=st.just("o")), max_size=1)),
            "note": st.none() | st.text(max_size=2000),
            "facts": st.dictionaries(st.sampled_from("xyz"), st.integers()),
            "total": st.floats(-9, 9),
        },
    ),
    max_size=12,
)


@given(UPDATES)
def test_what_changed_adds_up_to_the_state_at_every_step(updates: list[dict[str, Any]]) -> None:
    """Rows of changes and snapshots, read again, are the state, and their size is bounded by what was written."""
    first = {"messages": [], "note": None, "facts": {}, "total": 0.0}
    head = Head(-1, first, Next())
    rows: list[Row] = []
    for step, update in enumerate([{}, *updates]):
        checked = read_update(Chat, "n", update)
        change = merge_updates(Chat, head.values, [("n", checked)], message_ids("t", step))
        row, head = next_row(Chat, head, change, Next(), "t", "step", "{}", "")
        rows.append(row)
        from_snapshot = rows[max(place for place, each in enumerate(rows) if each.full) :]
        again = replay(Chat, from_snapshot)
        assert full_text(Chat, again.values) == full_text(Chat, head.values)
        assert (again.snapshot_bytes, again.delta_bytes) == (head.snapshot_bytes, head.delta_bytes)
        replayed = sum(len(each.body) for each in from_snapshot[1:])
        assert replayed <= len(from_snapshot[0].body) + 4096


def test_checkpoints_of_a_growing_conversation_grow_by_what_is_said(bench: Bench) -> None:
    said_: list[int] = []

    def say(state: Any) -> Any:
        said_.append(1)
        return {"messages": Message(role="user", content="x" * 400, id=f"m{len(said_)}" if len(said_) % 2 else "")}

    graph = StateGraph(Chat).add_node("say", say).add_edge(START, "say")
    graph.add_conditional_edges("say", lambda s: "say" if len(s.messages) < 120 else END, ["say", END])
    bench.runner().invoke(graph.compile(name="g", max_steps=200), {}, "t")
    written = sum(len(row.body) for row in bench.store.history("t"))
    assert written < 3 * 120 * 480


@pytest.mark.parametrize(
    "body", ["no json", "[]", '{"set":{"log":[]}}', '{"set":{"log":[],"n":"x","text":"","receipts":[]}}', "{}"]
)
def test_what_cannot_be_read_is_a_loud_error(body: str) -> None:
    with pytest.raises(StoreFailed):
        replay(Log, [Row("t", 0, "input", "{}", body, True)])


def test_rows_without_a_snapshot_and_an_unreadable_next_are_loud_errors() -> None:
    good = '{"set":{"log":[],"n":0,"text":"","receipts":[]}}'
    assert replay(Log, [Row("t", 0, "input", "{}", good, True)]).values["n"] == 0
    with pytest.raises(StoreFailed):
        replay(Log, [])
    with pytest.raises(StoreFailed):
        replay(Log, [Row("t", 0, "input", "{}", good, False)])
    with pytest.raises(StoreFailed):
        replay(Log, [Row("t", 0, "input", '{"tasks":[1]}', good, True)])
