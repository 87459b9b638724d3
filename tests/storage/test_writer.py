"""Saves of many threads, committed together and refused alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from graphs.engine.errors import StoreFailed
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import MemoryRow, insert_into
from storage.writer import TooSlow
from tests.databases import ON_POSTGRES, cut_writer

_INSERT = prepare(insert_into(MemoryRow))
_READ = prepare("SELECT value FROM memories WHERE key = :name")
_CHANGE = prepare("UPDATE memories SET value = :text WHERE key = :name")
_KEYS = prepare("SELECT key FROM memories ORDER BY at, key")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


def put(key: str, value: str = "1") -> Callable[[Transaction], int]:
    return lambda tx: tx.run(_INSERT, namespace="n", key=key, value=value, at=tx.now).rowcount


def kept(database: Database) -> list[str]:
    with database.look() as tx:
        return [row[0] for row in tx.run(_KEYS).fetchall()]


class Gate:
    """Holds a batch open until it is told to go on, so that what is submitted meanwhile comes together."""

    def __init__(self, database: Database) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.save = database.writer.submit("", self._hold)
        self.entered.wait()

    def _hold(self, tx: Transaction) -> None:
        self.entered.set()
        self.opened.wait()

    def open(self) -> None:
        self.opened.set()
        self.save.result()


def test_a_save_is_durable_when_it_returns(database: Database) -> None:
    assert database.write("a", put("k")) == 1
    assert kept(database) == ["k"]


def test_what_waits_is_committed_in_one_transaction(database: Database) -> None:
    gate = Gate(database)
    seen: list[int] = []
    saves = [database.writer.submit(f"r{n}", lambda tx: seen.append(id(tx))) for n in range(20)]
    gate.open()
    for save in saves:
        save.result()
    assert (len(seen), len(set(seen))) == (20, 1)


def test_a_batch_is_in_the_order_of_its_keys_and_a_key_in_the_order_it_came(database: Database) -> None:
    gate, order = Gate(database), list[str]()
    saves = [
        database.writer.submit(key, lambda tx, key=key, n=n: order.append(f"{key}{n}"))  # type: ignore[misc]
        for n in range(3)
        for key in ("c", "a", "b")
    ]
    gate.open()
    for save in saves:
        save.result()
    assert order == ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"]


def test_one_conflict_fails_alone(database: Database) -> None:
    database.write("", put("taken"))
    gate = Gate(database)
    good = [database.writer.submit(f"r{n}", put(f"k{n}")) for n in range(3)]
    bad = database.writer.submit("r1", put("taken"))
    gate.open()
    with pytest.raises(StoreFailed):
        bad.result()
    assert [save.result() for save in good] == [1, 1, 1]
    assert sorted(kept(database)) == ["k0", "k1", "k2", "taken"]


def test_what_a_work_raises_reaches_its_caller_and_leaves_nothing(database: Database) -> None:
    def work(tx: Transaction) -> None:
        put("half")(tx)
        raise LookupError("not here")

    gate = Gate(database)
    bad, good = database.writer.submit("a", work), database.writer.submit("b", put("whole"))
    gate.open()
    with pytest.raises(LookupError, match="not here"):
        bad.result()
    assert (good.result(), kept(database)) == (1, ["whole"])


def test_a_withdrawn_save_is_not_written(database: Database) -> None:
    gate = Gate(database)
    saves = [database.writer.submit("a", put(f"k{n}")) for n in range(3)]
    assert saves[1].cancel()
    gate.open()
    assert [saves[0].result(), saves[2].result(), kept(database)] == [1, 1, ["k0", "k2"]]
    with pytest.raises(CancelledError):
        saves[1].result()
    assert not saves[0].cancel()


def test_a_save_in_a_hurry_gives_up_before_it_has_begun(database: Database) -> None:
    gate = Gate(database)
    with pytest.raises(TooSlow):
        database.write("a", put("k"), timeout=0.01)
    gate.open()
    assert kept(database) == []


def test_a_save_that_has_begun_tells_how_it_ended(database: Database) -> None:
    gate = Gate(database)
    assert not gate.save.cancel()
    with pytest.raises(TimeoutError):
        gate.save.result(0.01)
    gate.open()
    assert gate.save.done()


def test_a_time_limit_that_is_kept_changes_nothing(database: Database) -> None:
    assert database.write("a", put("k"), timeout=30) == 1


def test_a_works_own_timeout_error_is_its_own(database: Database) -> None:
    def work(tx: Transaction) -> None:
        raise TimeoutError("the work's")

    with pytest.raises(TimeoutError, match="the work's"):
        database.write("a", work, timeout=30)


def test_shared_rows_are_written_last_and_in_order(database: Database) -> None:
    gate = Gate(database)

    def work(name: str) -> Callable[[Transaction], None]:
        def run(tx: Transaction) -> None:
            tx.run_last(f"shared {name}", _CHANGE, name="shared", text=name)
            assert tx.run(_READ, name="shared").fetchone() == ("0",)

        return run

    gate.open()
    database.write("", put("shared", "0"))
    gate = Gate(database)
    saves = [database.writer.submit(key, work(name)) for key, name in (("a", "z"), ("b", "m"), ("c", "a"))]
    gate.open()
    for save in saves:
        save.result()
    with database.look() as tx:
        assert tx.run(_READ, name="shared").fetchone() == ("z",)


def test_a_closed_writer_finishes_what_waits_and_refuses_the_rest(database: Database) -> None:
    saves = [database.writer.submit("a", put(f"k{n}")) for n in range(10)]
    database.writer.close()
    assert [save.result() for save in saves] == [1] * 10
    with pytest.raises(StoreFailed, match="closed"):
        database.write("a", put("late"))


def test_no_update_is_lost_among_many_threads(database: Database) -> None:
    database.write("", put("count", "0"))

    def add(tx: Transaction) -> None:
        row: Any = tx.run(_READ, name="count").fetchone()
        tx.run(_CHANGE, name="count", text=str(int(row[0]) + 1))

    def many() -> None:
        for _ in range(25):
            database.write("count", add)

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.look() as tx:
        assert tx.run(_READ, name="count").fetchone() == ("200",)


def test_every_caller_gets_the_outcome_of_its_own_save(database: Database) -> None:
    outcomes: dict[int, list[Any]] = {}

    def many(thread: int) -> None:
        outcomes[thread] = [
            database.write(f"r{thread}", lambda tx, n=n: (thread, n))  # type: ignore[misc]
            for n in range(50)
        ]

    threads = [threading.Thread(target=many, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {thread: [(thread, n) for n in range(50)] for thread in range(16)}


# -- works that have nothing to do with one another --------------------------------------------------------------------


def two_reads(name: str, order: list[str], fails: bool = False) -> Callable[[Transaction], str]:
    """A work of two statements that notes when each has its answer."""

    def work(tx: Transaction) -> str:
        for n in (1, 2):
            tx.run(_READ, name=name).fetchall()
            order.append(f"{name}{n}")
        put(name)(tx)
        if fails:
            raise LookupError(name)
        return name

    return work


def test_works_apart_take_turns_where_the_way_to_the_server_is_long(database: Database) -> None:
    gate, order = Gate(database), list[str]()
    saves = [database.writer.submit(key, two_reads(key, order), apart=True) for key in ("c", "a", "b")]
    gate.open()
    assert [save.result() for save in saves] == ["c", "a", "b"]
    turns = ["a1", "b1", "c1", "a2", "b2", "c2"]
    assert order == (turns if database.dialect == "postgresql" else sorted(turns))
    assert sorted(kept(database)) == ["a", "b", "c"]


def test_works_of_one_key_never_take_turns(database: Database) -> None:
    gate, order = Gate(database), list[str]()
    saves = [database.writer.submit("run", two_reads(name, order), apart=True) for name in ("c", "a", "b")]
    gate.open()
    assert [save.result() for save in saves] == ["c", "a", "b"]
    assert order == ["c1", "c2", "a1", "a2", "b1", "b2"]


def test_other_works_take_no_turns_with_them(database: Database) -> None:
    gate, order = Gate(database), list[str]()
    saves = [database.writer.submit(key, two_reads(key, order), apart=key != "b") for key in "abcd"]
    gate.open()
    assert [save.result() for save in saves] == ["a", "b", "c", "d"]
    assert [mark for mark in order if mark[0] in "ab"] == ["a1", "a2", "b1", "b2"]
    assert order.index("b2") < order.index("c1")


def test_one_of_them_that_fails_takes_nobody_along(database: Database) -> None:
    gate, order = Gate(database), list[str]()
    saves = [database.writer.submit(key, two_reads(key, order, fails=key == "b"), apart=True) for key in "abc"]
    gate.open()
    assert [saves[0].result(), saves[2].result()] == ["a", "c"]
    with pytest.raises(LookupError, match="b"):
        saves[1].result()
    assert sorted(kept(database)) == ["a", "c"]


def test_one_of_them_that_the_database_refuses_takes_nobody_along(database: Database) -> None:
    database.write("", put("b"))
    gate, order = Gate(database), list[str]()
    saves = [database.writer.submit(key, two_reads(key, order), apart=True) for key in "abc"]
    gate.open()
    assert [saves[0].result(), saves[2].result()] == ["a", "c"]
    with pytest.raises(StoreFailed):
        saves[1].result()
    assert sorted(kept(database)) == ["a", "b", "c"]


def test_works_of_different_lengths_end_each_in_its_own_round(database: Database) -> None:
    def reads(number: int) -> Callable[[Transaction], int]:
        return lambda tx: sum(len(tx.run(_KEYS).fetchall()) >= 0 for _ in range(number))

    gate = Gate(database)
    saves = [database.writer.submit(f"r{n}", reads(n), apart=True) for n in range(6)]
    gate.open()
    assert [save.result() for save in saves] == [0, 1, 2, 3, 4, 5]


def test_a_caller_who_is_interrupted_leaves_nobody_waiting(database: Database) -> None:
    """Callers wake one another: who stops waiting must not be taken for one who will wake the next."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for round_ in range(20):
            gate, others = Gate(database), ThreadPoolExecutor(8)
            waiting = [others.submit(database.write, f"r{n}", put(f"{round_}.{n}")) for n in range(8)]
            try:
                with pytest.raises(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    database.write("a", put(f"{round_}.interrupted"))
            finally:
                gate.open()
            assert [each.result(30) for each in waiting] == [1] * 8
            others.shutdown()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_time_of_a_transaction_is_read_once(database: Database) -> None:
    first, second = database.write("a", lambda tx: (tx.now, tx.now))
    assert first == second
    assert abs(database.now() - first) < 60_000_000


@ON_POSTGRES
def test_a_dropped_connection_costs_nothing_between_two_saves(database: Database) -> None:
    cut_writer(database)
    assert database.write("a", put("after")) == 1
    assert kept(database) == ["after"]
