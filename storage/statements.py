"""SQL of every transaction that writes, executed on the driver's own connection.

It is text and not SQLAlchemy's expressions: those take a millisecond each to compile in every new process, and a click
is often the first thing a process is there for. What people look at is read through SQLModel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol, cast


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
_NAMED = re.compile(r":(\w+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as one driver takes it; `bind` puts its parameters in the driver's form."""

    text: str
    bind: Callable[[Parameters], Any]


@dataclass(slots=True)
class Prepared:
    """SQL with `:names`, rewritten for each dialect when it is first run there."""

    sql: str
    _by_dialect: dict[str, Statement] = field(default_factory=dict)

    def on(self, dialect: str) -> Statement:
        """What the dialect's driver executes."""
        if (known := self._by_dialect.get(dialect)) is None:
            known = self._by_dialect[dialect] = _rewrite(self.sql, dialect)
        return known


def prepare(sql: str) -> Prepared:
    """SQL that both databases take, with `:names` for parameters, to be run again and again.

    Nothing is converted: times are microseconds, JSON is text. A lock is asked for by ` FOR UPDATE` at the end, which
    SQLite neither knows nor needs: its writing transactions exclude each other as a whole.
    """
    return Prepared(sql)


def _rewrite(sql: str, dialect: str) -> Statement:
    if dialect == "sqlite":
        return Statement(_NAMED.sub("?", sql.removesuffix(" FOR UPDATE")), _in_order(_NAMED.findall(sql)))
    return Statement(_NAMED.sub(r"%(\1)b", sql), _as_named)  # binary: lists as text cost five times as much


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
    def set_now(self) -> int | None:
        """The clock's time, or None where the server's own clock counts, which a statement reads by itself."""
        return self.now if self._clock else None

    @property
    def connection(self) -> Any:
        """The driver's connection, for a queue that wants its job in the same transaction."""
        return self._connection

    def run(self, prepared: Prepared, **params: Any) -> Cursor:
        """Execute a prepared statement; leaving out a parameter is an error."""
        statement = prepared.on(self.dialect)
        return self._execute(statement.text, statement.bind(params))

    def _execute(self, text: str, parameters: Any) -> Cursor:
        return cast(Cursor, self._connection.execute(text, parameters))

    def run_last(self, order: str, prepared: Prepared, **params: Any) -> None:
        """Execute at the end of the batch, in the order of `order`: for rows that many runs share.

        Otherwise two processes lock the same shared rows in opposite orders, and PostgreSQL ends one batch.
        """
        self._last.append((order, prepared, params))

    def finish(self) -> None:
        """Execute what was kept for last."""
        if not self._last:
            return
        for _, prepared, params in sorted(self._last, key=itemgetter(0)):
            self.run(prepared, **params)
        self._last.clear()


def server_now(connection: Connection) -> int:
    """PostgreSQL's clock in microseconds since the epoch."""
    return int(connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()[0])
