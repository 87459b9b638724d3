"""The SQLite file in which a workspace outlives its process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from bot.sandbox.records import JsonObject

_SCHEMA = "CREATE TABLE IF NOT EXISTS records (kind TEXT, key TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, key))"


class Journal:
    """Records by kind and key; the caller holds the workspace's lock. Without a path it remembers nothing."""

    def __init__(self, path: Path | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(_SCHEMA)

    def load(self, kind: str) -> Iterator[JsonObject]:
        """Every record of this kind, in the order of its key."""
        if self._connection is None:
            return
        rows = self._connection.execute("SELECT body FROM records WHERE kind = ? ORDER BY key", (kind,))
        for (body,) in rows.fetchall():
            yield json.loads(body)

    def save(self, kind: str, key: str, body: JsonObject) -> None:
        """Write or replace one record."""
        if self._connection is not None:
            self._connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (kind, key, json.dumps(body)))

    def remove(self, kind: str, key: str) -> None:
        """Forget one record, if it is there."""
        if self._connection is not None:
            self._connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", (kind, key))

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
