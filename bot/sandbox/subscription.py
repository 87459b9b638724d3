"""A bounded queue of changes for one listener, such as an open page."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from types import TracebackType

from bot.sandbox.records import Change

CAPACITY = 512


class Subscription:
    """The changes that concern one person, in order, from the moment it was opened until `close()`.

    A listener that falls behind by more than the capacity loses them all and gets one `reload` instead.
    """

    def __init__(self, person: str | None, forget: Callable[[Subscription], None], capacity: int = CAPACITY) -> None:
        self.person = person
        self._forget = forget
        self._queue: queue.Queue[Change | None] = queue.Queue(capacity)
        self.closed = False

    def offer(self, change: Change) -> None:
        """Take a change without ever blocking the one who made it."""
        if self.closed or not (self.person is None or change.concerns(self.person)):
            return
        try:
            self._queue.put_nowait(change)
        except queue.Full:
            self._clear()
            self._queue.put_nowait(Change(change.seq, "reload", ""))

    def get(self, timeout: float | None = None) -> Change | None:
        """The next change; None when none came within `timeout` seconds or the subscription is closed."""
        if self.closed and self._queue.empty():
            return None
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def __iter__(self) -> Iterator[Change]:
        while (change := self.get()) is not None:
            yield change

    def close(self) -> None:
        """Stop listening and wake whoever is waiting; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self._forget(self)
        if self._queue.full():
            self._clear()
        self._queue.put_nowait(None)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _clear(self) -> None:
        while not self._queue.empty():
            try:
                self._queue.get_nowait()
            except queue.Empty:
                return
