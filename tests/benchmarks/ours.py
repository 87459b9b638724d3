"""Our engine on our storage layer, as the bot runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from graphs.engine import Graph, Message, Runner
from graphs.flow import Policy
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from tests.benchmarks import graphs
from tests.benchmarks.places import Places


@contextmanager
def runner(url: str) -> Iterator[Runner]:
    """A process's runner, closed afterwards."""
    database = Database(url)
    store = SqlCheckpointer(database, policy_of=lambda _flow: Policy(), guards=lambda _flow, _kind: True)
    try:
        yield Runner(store)
    finally:
        store.close()
        database.close()


def in_a_line(places: Places, vendor: str, steps: int, before: int = 0) -> float:
    """Milliseconds a step, with so many runs before it in the same database."""
    graph = graphs.line(steps)
    with runner(places.migrated(vendor)) as engine:
        for _ in range(before):
            engine.invoke(graph, {})
        began = time.perf_counter()
        snapshot = engine.invoke(graph, {})
        took = time.perf_counter() - began
    assert (snapshot.status, snapshot.values.n) == ("finished", steps)
    return took * 1000 / steps


def talking(url: str, steps: int) -> list[float]:
    """The milliseconds of each step, a message longer each."""
    marks: list[float] = []

    def say(_n: int) -> dict[str, Any]:
        marks.append(time.perf_counter())
        return {"n": 1, "messages": Message(role="user", content=graphs.TEXT)}

    with runner(url) as engine:
        snapshot = engine.invoke(graphs.talk(steps, say), {})
        marks.append(time.perf_counter())
    assert (snapshot.status, len(snapshot.values.messages)) == ("finished", steps)
    return durations(marks)


def durations(marks: list[float]) -> list[float]:
    """Milliseconds between times."""
    return [(after - before) * 1000 for before, after in pairwise(marks)]


def prepare_question(url: str, messages: int) -> tuple[str, str]:
    """A run that has talked and then asked: its thread and the question's id."""
    with runner(url) as engine:
        snapshot = engine.invoke(graphs.ask(messages), {}, "asking")
        return "asking", snapshot.interrupts[0].id


def answer(url: str, thread_id: str, interrupt_id: str, messages: int) -> float:
    """Milliseconds to open everything, answer, and go on to the end."""
    began = time.perf_counter()
    with runner(url) as engine:
        engine.know(graphs.ask(messages))
        snapshot = engine.resume(thread_id, {interrupt_id: "yes"})
        took = time.perf_counter() - began
    assert (snapshot.status, len(snapshot.values.messages)) == ("finished", messages + 1)
    return took * 1000


def branching(engine: Runner, graph: Graph[Any]) -> float:
    """Milliseconds for a run that splits and joins."""
    began = time.perf_counter()
    snapshot = engine.invoke(graph, {})
    took = time.perf_counter() - began
    assert snapshot.status == "finished"
    return took * 1000


def many(places: Places, vendor: str, runs: int, steps: int) -> float:
    """Steps a second of runs that are all under way at once."""
    graph = graphs.line(steps)
    with runner(places.migrated(vendor)) as engine:
        return at_once(lambda n: engine.invoke(graph, {}, f"run{n}").values.n, runs, steps)


def at_once(run: Callable[[int], int], runs: int, steps: int) -> float:
    """Steps a second, one thread for each run."""
    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(lambda _n: time.sleep(0.001), range(runs)))  # so that starting threads is not measured
        began = time.perf_counter()
        taken = list(pool.map(run, range(runs)))
        took = time.perf_counter() - began
    assert taken == [steps] * runs
    return sum(taken) / took


def size(url: str) -> int:
    """Bytes on disk, with the log written back; on PostgreSQL tables, indexes and long values of the schema."""
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            if database.dialect == "sqlite":
                connection.exec_driver_sql("COMMIT")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                return Path(str(database.engine.url.database)).stat().st_size
            return int(connection.execute(sa.text("SELECT pg_total_relation_size('checkpoints')")).scalar_one())
    finally:
        database.close()
