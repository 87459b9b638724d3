"""The root run's row as everybody meets it who does not advance it: locked before anything else, and woken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from storage.statements import Transaction, prepare

_LOCK = prepare("SELECT thread_id, ending, who, team, channel FROM runs WHERE thread_id = :root FOR UPDATE")
_LOWER = prepare(
    "UPDATE runs SET due_at = :at WHERE thread_id = :root AND ending = '' AND (due_at IS NULL OR due_at > :at)"
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
    tx.run(_LOWER, root=root, at=tx.now if at is None else at)
