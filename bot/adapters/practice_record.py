"""What the practice API was given to send, in an SQLite file of its own that several processes may share."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

_TABLE = """
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, "to" TEXT NOT NULL, body TEXT NOT NULL,
    at TEXT NOT NULL, key TEXT NOT NULL, sid TEXT NOT NULL UNIQUE
)
"""
_COLUMNS = ("kind", "to", "body", "at", "key", "sid")
_SELECT = 'SELECT kind, "to", body, at, key, sid FROM outbox'


class Record:
    """An append-only list of texts and posts. `path` None keeps it in memory, for this object alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._memory = None if path else sqlite3.connect(":memory:", check_same_thread=False)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")  # otherwise of two processes that make the file one is refused
            connection.execute(_TABLE)

    def add(self, *, kind: str, to: str, body: str, at: datetime, key: str, sid: str) -> dict[str, Any]:
        """Append one entry, on disk when this returns; a key given twice makes two entries, as with a real vendor."""
        row = (kind, to, body, at.isoformat(), key, sid)
        with self._connection() as connection, connection:
            connection.execute('INSERT INTO outbox (kind, "to", body, at, key, sid) VALUES (?, ?, ?, ?, ?, ?)', row)
        return dict(zip(_COLUMNS, row, strict=True))

    def entries(self) -> list[dict[str, Any]]:
        """All entries, oldest first."""
        with self._connection() as connection:
            rows = connection.execute(f"{_SELECT} ORDER BY number").fetchall()
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            with self._lock:
                yield self._memory
            return
        # A connection each time: one of another thread or of before a fork must not be used.
        with closing(sqlite3.connect(self._path or "", timeout=30)) as connection:
            yield connection
