"""Opens the database: reads in snapshots, writes through the one writer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlmodel import Session

from graphs.engine.errors import StoreFailed
from storage import schema
from storage.batches import Batches
from storage.engines import DatabaseError, driver_connection, explain, make_engine, told
from storage.saves import Work
from storage.statements import Connection, Transaction, server_now
from storage.writer import Writer

__all__ = ["Database", "DatabaseError", "open_database"]

T = TypeVar("T")


class Database:
    """One process's way to the database. `clock` replaces its clock (microseconds since the epoch)."""

    def __init__(self, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self.engine = make_engine(url)
        self.dialect = self.engine.dialect.name
        self._clock = clock or (machine_now if self.dialect == "sqlite" else None)
        self._reading: dict[str, Any] = {"sqlite_begin": "DEFERRED"}
        if self.dialect == "postgresql":
            self._reading = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self.writer = Writer(Batches(self._connect, self.dialect, self._clock, explain))

    def now(self) -> int:
        """The database's clock: this machine's beside SQLite, the server's on PostgreSQL."""
        if self._clock:
            return self._clock()
        with self._reader() as connection:
            return server_now(driver_connection(connection))

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A snapshot to read from; writing in it is refused by the database."""
        with self._reader() as connection, Session(connection, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """A snapshot like `read`, for prepared statements."""
        with self._reader() as connection, connection.begin():
            yield Transaction(driver_connection(connection), self.dialect, self._clock)

    def write(self, key: str, work: Work[T], timeout: float | None = None) -> T:
        """Run `work` in a transaction of the writer and wait until it is durable; see `Writer.run`."""
        return self.writer.run(key, work, timeout)

    def close(self) -> None:
        """Save what is waiting and let go of every connection."""
        self.writer.close()
        self.engine.dispose()

    @contextmanager
    def _reader(self) -> Iterator[sa.Connection]:
        """A connection whose transactions are snapshots that write nothing."""
        with told(), self.engine.connect() as connection:
            # Not an engine with these options: to make one takes a millisecond.
            yield connection.execution_options(**self._reading)

    def _connect(self) -> Connection:
        """A connection of the writer's own, with transactions begun and ended by hand."""
        fairy = self.engine.raw_connection()
        connection: Any = fairy.driver_connection
        fairy.detach()
        if self.dialect == "postgresql":
            connection.autocommit = True
            # Otherwise a process that freezes in a transaction stops every other one.
            connection.execute("SET lock_timeout = '10s'")
            connection.execute("SET idle_in_transaction_session_timeout = '10s'")
        else:
            connection.execute("PRAGMA query_only=OFF")
        return connection  # type: ignore[no-any-return]


def machine_now() -> int:
    """This machine's clock in microseconds since the epoch."""
    return time.time_ns() // 1000


def open_database(url: str, *, migrate: bool = True, clock: Callable[[], int] | None = None) -> Database:
    """Open a database that this code can work with, brought up to it first if `migrate`.

    Raises `DatabaseError` with what to do: unreachable, not writable, full, no database, newer or older than the code.
    """
    try:
        if migrate:
            schema.migrate(url)
        database = Database(url, clock=clock)
        try:
            schema.check(database.engine)
        except BaseException:
            database.close()
            raise
    except StoreFailed as error:
        raise DatabaseError(str(error)) from error
    return database
