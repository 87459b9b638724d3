"""All waiting saves of a process are committed together, each of them to its own caller."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

import sqlalchemy as sa

from graphs.engine.errors import ClaimLost, StoreFailed
from storage.statements import Connection, Cursor, Prepared, Transaction, prepare
from storage.tables import RunRow

__all__ = ["Cursor", "Prepared", "Save", "TooSlow", "Transaction", "Unclear", "Work", "Writer", "fence", "prepare"]

T = TypeVar("T")
Work = Callable[[Transaction], T]
LARGEST_BATCH = 512
CROWD = 8  # saves in one batch that promise as many in the next
GATHER = 0.0002  # seconds between two looks at who has come
LAST_WORD = 30.0  # seconds to wait for the outcome of a save that could not be withdrawn


class TooSlow(StoreFailed):
    """The database did not get to a save in time; nothing was written."""


class Unclear(StoreFailed):
    """Whether a save was written is not known; reading the database tells."""


class Save(Generic[T]):
    """One caller's work on its way to the database, and its outcome; `key` is the root run it belongs to.

    A future reduced to two locks, because a busy process makes tens of thousands of them in a second.
    """

    __slots__ = ("_arrived", "_begun", "_error", "_result", "_taken", "key", "work")

    def __init__(self, key: str, work: Work[T]) -> None:
        self.key, self.work = key, work
        self._begun = False
        self._taken = threading.Lock()  # by whoever comes first: the transaction that begins it, or who withdraws it
        self._arrived = threading.Lock()
        self._arrived.acquire()
        self._result: T | None = None
        self._error: BaseException | None = None

    def begin(self) -> bool:
        """Whether its caller still wants it; from here on it cannot be withdrawn."""
        self._begun = self._begun or self._taken.acquire(blocking=False)
        return self._begun

    def cancel(self) -> bool:
        """Withdraw it; False if a transaction has begun it already."""
        if self._taken.acquire(blocking=False):
            self.fail(CancelledError("This save was withdrawn before anything was written."))
            return True
        return False

    def done(self) -> bool:
        """Whether its outcome is known."""
        return not self._arrived.locked()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the outcome, `timeout` seconds at most: raises what the work raised, or `TimeoutError`."""
        if not self._arrived.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"Nothing is known yet about a save of {self.key}.")
        self._arrived.release()
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def succeed(self, result: T) -> None:
        """Hand the result to whoever waits."""
        self._result = result
        self._arrived.release()

    def fail(self, error: BaseException) -> None:
        """Hand the error to whoever waits."""
        self._error = error
        self._arrived.release()


class Writer:
    """Takes works from any thread; each is run in a transaction, maybe more than once, and kept whole or not at all.

    One thread at a time has the *turn* and commits everything that waits. A caller who finds it free takes it itself,
    which saves a lone save two changes of thread; what has queued up meanwhile is left to the writer's own thread.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._queue: deque[Save[Any]] = deque()
        self._turn = threading.Lock()
        self._bell: SimpleQueue[bool] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._crowd = 0
        self._closed = False

    def submit(self, key: str, work: Work[T]) -> Save[T]:
        """Queue a work; its outcome is known once it is durable. Works of one key are committed in this order.

        Cancelling it withdraws a work that no transaction has begun yet. Raises `StoreFailed` after `close`.
        """
        save = self.enqueue(key, work)
        self._rouse()
        return save

    def run(self, key: str, work: Work[T], timeout: float | None = None) -> T:
        """Submit and wait, `timeout` seconds at most for its turn.

        Raises what the work raised, `StoreFailed`, `TooSlow` (nothing was written) or `Unclear`.
        """
        if timeout is None:
            return self.wait(self.enqueue(key, work))
        save = self.submit(key, work)
        try:
            return save.result(timeout)
        except TimeoutError as error:
            if save.done():  # the work itself raised it
                raise
            return _late(save, error)

    def enqueue(self, key: str, work: Work[T]) -> Save[T]:
        """Take a place in the queue; whoever does this goes on to `wait`."""
        if self._closed:
            raise StoreFailed("The database is closed; open it again to save.")
        save = Save(key, work)
        self._queue.append(save)
        return save

    def wait(self, save: Save[T]) -> T:
        """The outcome of what was queued, committed by this very thread if no other is at it."""
        if not save.done() and self._turn.acquire(blocking=False):
            try:
                self._commit_waiting()
            finally:
                self._turn.release()
            self._rouse()
        return save.result()

    def close(self) -> None:
        """Commit what is waiting, then refuse everything."""
        self._closed = True
        with self._turn:
            while self._queue:
                self._commit_waiting()
            self._batches.close()
        self._bell.put(False)
        if self._thread is not None:
            self._thread.join()

    def _rouse(self) -> None:
        """Leave what waits to the thread. Called after giving up the turn, so that nothing stays behind unseen."""
        if not self._queue:
            return
        if self._thread is None:
            with self._turn:
                self._thread = self._thread or self._start()
        self._bell.put(True)

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._work_off, name="signoff-writer", daemon=True)
        thread.start()
        return thread

    def _work_off(self) -> None:
        while self._bell.get():
            while self._queue:
                with self._turn:
                    self._commit_waiting()

    def _commit_waiting(self) -> None:
        if self._crowd >= CROWD:
            self._gather()
        batch: list[Save[Any]] = []
        while self._queue and len(batch) < LARGEST_BATCH:
            batch.append(self._queue.popleft())
        # By key, because transactions of several processes that lock runs in different orders would deadlock.
        batch.sort(key=attrgetter("key"))
        self._crowd = max(len(batch), self._crowd // 2)
        self._batches.commit(batch)

    def _gather(self) -> None:
        """Let the many callers of the last batch come back first, as long as they keep coming.

        Otherwise they come while this one commits, and every statement has to win the interpreter back from them.
        """
        before = -1
        while before < (waiting := len(self._queue)) < self._crowd:
            before = waiting
            time.sleep(GATHER)


def _late(save: Save[T], error: Exception) -> T:
    if save.cancel():
        raise TooSlow("The database is busy and did not get to this in time; nothing was written.") from error
    try:
        return save.result(LAST_WORD)
    except TimeoutError as still:
        if save.done():
            raise
        raise Unclear("The database has not answered; look there before trying again.") from still


class Batches:
    """Commits batches on a connection of its own, which it opens with `connect` and replaces when a server drops it.

    `clock` is a clock or None for the server's own; `explain` turns a vendor's error into ours.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        dialect: str,
        clock: Callable[[], int] | None,
        explain: Callable[[Exception], Exception],
    ) -> None:
        self._connect, self._dialect, self._clock, self._explain = connect, dialect, clock, explain
        self._begin = "BEGIN IMMEDIATE" if dialect == "sqlite" else "BEGIN"
        self._connection: Connection | None = None
        self._closed = False

    def commit(self, batch: Sequence[Save[Any]]) -> bool:
        """One transaction for all; if that fails, one for each. Says whether the database could be reached."""
        try:
            connection = self._open()
        except Exception as error:
            _fail(batch, self._explain(error))
            return False
        try:
            done = self._attempt(connection, batch)
        except Unclear as error:
            _fail(batch, error)
        except BaseException as error:
            if len(batch) > 1:
                return self._one_by_one(batch)
            _fail(batch, self._explain(error) if isinstance(error, Exception) else error)
        else:
            for save, result in done:
                save.succeed(result)
        return True

    def close(self) -> None:
        """Let go of the connection and refuse everything."""
        self._closed = True
        self._drop()

    def _one_by_one(self, batch: Sequence[Save[Any]]) -> bool:
        for place, save in enumerate(batch):
            if not self.commit([save]):
                # Otherwise everybody waits for everybody's time limit of connecting.
                _fail(batch[place + 1 :], StoreFailed("The database was lost before this was saved."))
                return False
        return True

    def _attempt(self, connection: Connection, batch: Sequence[Save[Any]]) -> list[tuple[Save[Any], Any]]:
        try:
            transaction = Transaction(connection, self._dialect, self._clock)
            done = [(save, save.work(transaction)) for save in batch if save.begin()]
            transaction.finish()
        except BaseException:
            self._roll_back(connection)
            raise
        self._keep(connection)
        return done

    def _open(self) -> Connection:
        """A connection with a transaction begun; a server's that died since the last batch is replaced."""
        if self._closed:
            raise StoreFailed("The database was closed before this was saved.")
        if self._connection is not None:
            try:
                self._connection.execute(self._begin)
                return self._connection
            except Exception:
                if self._dialect == "sqlite":
                    raise
                self._drop()
        self._connection = self._connect()
        self._connection.execute(self._begin)
        return self._connection

    def _keep(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except Exception as error:
            if not self._roll_back(connection):
                raise Unclear("The connection broke while saving; look at the database before trying again.") from error
            raise

    def _roll_back(self, connection: Connection) -> bool:
        """Whether the transaction is surely gone; a connection that cannot say so is dropped."""
        try:
            connection.rollback()
        except Exception:
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                return  # it was broken already


def _fail(batch: Sequence[Save[Any]], error: BaseException) -> None:
    for save in batch:
        if save.begin():
            save.fail(error)


_runs = cast(sa.Table, RunRow.__table__)  # type: ignore[attr-defined]
_FENCE = prepare(
    sa.update(_runs)
    .where(
        _runs.c.thread_id == sa.bindparam("thread"),
        _runs.c.rev == sa.bindparam("seen"),
        _runs.c.claim == sa.bindparam("owner"),
    )
    .values(rev=_runs.c.rev + 1)
)


def fence(tx: Transaction, thread_id: str, rev: int, claim: str) -> None:
    """What every save of a run begins with: raises `ClaimLost` for a late owner, and with that nothing is saved."""
    if tx.run(_FENCE, thread=thread_id, seen=rev, owner=claim).rowcount != 1:
        raise ClaimLost(f"{thread_id} has been taken over by somebody else; this save was refused.", thread_id)
