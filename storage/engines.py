"""Engines as SQLite and PostgreSQL need them, and what to do about the errors they give."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection

from graphs.engine.errors import EngineError, StoreFailed
from storage.statements import Connection
from storage.wal import BUSY, use_wal


class DatabaseError(Exception):
    """The database cannot be used as it is; the message says what to do."""


def driver_connection(connection: sa.Connection) -> Connection:
    """The vendor's connection under SQLAlchemy's."""
    return connection.connection.driver_connection  # type: ignore[return-value]


def read_url(url: str) -> sa.URL:
    """The address with its driver; raises `DatabaseError` for one that cannot be used."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise DatabaseError(
            f"{url!r} is no database address; use sqlite:///path/to/file.db or postgresql://host/name."
        ) from error
    vendor = parsed.get_backend_name()
    if vendor in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    if vendor != "sqlite":
        raise DatabaseError(f"{vendor} is not supported; use SQLite or PostgreSQL.")
    if parsed.database in (None, "", ":memory:"):
        raise DatabaseError("SQLite needs a file to remember anything in; use sqlite:///path/to/file.db.")
    return parsed


def make_engine(url: str, *, foreign_keys: bool = True) -> sa.Engine:
    """An engine whose transactions write (IMMEDIATE on SQLite) unless `sqlite_begin` says otherwise."""
    parsed = read_url(url)
    if parsed.get_backend_name() == "sqlite":
        assert parsed.database is not None
        _make_directory(Path(parsed.database).parent)
        engine = sa.create_engine(parsed, connect_args={"check_same_thread": False}, pool_size=10, max_overflow=50)
        event.listen(engine, "connect", lambda connection, _record: _set_up_sqlite(connection, foreign_keys))
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return sa.create_engine(
        parsed,
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
        connect_args={"connect_timeout": 10, "application_name": "signoff"},
    )


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(
            f"The directory {path} of the database cannot be made: create it, or name another."
        ) from error


def _set_up_sqlite(connection: DBAPIConnection, foreign_keys: bool) -> None:
    raw: Any = connection
    raw.isolation_level = None  # otherwise sqlite3 begins transactions by itself, deferred ones, and updates get lost
    raw.execute(f"PRAGMA busy_timeout={int(BUSY * 1000)}")
    use_wal(raw)
    raw.execute("PRAGMA synchronous=FULL")
    raw.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")


def _begin_sqlite(connection: sa.Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "IMMEDIATE")
    raw = driver_connection(connection)
    if connection.info.get("sqlite_begin") != mode:  # the pragma makes SQLite compile every statement anew
        raw.execute(f"PRAGMA query_only={'ON' if mode == 'DEFERRED' else 'OFF'}")
        connection.info["sqlite_begin"] = mode
    raw.execute(f"BEGIN {mode}")


@contextmanager
def told() -> Iterator[None]:
    """Turn a vendor's error into ours."""
    try:
        yield
    except (sa.exc.DBAPIError, sqlite3.Error, psycopg.Error) as error:
        raise explain(error) from error


def explain(error: Exception) -> Exception:
    """A vendor's error as `StoreFailed` with its cause; anything else as it is."""
    if isinstance(error, EngineError | DatabaseError):
        return error
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    if not isinstance(cause, sqlite3.Error | psycopg.Error):
        return error
    failed = StoreFailed(
        f"{advice(cause)} ({str(cause).strip().splitlines()[0] if str(cause) else type(cause).__name__})"
    )
    failed.__cause__ = cause
    return failed


_ADVICE = (
    ("full", "The disk is full: make room, then try again."),
    ("space left", "The database's disk is full: make room, then try again."),
    ("readonly", "The database cannot be written: check the permissions of its file and directory."),
    ("read-only", "The database cannot be written: connect to the primary server."),
    ("unable to open", "The database file cannot be opened: check that its directory exists and may be written."),
    ("not a database", "The file is no SQLite database: name another one, or move it away."),
    ("malformed", "The database file is damaged: restore a backup."),
    ("locked", f"Another process kept the database locked for {BUSY:.0f} seconds: end it, then try again."),
    ("password", "The database refused the login: check user and password in its address."),
    ("does not exist", "The database or a table does not exist: create the database, then run `signoff migrate`."),
    ("no such table", "The database is empty: run `signoff migrate`."),
    ("connect", "The database cannot be reached: check its address and that it runs."),
)


def advice(error: BaseException) -> str:
    """What to do about a vendor's error, as a sentence."""
    text = str(error).lower()
    return next((sentence for word, sentence in _ADVICE if word in text), "The database refused.")
