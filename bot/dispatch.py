"""Who advances a run: whoever claims it first. Here the runs table is the queue and our own threads work it off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import structlog

from graphs.engine import Runner, Snapshot
from graphs.engine.errors import ClaimLost, EngineError, NotNow, RunEnded, StoreFailed, UnknownVersion
from graphs.engine.events import Event
from storage import runs
from storage.database import Database

log = structlog.get_logger(__name__)
POLL = 1.0  # seconds between two looks at the table when nobody has nudged


class Executor(Protocol):
    """Where runs that are due get advanced. `after_commit` is only a hint: it may be lost."""

    def enqueue(self, connection: Any, thread_id: str) -> None:
        """Called inside the transaction that makes the run due."""
        ...

    def after_commit(self, thread_id: str) -> None:
        """Called after it."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class EmbeddedExecutor:
    """Threads of this process that claim due runs.

    `after` is called with a root's thread id whenever it has moved, `emit` with what happens on the way.
    """

    def __init__(
        self,
        database: Database,
        runner: Runner,
        threads: int,
        after: Callable[[str], None] = lambda _thread_id: None,
        emit: Callable[[Event], None] | None = None,
    ) -> None:
        self._database = database
        self._runner = runner
        self._free = threading.Semaphore(threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="run")
        self._after = after
        self._emit = emit
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="dispatch", daemon=True)

    def enqueue(self, connection: Any, thread_id: str) -> None:
        """The row is the queue: the transaction that makes a run due has enqueued it."""

    def after_commit(self, thread_id: str) -> None:
        """Look at the table now."""
        self._wake.set()

    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def stop(self) -> None:
        """Let every run stop at its next checkpoint, and wait for that."""
        self._runner.drain()
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(POLL)
            self._wake.clear()
            try:
                self._hand_out()
            except EngineError as error:
                log.warning("cannot look for due runs", error=str(error))
                self._stopping.wait(POLL)

    def _hand_out(self) -> None:
        for thread_id in runs.due(self._database, limit=50, known=self._runner.known):
            with self._lock:
                if thread_id in self._busy:
                    continue
                self._busy.add(thread_id)
            self._free.acquire()
            if self._stopping.is_set():
                return
            self._pool.submit(self._work, thread_id)

    def _work(self, thread_id: str) -> None:
        try:
            advance(self._runner, thread_id, self._emit)
        finally:
            with self._lock:
                self._busy.discard(thread_id)
            self._free.release()
            self._after(thread_id)
            self._wake.set()


def advance(runner: Runner, thread_id: str, emit: Callable[[Event], None] | None = None) -> Snapshot | None:
    """Advance one run as far as it goes; None if that is not ours to do, or it failed (which the run then says)."""
    try:
        return runner.advance(thread_id, emit)
    except (NotNow, RunEnded, ClaimLost, UnknownVersion) as error:
        log.info("run not advanced", thread_id=thread_id, why=str(error))
    except StoreFailed as error:
        log.warning("run stopped: the store failed", thread_id=thread_id, error=str(error))
    except Exception as error:
        log.warning("run failed", thread_id=thread_id, error=type(error).__name__, exc_info=error)
    return None
