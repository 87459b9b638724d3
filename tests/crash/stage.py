"""What the processes of one plan share: a clock that only the test moves on, files of what was called, and blows."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from storage.leases import LEASE
from storage.ledger import LOOK_AFTER, SEND_WITHIN
from tests.crash.points import Blow

HANGS_AFTER = 300  # seconds until a process that never ends is ended, and says so by its signal
START = int(datetime(2027, 1, 13, 10, tzinfo=UTC).timestamp()) * 1_000_000
LATER = LEASE + SEND_WITHIN + LOOK_AFTER + 2_000_000  # microseconds until a dead process counts for nothing any more
VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d[^\"]*|(SM|PO)[0-9a-f]{32}|[0-9a-f]{32}")


class Clock:
    """Microseconds since the epoch, the same in every process of a plan; the file holds origin and shift."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("<qq", time.monotonic_ns() // 1000, 0))
        self._file = os.open(path, os.O_RDWR)

    def __call__(self) -> int:
        origin, shift = struct.unpack("<qq", os.pread(self._file, 16, 0))
        return int(START + shift + time.monotonic_ns() // 1000 - origin)

    def now(self) -> datetime:
        """The time, aware."""
        return datetime.fromtimestamp(self() / 1_000_000, UTC)

    def move(self, micros: int = LATER) -> None:
        """Let time pass for everybody."""
        origin, shift = struct.unpack("<qq", os.pread(self._file, 16, 0))
        os.pwrite(self._file, struct.pack("<qq", origin, shift + micros), 0)


def note(path: Path, line: str) -> None:
    """Append a line in one write, so that it is whole or missing whatever happens to the process."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line.encode() + b"\n")
    os.close(file)


def lines(path: Path) -> list[str]:
    """All lines of a file, none where it is not there yet."""
    return path.read_text().splitlines() if path.exists() else []


def steady(value: Any) -> str:
    """JSON text in which times and random references look alike."""
    return VOLATILE.sub("~", json.dumps(value, sort_keys=True))


# ---- blows -----------------------------------------------------------------------------------------------------------


def kill(_connection: Any) -> None:
    """The process is gone, as after a power cut of its machine."""
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(_connection: Any) -> None:
    """The process stands still until somebody wakes it.

    By its very thread: otherwise another one takes the signal, and this one goes on for a moment.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def vanish_after(seconds: float | None) -> None:
    """The process is gone when this time has passed, wherever it is by then; None: it stays."""
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    elif signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.setitimer(signal.ITIMER_REAL, HANGS_AFTER)


LOCKER = (
    "import sqlite3, sys\n"
    "other = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
    "try: other.execute('BEGIN IMMEDIATE')\n"
    "finally: print(flush=True)\n"
    "sys.stdin.read()\n"
)


class Trouble:
    """A store that fails from one point on, and comes back when `mend` is called."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._locker: subprocess.Popen[bytes] | None = None
        self._full: sqlite3.Connection | None = None

    def cut(self, _connection: Any) -> None:
        """PostgreSQL ends every connection of this database."""
        with psycopg.connect(self._url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'signoff'"
            )

    def lock(self, _connection: Any) -> None:
        """Another process begins to write in the SQLite file and does not end; unless this one is at it already."""
        command = [sys.executable, "-ISc", LOCKER, self._url.removeprefix("sqlite:///")]
        self._locker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._locker.stdout is not None
        self._locker.stdout.readline()

    def fill(self, connection: Any) -> None:
        """The disk is full for this SQLite connection.

        Parallel nodes pass their points in any order: where a call has come in a statement's place nothing happens.
        """
        if connection is None:
            return
        self._full = connection
        connection.cursor(sqlite3.Cursor).execute("PRAGMA max_page_count=1")  # it means: as many as there are

    def mend(self) -> None:
        """All is well again."""
        if self._locker is not None:
            self._locker.communicate()
            self._locker = None
        if self._full is not None:
            self._full.cursor(sqlite3.Cursor).execute("PRAGMA max_page_count=1000000")
            self._full = None


def plan_of(given: Mapping[str, str], trouble: Trouble) -> dict[int, Blow]:
    """Blows by point, from their names."""
    blows: dict[str, Blow] = {
        "kill": kill,
        "freeze": freeze,
        "cut": trouble.cut,
        "lock": trouble.lock,
        "fill": trouble.fill,
    }
    return {int(point): blows[name] for point, name in given.items()}
