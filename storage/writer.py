"""All waiting saves of a process are committed together, each of them to its own caller."""

from __future__ import annotations

import threading
import time
from collections import deque
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, TypeVar

from graphs.engine.errors import StoreFailed
from storage.batches import Batches, Unclear
from storage.saves import Save, Work

T = TypeVar("T")
LARGEST_BATCH = 512
CROWD = 8  # saves in one batch that promise as many in the next
GATHER = 0.0002  # seconds between two looks at who has come
LAST_WORD = 30.0  # seconds to wait for the outcome of a save that could not be withdrawn


class TooSlow(StoreFailed):
    """The database did not get to a save in time; nothing was written."""


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
        self._settled: deque[Save[Any]] = deque()
        self._closed = False

    def submit(self, key: str, work: Work[T], apart: bool = False) -> Save[T]:
        """Queue a work; its outcome is known once it is durable. Works of one key are committed in this order.

        A work is `apart` if it touches nothing but its own run: then it may take turns with those of other runs.
        Cancelling it withdraws a work that no transaction has begun yet. Raises `StoreFailed` after `close`.
        """
        save = self.enqueue(key, work, apart)
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

    def enqueue(self, key: str, work: Work[T], apart: bool = False) -> Save[T]:
        """Take a place in the queue, as `submit` does; whoever does this goes on to `wait`."""
        if self._closed:
            raise StoreFailed("The database is closed; open it again to save.")
        save = Save(key, work, apart)
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
        return self._relayed(save)

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
        if len(batch) > 1:
            batch.sort(key=attrgetter("key"))
        self._crowd = max(len(batch), self._crowd // 2)
        self._batches.commit(batch)
        self._settled.extend(save for save in batch if save.begun)
        self._wake_next()
        self._batches.look_ahead()

    def _gather(self) -> None:
        """Let the many callers of the last batch come back first, as long as they keep coming.

        Otherwise they come while this one commits, and every statement has to win the interpreter back from them.
        """
        before = -1
        while self._settled or before < len(self._queue) < self._crowd:
            if before == len(self._queue):
                self._wake_next()
            before = len(self._queue)
            time.sleep(GATHER * (1 + len(self._settled) // 8))

    def _relayed(self, save: Save[T]) -> T:
        """The outcome, with the next caller woken before this one goes on.

        Woken all at once they would fight for the interpreter, and most of the time would go into that.
        """
        save.relays = True
        try:
            return save.result()
        except BaseException:
            save.relays = False
            raise
        finally:
            self._wake_next()

    def _wake_next(self) -> None:
        """Wake callers, up to one who will wake the next."""
        while self._settled:
            try:
                save = self._settled.popleft()
            except IndexError:  # another thread was faster
                return
            save.wake()
            if save.relays:
                return


def _late(save: Save[T], error: Exception) -> T:
    if save.cancel():
        raise TooSlow("The database is busy and did not get to this in time; nothing was written.") from error
    try:
        return save.result(LAST_WORD)
    except TimeoutError as still:
        if save.done():
            raise
        raise Unclear("The database has not answered; look there before trying again.") from still
