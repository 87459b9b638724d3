"""Statements compiled once by SQLAlchemy Core and executed on the driver's own connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg


class Cursor(Protocol):
    """What a driver's cursor gives back; rows are plain tuples."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A driver's connection."""

    def execute(self, query: Any, params: Any = ...) -> Any: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement as one driver takes it: `values` are those it brings along, `bind` puts all in the driver's form."""

    text: str
    values: Parameters
    bind: Callable[[Parameters], Any]


@dataclass(slots=True)
class Prepared:
    """A statement as text for each dialect, compiled when it is first run there."""

    statement: sa.Executable
    _compiled: dict[str, Compiled] = field(default_factory=dict)

    def on(self, dialect: str) -> Compiled:
        """What the dialect's driver executes."""
        if (known := self._compiled.get(dialect)) is None:
            known = self._compiled[dialect] = _compile(self.statement, dialect)
        return known


def prepare(statement: sa.Executable) -> Prepared:
    """Compile a Core statement once. Column types do not convert here: times are microseconds, JSON is text."""
    return Prepared(statement)


@cache
def _style(dialect: str) -> sa.Dialect:
    """One dialect for all statements, otherwise each of them makes up anew how every type is written there."""
    return sqlite.dialect(paramstyle="qmark") if dialect == "sqlite" else PGDialect_psycopg()  # type: ignore[no-untyped-call]


def _compile(statement: Any, dialect: str) -> Compiled:
    compiled = statement.compile(dialect=_style(dialect))
    missing = {bind.key for bind in compiled.binds.values() if bind.required}
    state = compiled.construct_expanded_state(dict.fromkeys(missing))  # IN (...): a prepared list is fixed
    values = {key: value for key, value in state.parameters.items() if key not in missing}
    return Compiled(state.statement, values, _in_order(state.positiontup) if compiled.positional else _as_named)


def _as_named(parameters: Parameters) -> Any:
    return parameters


def _in_order(names: Sequence[str]) -> Callable[[Parameters], Any]:
    """Positions instead of names: a third less time per statement on SQLite."""
    return itemgetter(*names) if len(names) > 1 else lambda parameters: tuple(parameters[name] for name in names)


class Transaction:
    """One transaction on the driver's connection, shared by the works of a batch."""

    __slots__ = ("_clock", "_connection", "_last", "_now", "dialect")

    def __init__(self, connection: Connection, dialect: str, clock: Callable[[], int] | None) -> None:
        self._connection = connection
        self._clock = clock
        self._now: int | None = None
        self._last: list[tuple[str, Prepared, dict[str, Any]]] = []
        self.dialect = dialect

    @property
    def now(self) -> int:
        """The database's clock in microseconds since the epoch, read once per transaction."""
        if self._now is None:
            self._now = self._clock() if self._clock else server_now(self._connection)
        return self._now

    @property
    def connection(self) -> Any:
        """The driver's connection, for a queue that wants its job in the same transaction."""
        return self._connection

    def run(self, prepared: Prepared, **params: Any) -> Cursor:
        """Execute a prepared statement; leaving out a parameter is an error."""
        ready = prepared.on(self.dialect)
        parameters = {**ready.values, **params} if ready.values else params
        return cast(Cursor, self._connection.execute(ready.text, ready.bind(parameters)))

    def run_last(self, order: str, prepared: Prepared, **params: Any) -> None:
        """Execute at the end of the batch, in the order of `order`: for rows that many runs share.

        Otherwise two processes lock the same shared rows in opposite orders, and PostgreSQL ends one batch.
        """
        self._last.append((order, prepared, params))

    def finish(self) -> None:
        """Execute what was kept for last."""
        for _, prepared, params in sorted(self._last, key=itemgetter(0)):
            self.run(prepared, **params)
        self._last.clear()


def server_now(connection: Connection) -> int:
    """PostgreSQL's clock in microseconds since the epoch."""
    return int(connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()[0])
