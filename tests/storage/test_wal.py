"""SQLite's log: how a file comes to have one, and its room: there at once, with nothing in it, not at any price."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from storage.batches import MANY, Batches
from storage.database import Database
from storage.saves import Save
from storage.schema import migrate
from storage.statements import prepare
from storage.tables import MemoryRow, insert_into
from storage.wal import ROOM, make_room, use_wal

_INSERT = prepare(insert_into(MemoryRow))
CACHE = -512  # KiB
TABLES = "SELECT name FROM sqlite_master ORDER BY name"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection with a log and a table in which something stands."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        use_wal(connection)
        connection.execute(f"PRAGMA cache_size={CACHE}")
        connection.execute("CREATE TABLE kept (n)")
        connection.execute("INSERT INTO kept VALUES (1)")
        yield connection


class Contended:
    """A fresh file that other processes are switching to the write-ahead log as well; remembers what it was told."""

    def __init__(self, refusals: int, reason: str = "database is locked") -> None:
        self.refusals, self.reason, self.mode, self.told = refusals, reason, "delete", list[str]()

    def execute(self, statement: str) -> Contended:
        self.told.append(statement)
        if statement.endswith("=WAL"):
            self.refusals -= 1
            if self.refusals >= 0:
                raise sqlite3.OperationalError(self.reason)
            self.mode = "wal"
        return self

    def fetchone(self) -> tuple[str]:
        return (self.mode,)


def test_the_switch_to_the_log_is_tried_until_nobody_is_in_the_way() -> None:
    file = Contended(refusals=2)
    use_wal(cast(Any, file))
    assert (file.mode, file.told.count("PRAGMA journal_mode=WAL")) == ("wal", 3)
    broken = Contended(refusals=1, reason="disk I/O error")
    with pytest.raises(sqlite3.OperationalError, match="disk"):
        use_wal(cast(Any, broken))


def log_of(file: Path) -> int:
    """Bytes of the log."""
    return file.with_name(f"{file.name}-wal").stat().st_size


def seen(connection: sqlite3.Connection) -> list[Any]:
    """What a connection sees, and how it is set."""
    of = [TABLES, "SELECT n FROM kept", "PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA cache_size"]
    return [connection.execute(each).fetchall() for each in of]


def test_the_log_gets_its_room_and_nothing_else_changes(connection: sqlite3.Connection, file: Path) -> None:
    before = seen(connection)
    make_room(connection)
    assert log_of(file) >= ROOM
    assert not connection.in_transaction
    assert seen(connection) == before
    with closing(sqlite3.connect(file)) as other:
        assert seen(other)[:4] == before[:4]
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_log_grows_no_more_once_it_has_room(connection: sqlite3.Connection, file: Path) -> None:
    make_room(connection)
    roomy = log_of(file)
    for n in range(300):
        connection.execute("INSERT INTO kept VALUES (?)", (n,))
    make_room(connection)
    assert log_of(file) == roomy


def test_what_is_saved_in_the_room_outlives_a_crash(connection: sqlite3.Connection, file: Path, tmp_path: Path) -> None:
    make_room(connection)
    connection.execute("INSERT INTO kept VALUES (2)")
    for end in ("", "-wal"):
        shutil.copy(f"{file}{end}", tmp_path / f"crashed.db{end}")
    with closing(sqlite3.connect(tmp_path / "crashed.db")) as recovered:
        assert recovered.execute("SELECT n FROM kept").fetchall() == [(1,), (2,)]
        assert recovered.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_without_the_space_everything_is_as_before(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA max_page_count=100")
    before = seen(connection)
    make_room(connection)
    assert (seen(connection), connection.in_transaction) == (before, False)
    connection.execute("INSERT INTO kept VALUES (2)")


def test_while_another_process_writes_it_is_left(connection: sqlite3.Connection, file: Path) -> None:
    connection.execute("PRAGMA busy_timeout=1")
    before = seen(connection)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        make_room(connection)
        assert log_of(file) < ROOM
    assert (seen(connection), connection.in_transaction) == (before, False)


def test_a_process_that_goes_on_saving_has_the_room(file: Path) -> None:
    migrate(f"sqlite:///{file}")
    database = Database(f"sqlite:///{file}")
    sizes = []
    for n in range(MANY + 1):
        values = {"namespace": "test", "key": str(n), "value": "{}", "at": n}
        assert database.write("a", lambda tx, values=values: tx.run(_INSERT, **values).rowcount) == 1
        sizes.append(log_of(file))
    database.close()
    assert sizes[MANY - 2] < ROOM <= sizes[MANY - 1] == sizes[MANY]


class Stubborn(sqlite3.Connection):
    """A connection that fails to roll back while `fails` is set."""

    fails = False

    def rollback(self) -> None:
        if self.fails:
            raise sqlite3.OperationalError("disk I/O error")
        super().rollback()


def test_a_connection_that_cannot_give_up_what_it_wrote_is_replaced(file: Path) -> None:
    opened: list[Stubborn] = []

    def connect() -> Any:
        opened.append(sqlite3.connect(file, isolation_level=None, factory=Stubborn))
        use_wal(opened[-1])
        opened[-1].execute("CREATE TABLE IF NOT EXISTS kept (n)")
        return opened[-1]

    batches = Batches(connect, "sqlite", lambda: 0, lambda error: error)
    for n in range(MANY + 1):
        if n == MANY:
            opened[0].fails = True
            batches.look_ahead()
        save: Save[Any] = Save("a", lambda tx, n=n: tx.connection.execute("INSERT INTO kept VALUES (?)", (n,)))
        assert batches.commit([save])
        assert save.done()
        save.wake()
        save.result()
    batches.close()
    assert len(opened) == 2
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT n FROM kept ORDER BY n").fetchall() == [(n,) for n in range(MANY + 1)]
