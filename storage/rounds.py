"""Works of one batch in rounds: a statement of each, and one way to the server and back for all of them.

On PostgreSQL the way there and back costs more than most statements. Works are plain functions that wait for each of
their statements; here each runs on a greenlet of its own, which is put aside while it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

from storage.statements import Cursor, Prepared, Transaction

T = TypeVar("T")
Job = Callable[[Transaction], T]


def in_rounds(tx: Transaction, jobs: Sequence[Job[T]]) -> list[T]:
    """What jobs return, run in one transaction: each round sends their next statements, in the order of the jobs.

    Raises what the first job to fail raised; the others are then given up.
    """
    workers, results = [greenlet(job) for job in jobs], dict[int, T]()
    waiting: list[tuple[int, Any]] = [(place, TurnTaking(tx)) for place in range(len(jobs))]
    try:
        while waiting:
            asked: list[tuple[int, Any]] = []
            for place, answer in waiting:
                told = workers[place].switch(answer)
                if workers[place].dead:
                    results[place] = told
                else:
                    asked.append((place, told))
            waiting = _ask(tx, asked)
    finally:
        for worker in workers:
            if not worker.dead:
                worker.throw()
    return [results[place] for place in range(len(jobs))]


def _ask(tx: Transaction, asked: Sequence[tuple[int, Any]]) -> list[tuple[int, Cursor]]:
    if not asked:
        return []
    with tx.connection.pipeline():
        return [(place, tx.connection.execute(*statement)) for place, statement in asked]


class TurnTaking(Transaction):
    """A transaction whose statements wait for the next round; times and what is kept for last are `whole`'s."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Transaction) -> None:
        self._whole = whole
        self.dialect = whole.dialect

    @property
    def now(self) -> int:
        """See `Transaction.now`."""
        return self._whole.now

    @property
    def set_now(self) -> int | None:
        """See `Transaction.set_now`."""
        return self._whole.set_now

    @property
    def connection(self) -> Any:
        """See `Transaction.connection`."""
        return self._whole.connection

    def run_last(self, order: str, prepared: Prepared, **params: Any) -> None:
        """See `Transaction.run_last`."""
        self._whole.run_last(order, prepared, **params)

    def _execute(self, text: str, parameters: Any) -> Cursor:
        return cast(Cursor, getcurrent().parent.switch((text, parameters)))
