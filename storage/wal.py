"""SQLite's write-ahead log: how a file comes to have one, and room for it."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

BUSY = 30.0  # seconds SQLite waits for another process's write
ROOM = 4_120_000  # bytes: the thousand pages after which SQLite writes its log anew from the start


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; on a fresh file that fails at once while another process does the same."""
    end = time.monotonic() + BUSY
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def make_room(connection: sqlite3.Connection) -> None:
    """Give the log the size at once that it would grow to, between two transactions; without the space it is left.

    While a log grows, each commit also has to make its new length durable, which takes the disk as long again as what
    was saved. What is written here is given up, so that the log holds nothing more than before; only its room stays.
    Raises `sqlite3.Error` only where the connection cannot be used any more.
    """
    log = Path(f"{connection.execute('PRAGMA database_list').fetchone()[2]}-wal")
    (cache,) = connection.execute("PRAGMA cache_size").fetchone()
    try:
        if (missing := ROOM - log.stat().st_size) > 0:
            connection.execute("PRAGMA cache_size=0")  # what finds no place in memory is written to the log
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE room (filled)")
            connection.execute("INSERT INTO room VALUES (zeroblob(?))", (missing,))
    except (OSError, sqlite3.Error):
        pass  # whoever saves next is told what is wrong
    finally:
        connection.rollback()
        connection.execute(f"PRAGMA cache_size={cache}")
