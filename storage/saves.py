"""One caller's work on its way to the database, and its outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any, Generic, Protocol, TypeVar, cast

from storage.statements import Transaction

T = TypeVar("T")
Work = Callable[[Transaction], T]


class Joint(Protocol):
    """A work that those of other runs can be done together with, in fewer statements; it may also be done alone."""

    def __call__(self, tx: Transaction, /) -> Any: ...

    def together(self, tx: Transaction, others: Sequence[Any], /) -> Sequence[Any]:
        """Do this work and `others`, each of another run, and give all results; raises if one cannot be done."""
        ...


class Save(Generic[T]):
    """A work of the root run `key`; its outcome is settled by whoever commits it, which then wakes its caller.

    A future reduced to two locks, because a busy process makes tens of thousands of them in a second.
    """

    __slots__ = ("_awake", "_begun", "_error", "_result", "_settled", "_taken", "apart", "key", "relays", "work")

    def __init__(self, key: str, work: Work[T], apart: bool = False) -> None:
        self.key, self.work = key, work
        self.apart = apart  # whether the work touches nothing but what belongs to its run
        self.relays = False  # whether its caller, once woken, wakes the next one
        self._begun = self._settled = False
        self._taken = threading.Lock()  # by whoever comes first: the transaction that begins it, or who withdraws it
        self._awake = threading.Lock()
        self._awake.acquire()
        self._result: T | None = None
        self._error: BaseException | None = None

    @property
    def begun(self) -> bool:
        """Whether a transaction has begun it."""
        return self._begun

    def begin(self) -> bool:
        """Whether its caller still wants it; from here on it cannot be withdrawn."""
        self._begun = self._begun or self._taken.acquire(blocking=False)
        return self._begun

    def cancel(self) -> bool:
        """Withdraw it; False if a transaction has begun it already."""
        if self._taken.acquire(blocking=False):
            self.fail(CancelledError("This save was withdrawn before anything was written."))
            self.wake()
            return True
        return False

    def done(self) -> bool:
        """Whether its outcome is known."""
        return self._settled

    def result(self, timeout: float | None = None) -> T:
        """Wait for the outcome, `timeout` seconds at most: raises what the work raised, or `TimeoutError`."""
        if not self._awake.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"Nothing is known yet about a save of {self.key}.")
        self._awake.release()
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def succeed(self, result: T) -> None:
        """Settle it with the work's result."""
        self._result = result
        self._settled = True

    def fail(self, error: BaseException) -> None:
        """Settle it with an error."""
        self._error = error
        self._settled = True

    def wake(self) -> None:
        """Let its caller go on: once, by whoever has settled the outcome."""
        self._awake.release()
