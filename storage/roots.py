"""The root run's row as everybody meets it who does not advance it: locked before anything else, and woken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa

from storage.statements import Transaction, prepare
from storage.tables import RunRow

runs = cast(sa.Table, RunRow.__table__)  # type: ignore[attr-defined]

_LOCK = prepare(
    sa.select(runs.c.thread_id, runs.c.ending, runs.c.who, runs.c.team, runs.c.channel)
    .where(runs.c.thread_id == sa.bindparam("root"))
    .with_for_update()
)
_LOWER = prepare(
    sa.update(runs)
    .where(
        runs.c.thread_id == sa.bindparam("root"),
        runs.c.ending == "",
        sa.or_(runs.c.due_at.is_(None), runs.c.due_at > sa.bindparam("moment", type_=sa.BigInteger)),
    )
    .values(due_at=sa.bindparam("moment", type_=sa.BigInteger))
)


@dataclass(frozen=True, slots=True)
class Root:
    """What decisions and the ledger must know of a root run; `ending` is "" while it goes on."""

    thread_id: str
    ending: str
    who: str
    team: str
    channel: str


def lock(tx: Transaction, root: str) -> Root | None:
    """The root's row, held until the transaction ends: every transaction about a run begins here.

    Otherwise two of them lock the same rows in opposite orders and PostgreSQL ends one. None if there is no such run.
    """
    row: Any = tx.run(_LOCK, root=root).fetchone()
    return Root(*row) if row else None


def lower_due(tx: Transaction, root: str, at: int | None = None) -> None:
    """Make a run that goes on due at `at` (microseconds, None for now); an earlier `due_at` stays."""
    tx.run(_LOWER, root=root, moment=tx.now if at is None else at)
