"""Batches of saves, each batch one transaction on the writer's own connection."""

from __future__ import annotations

import select
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, cast

from graphs.engine.errors import StoreFailed
from storage.rounds import in_rounds
from storage.saves import Joint, Save
from storage.statements import Connection, Transaction
from storage.wal import make_room

MANY = 16  # commits after which a process is likely to go on saving
BROKEN = "The connection broke while saving; look at the database before trying again."


class Unclear(StoreFailed):
    """Whether a save was written is not known; reading the database tells."""


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
        self._commits = 0
        self._is_roomy = dialect != "sqlite"
        self._closed = False

    def commit(self, batch: Sequence[Save[Any]]) -> bool:
        """One transaction for all; if that fails, one for each. Says whether the database could be reached.

        Whoever calls this wakes the callers: all that were begun are settled when it returns.
        """
        try:
            is_alone = self._is_transaction(batch)
            connection = self._open(begin=not is_alone)
        except Exception as error:
            _fail(batch, self._explain(error))
            return False
        try:
            done = self._attempt(connection, batch, is_alone)
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

    def _is_transaction(self, batch: Sequence[Save[Any]]) -> bool:
        """Whether a batch is a single statement, which the server commits by itself: one way there and back, not three.

        Not on a connection that has something to say: that is the server hanging up, and who sends a statement then
        cannot know what became of it.
        """
        if self._dialect == "sqlite" or len(batch) > 1 or not getattr(batch[0].work, "is_one_statement", False):
            return False
        return self._connection is not None and _is_quiet(self._connection)

    def look_ahead(self) -> None:
        """Between two batches: give the log its room, once a process is sure to go on saving."""
        if self._is_roomy or self._commits < MANY or self._connection is None:
            return
        self._is_roomy = True
        try:
            make_room(cast(sqlite3.Connection, self._connection))
        except sqlite3.Error:  # who knows what state it is in
            self._drop()

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

    def _attempt(
        self, connection: Connection, batch: Sequence[Save[Any]], is_alone: bool
    ) -> list[tuple[Save[Any], Any]]:
        done: list[tuple[Save[Any], Any]] = []
        try:
            transaction = Transaction(connection, self._dialect, self._clock)
            begun = [save for save in batch if save.begin()]
            if len(begun) == 1:
                done.append((begun[0], begun[0].work(transaction)))
            else:
                done += self._do_all(transaction, begun)
            transaction.finish()
        except BaseException as error:
            if not self._roll_back(connection) and is_alone:
                raise Unclear(BROKEN) from error
            raise
        if not is_alone:
            self._keep(connection)
        return done

    def _do_all(self, transaction: Transaction, saves: Sequence[Save[Any]]) -> Iterator[tuple[Save[Any], Any]]:
        for part in _parts(saves):
            crowds = list(_crowds(part))
            jobs = [partial(_do, crowd) for crowd in crowds]
            if self._dialect == "sqlite" or len(jobs) == 1:
                results = [job(transaction) for job in jobs]
            else:
                results = in_rounds(transaction, jobs)
            yield from zip(chain.from_iterable(crowds), chain.from_iterable(results), strict=True)

    def _open(self, begin: bool) -> Connection:
        """A connection, with a transaction begun if wanted; a server's that died since the last batch is replaced."""
        if self._closed:
            raise StoreFailed("The database was closed before this was saved.")
        if self._connection is not None:
            if not begin:
                return self._connection
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
                raise Unclear(BROKEN) from error
            raise
        self._commits += 1

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


def _parts(saves: Sequence[Save[Any]]) -> Iterator[list[Save[Any]]]:
    """Neighbours that have nothing to do with one another; whatever else by itself.

    Only neighbours, because runs are locked in the order of the batch.
    """
    part: list[Save[Any]] = []
    for save in saves:
        if part and not (save.apart and part[-1].apart and save.key != part[-1].key):
            yield part
            part = []
        part.append(save)
    if part:
        yield part


def _crowds(saves: Sequence[Save[Any]]) -> Iterator[list[Save[Any]]]:
    """Of those, neighbours of one kind that can be done together; whatever else by itself."""
    for kind, crowd in groupby(saves, key=lambda save: type(save.work)):
        if hasattr(kind, "together"):
            yield list(crowd)
        else:
            yield from ([save] for save in crowd)


def _do(crowd: Sequence[Save[Any]], transaction: Transaction) -> Sequence[Any]:
    first, *others = (save.work for save in crowd)
    return cast(Joint, first).together(transaction, others) if others else [first(transaction)]


def _is_quiet(connection: Any) -> bool:
    poll = select.poll()
    try:
        poll.register(connection.fileno(), select.POLLIN)
    except Exception:  # it is closed already
        return False
    return not poll.poll(0)
