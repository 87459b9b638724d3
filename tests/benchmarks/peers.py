"""LangGraph with its own SQLite and PostgreSQL savers, every step durable before the next; and Burr."""

from __future__ import annotations

import operator
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, TypedDict

from burr.core import ApplicationBuilder
from burr.core import State as BurrState
from burr.core import action as burr_action
from burr.core import expr as burr_expr
from burr.core.persistence import SQLitePersister
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from tests.benchmarks.graphs import TEXT, step
from tests.benchmarks.ours import at_once, durations
from tests.benchmarks.places import Places


class Count(TypedDict):
    """Enough to count steps."""

    n: Annotated[int, operator.add]


class Talk(TypedDict):
    """A conversation that grows."""

    n: Annotated[int, operator.add]
    messages: Annotated[list[AnyMessage], add_messages]


@contextmanager
def saver(places: Places, vendor: str) -> Iterator[tuple[Any, str]]:
    """A saver on an empty database, and where that is."""
    where = str(places.file("theirs")) if vendor == "sqlite" else places.empty()
    with open_saver(where) as opened:
        opened.setup()
        yield opened, where


@contextmanager
def open_saver(where: str) -> Iterator[Any]:
    """A saver on a file, or on PostgreSQL with ten connections."""
    if not where.startswith("postgresql"):
        with closing(sqlite3.connect(where, check_same_thread=False)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            yield SqliteSaver(connection)
        return
    arguments = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(where, min_size=1, max_size=10, kwargs=arguments) as pool:
        yield PostgresSaver(pool)


def line(steps: int, opened: Any) -> Any:
    """The same circle of three nodes."""
    graph = StateGraph(Count)
    for name in "abc":
        graph.add_node(name, step)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    graph.add_conditional_edges("c", lambda state: "on" if state["n"] < steps else "end", {"on": "a", "end": END})
    return graph.compile(checkpointer=opened)


def run(graph: Any, given: Any, thread_id: str, steps: int) -> Any:
    """Go on to the next pause or the end, with every step on disk before the next begins."""
    config = {"configurable": {"thread_id": thread_id}, "recursion_limit": steps + 10}
    return graph.invoke(given, config, durability="sync")


def in_a_line(places: Places, vendor: str, steps: int, before: int = 0) -> float:
    """Milliseconds a step, with so many runs before it in the same database."""
    with saver(places, vendor) as (opened, _):
        graph = line(steps, opened)
        for n in range(before):
            run(graph, {"n": 0}, f"before{n}", steps)
        began = time.perf_counter()
        result = run(graph, {"n": 0}, "line", steps)
        took = time.perf_counter() - began
    assert result["n"] == steps
    return took * 1000 / steps


def talking(places: Places, vendor: str, steps: int) -> tuple[list[float], int]:
    """The milliseconds of each step, a message longer each, and the bytes on disk."""
    marks: list[float] = []

    def say(_state: Any) -> dict[str, Any]:
        marks.append(time.perf_counter())
        return {"n": 1, "messages": [HumanMessage(TEXT)]}

    with saver(places, vendor) as (opened, _):
        graph = StateGraph(Talk)
        graph.add_node("say", say)
        graph.add_edge(START, "say")
        graph.add_conditional_edges("say", lambda s: "on" if s["n"] < steps else "end", {"on": "say", "end": END})
        result = run(graph.compile(checkpointer=opened), {"n": 0, "messages": []}, "talk", steps)
        marks.append(time.perf_counter())
        assert len(result["messages"]) == steps
        return durations(marks), _size(opened, vendor)


def _size(opened: Any, vendor: str) -> int:
    if vendor == "sqlite":
        opened.conn.commit()
        opened.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages, size = (opened.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * size)
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    sizes = ", ".join(f"pg_total_relation_size('{table}') AS {table}" for table in tables)
    with opened.conn.connection() as connection:
        found: dict[str, int] = connection.execute(f"SELECT {sizes}").fetchone()
        return sum(found.values())


def asking(opened: Any) -> Any:
    """A graph that asks."""

    def ask(_state: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage(str(interrupt("Shall we go?")))]}

    graph = StateGraph(Talk)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=opened)


def prepare_question(places: Places, messages: int) -> str:
    """A run that asks with so many messages before it; where it is."""
    with saver(places, "sqlite") as (opened, where):
        run(asking(opened), {"n": 0, "messages": [HumanMessage(TEXT) for _ in range(messages)]}, "asking", 10)
        return where


def answer(where: str, messages: int) -> float:
    """Milliseconds to open everything, answer, and go on to the end."""
    began = time.perf_counter()
    with open_saver(where) as opened:
        result = run(asking(opened), Command(resume="yes"), "asking", 10)
        took = time.perf_counter() - began
    assert len(result["messages"]) == messages + 1
    return took * 1000


def fan(branches: int, opened: Any) -> Any:
    """The same split and join."""
    graph = StateGraph(Count)
    names = [f"branch{n}" for n in range(branches)]
    for name in ("split", *names, "join"):
        graph.add_node(name, step)
    graph.add_edge(START, "split")
    for name in names:
        graph.add_edge("split", name)
    graph.add_edge(names, "join")
    graph.add_edge("join", END)
    return graph.compile(checkpointer=opened)


def branching(graph: Any, thread_id: str) -> float:
    """Milliseconds for a run that splits and joins."""
    began = time.perf_counter()
    run(graph, {"n": 0}, thread_id, 10)
    return (time.perf_counter() - began) * 1000


def many(places: Places, vendor: str, runs: int, steps: int) -> float:
    """Steps a second of runs that are all under way at once."""
    with saver(places, vendor) as (opened, _):
        graph = line(steps, opened)
        return at_once(lambda n: int(run(graph, {"n": 0}, f"run{n}", steps)["n"]), runs, steps)


def burr_in_a_line(places: Places, steps: int) -> float:
    """Milliseconds a step of Burr with its SQLite persister, made as durable as the others."""
    with closing(sqlite3.connect(places.file("burr"), check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        persister = SQLitePersister("", connection=connection)
        persister.initialize()
        application = _burr_line(steps, persister)
        began = time.perf_counter()
        _, _, state = application.run(halt_after=["end"])
        took = time.perf_counter() - began
    assert state["n"] >= steps
    return took * 1000 / steps


def _burr_line(steps: int, persister: Any) -> Any:
    def counting() -> Callable[[BurrState], BurrState]:
        @burr_action(reads=["n"], writes=["n"])
        def count(state: BurrState) -> BurrState:
            return state.update(n=state["n"] + 1)

        return count

    named = {name: counting() for name in ("a", "b", "c", "end")}
    on = burr_expr(f"n < {steps}")
    return (
        ApplicationBuilder()
        .with_actions(**named)
        .with_transitions(("a", "b"), ("b", "c"), ("c", "a", on), ("c", "end"))
        .with_state(n=0)
        .with_entrypoint("a")
        .with_state_persister(persister)
        .with_identifiers(app_id="line")
        .build()
    )
