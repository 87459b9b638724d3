"""The fence that every save of a run begins with, and the save that nearly every step is: a checkpoint and no more.

Such steps of many runs are saved together in two statements, on PostgreSQL in one, which alone needs no transaction
around it: what a step costs is then the commit and not the way there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from graphs.engine.checkpoint import Row
from graphs.engine.errors import ClaimLost
from storage import rows
from storage.statements import Transaction, prepare

LARGEST = 64  # steps in one of SQLite's statements; its smallest builds take 999 parameters

_FENCE = prepare(
    "UPDATE runs SET rev = rev + 1, steps = steps + :steps WHERE thread_id = :root AND rev = :rev AND claim = :owner"
)
_CLAIM = ("root", "rev", "owner", "steps")
_NAMES = ("thread_id", "step", "source", "next", "body", "is_full", "meta", "author")
_COLUMNS = ", ".join((*_NAMES, "at"))
_NOW = (
    "now AS (SELECT coalesce(CAST(:now AS bigint),"
    " CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)) AS at)"
)
_LONE = prepare(
    f"WITH {_NOW}, fenced AS ("
    "  UPDATE runs SET rev = rev + 1, steps = steps + :steps"
    "  WHERE thread_id = :root AND rev = :rev AND claim = :owner RETURNING 1"
    ") "
    f"INSERT INTO checkpoints ({_COLUMNS}) "
    "SELECT CAST(:thread_id AS text), CAST(:step AS int), CAST(:source AS text), CAST(:next AS text),"
    " CAST(:body AS text), CAST(:is_full AS bool), CAST(:meta AS text), CAST(:author AS text),"
    " at FROM fenced, now RETURNING at"
)
# Locked in the order of the keys, as whatever else locks runs does: otherwise two batches wait for one another.
_MANY = prepare(
    f"WITH {_NOW}, given AS ("
    "  SELECT * FROM unnest(CAST(:root AS text[]), CAST(:rev AS bigint[]), CAST(:owner AS text[]),"
    "    CAST(:steps AS int[]),"
    "    CAST(:thread_id AS text[]), CAST(:step AS int[]), CAST(:source AS text[]), CAST(:next AS text[]),"
    "    CAST(:body AS text[]), CAST(:is_full AS bool[]), CAST(:meta AS text[]), CAST(:author AS text[]))"
    "  AS given (root, rev, owner, steps, thread_id, step, source, next, body, is_full, meta, author)"
    "), held AS ("
    "  SELECT runs.thread_id, given.steps FROM runs JOIN given"
    "    ON runs.thread_id = given.root AND runs.rev = given.rev AND runs.claim = given.owner"
    '  ORDER BY runs.thread_id COLLATE "C" FOR UPDATE OF runs'
    "), fenced AS ("
    "  UPDATE runs SET rev = runs.rev + 1, steps = runs.steps + held.steps FROM held"
    "  WHERE runs.thread_id = held.thread_id RETURNING runs.thread_id"
    ") "
    f"INSERT INTO checkpoints ({_COLUMNS}) "
    "SELECT given.thread_id, step, source, next, body, is_full, meta, author,"
    " at FROM given JOIN fenced ON fenced.thread_id = given.root CROSS JOIN now RETURNING at"
)


def fence(tx: Transaction, root: str, rev: int, owner: str, steps: int = 0) -> None:
    """What every save of a run begins with: raises `ClaimLost` for a late owner, and with that nothing is saved.

    `steps` is how many supersteps are saved with it.
    """
    if tx.run(_FENCE, root=root, rev=rev, owner=owner, steps=steps).rowcount != 1:
        raise lost(root)


def lost(root: str) -> ClaimLost:
    """What to raise where a claim holds no more."""
    return ClaimLost(f"{root} has been taken over by somebody else; this save was refused.", root)


class Step:
    """A checkpoint, saved under the claim `owner` of a root run at its `rev`."""

    __slots__ = ("owner", "rev", "root", "row")
    is_one_statement = True  # where it is alone on PostgreSQL

    def __init__(self, root: str, rev: int, owner: str, row: Row) -> None:
        self.root, self.rev, self.owner, self.row = root, rev, owner, row

    def __call__(self, tx: Transaction) -> int:
        """Save it by itself and say when, in microseconds; raises `ClaimLost`."""
        if tx.dialect == "sqlite":
            fence(tx, self.root, self.rev, self.owner, steps_of(self.row))
            rows.insert_checkpoint(tx, self.row)
            return tx.now
        claim = dict(zip(_CLAIM, _claim(self), strict=True))
        values = dict(zip(_NAMES, _values(self.row), strict=True))
        if (saved := tx.run(_LONE, **claim, **values, now=tx.set_now).fetchone()) is None:
            raise lost(self.root)
        return int(saved[0])

    def together(self, tx: Transaction, others: Sequence[Step]) -> list[int]:
        """Save it with those of other runs and say when; raises `ClaimLost` if one of them has lost its run."""
        steps = (self, *others)
        saved = _save_on_sqlite(tx, steps) if tx.dialect == "sqlite" else _save_on_postgres(tx, steps)
        if len(saved) != len(steps):
            raise lost("One of these runs")
        return saved


def steps_of(row: Row) -> int:
    """How many supersteps a checkpoint stands for: none if it is an edit or receipts."""
    return int(row.source == "step")


def _claim(step: Step) -> tuple[Any, ...]:
    return step.root, step.rev, step.owner, steps_of(step.row)


def _values(row: Row) -> tuple[Any, ...]:
    return row.thread_id, row.step, row.source, row.next, row.body, row.full, row.meta, row.author


def _save_on_postgres(tx: Transaction, steps: Sequence[Step]) -> list[int]:
    claims = zip(_CLAIM, zip(*map(_claim, steps), strict=True), strict=True)
    values = zip(_NAMES, zip(*(_values(step.row) for step in steps), strict=True), strict=True)
    lists = {name: list(found) for name, found in (*claims, *values)}
    return [at for (at,) in tx.run(_MANY, **lists, now=tx.set_now).fetchall()]


def _save_on_sqlite(tx: Transaction, steps: Sequence[Step]) -> list[int]:
    saved, now = 0, tx.now
    for part in _parts(steps):
        fence_all, insert_all = _texts(len(part))
        claims = [value for step in part for value in _claim(step)]
        saved += tx.connection.execute(fence_all, claims).rowcount
        tx.connection.execute(insert_all, [value for step in part for value in (*_values(step.row), now)])
    return [now] * saved


def _parts(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """In powers of two, so that SQLite compiles no more than seven texts of each kind."""
    place, size = 0, LARGEST
    while place < len(steps):
        while size > len(steps) - place:
            size //= 2
        yield steps[place : place + size]
        place += size


@cache
def _texts(size: int) -> tuple[str, str]:
    """SQLite's statements for so many steps: the fences, and the checkpoints."""
    claims, values = ", ".join(["(?, ?, ?, ?)"] * size), ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * size)
    return (
        f"UPDATE runs SET rev = rev + 1, steps = steps + given.column4 FROM (VALUES {claims}) AS given"
        " WHERE thread_id = given.column1 AND rev = given.column2 AND claim = given.column3",
        f"INSERT INTO checkpoints ({_COLUMNS}) VALUES {values}",
    )
