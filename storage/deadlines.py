"""Times that pass while people think: reminders, and the end of a run that nobody decided in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import sqlalchemy as sa
from sqlmodel import col, select

from graphs.engine.values import load
from storage import audit, inbox, roots
from storage.database import Database
from storage.drafts import all_of, store
from storage.endings import end_tree
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, from_micros

_REMINDABLE = prepare(
    "SELECT reminded, created_at, policy FROM approvals WHERE id = :id AND status = 'pending' "
    "AND remind_at <= :now AND (expires_at IS NULL OR expires_at > :now) FOR UPDATE"
)
_REMINDED = prepare(
    "UPDATE approvals SET reminded = :reminded, remind_at = :remind_at WHERE id = :id AND reminded = :seen"
)


# In words, because a parameter would not tell SQLite that its partial indexes hold every row that is asked for.
_PENDING = sa.text("approvals.status = 'pending'")
_OPEN = sa.text("approvals.status IN ('pending', 'approved')")


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder that this process, and no other, is to send; `stage` counts from 1, after the `last` none follows."""

    approval_id: str
    stage: int
    last: bool
    root: str

    @property
    def delivery(self) -> str:
        """The reminder's id in the inbox, where it stays until it was sent."""
        return f"remind:{self.approval_id}:{self.stage}"


def expire_due(database: Database, limit: int = 50) -> list[str]:
    """End every run that has an approval nobody settled in time; the roots that this call ended."""
    now = from_micros(database.now())
    late = select(ApprovalRow.root).where(
        _OPEN, _PENDING, ApprovalRow.kind != "effect", col(ApprovalRow.expires_at) <= now
    )
    with database.read() as session:
        found = session.exec(late.order_by(col(ApprovalRow.expires_at), col(ApprovalRow.root)).limit(limit)).all()
    return [root for root in dict.fromkeys(found) if database.write(root, lambda tx, root=root: expire(tx, root))]  # type: ignore[misc]


def expire(tx: Transaction, root: str) -> bool:
    """Expire what is late of one run and end it; False if somebody was faster."""
    run = roots.lock(tx, root)
    if run is None or run.ending:
        return False
    late = [
        asked
        for asked in all_of(tx, root)
        if asked.status == "pending" and asked.expires_at is not None and asked.expires_at <= tx.now
    ]
    for asked in late:
        store(tx, asked, replace(asked, status="expired", settled_at=tx.now))
        audit.append(tx, root, "expired", {"approval": asked.id, "version": asked.draft_version})
    return bool(late) and end_tree(tx, root, "expired")


def remind_due(database: Database, limit: int = 50) -> list[Reminder]:
    """Claim the reminders that are due, each for one process only; missed ones collapse into the latest."""
    now = from_micros(database.now())
    due = select(ApprovalRow.id, ApprovalRow.root).where(
        _PENDING,
        col(ApprovalRow.remind_at) <= now,
        sa.or_(col(ApprovalRow.expires_at).is_(None), col(ApprovalRow.expires_at) > now),
    )
    with database.read() as session:
        found = session.exec(due.order_by(col(ApprovalRow.remind_at)).limit(limit)).all()
    claimed = (database.write(root, lambda tx, i=i, root=root: remind(tx, i, root)) for i, root in found)  # type: ignore[misc]
    return [reminder for reminder in claimed if reminder]


def remind(tx: Transaction, approval_id: str, root: str) -> Reminder | None:
    """Claim one reminder; None if another process has it or it is no longer needed."""
    roots.lock(tx, root)
    row: Any = tx.run(_REMINDABLE, id=approval_id, now=tx.now).fetchone()
    if row is None:
        return None
    reminded, created, policy = row
    stage, next_at = next_stage(_gaps(policy), created, reminded, tx.now)
    if tx.run(_REMINDED, id=approval_id, seen=reminded, reminded=stage, remind_at=next_at).rowcount != 1:
        return None
    audit.append(tx, root, "reminded", {"approval": approval_id, "stage": stage})
    reminder = Reminder(approval_id, stage, next_at is None, root)
    # In the inbox it outlives this process: whoever finds it there sends it.
    inbox.receive(tx, reminder.delivery, "reminder", {"approval": approval_id, "stage": stage})
    return reminder


def next_stage(after: Sequence[int], shown: int, reminded: int, now: int) -> tuple[int, int | None]:
    """Which reminder is due now, and when the next one is: planned times that passed unseen count as one.

    The next keeps its distance from now when this one is late, otherwise people get two in a row.
    """
    stage = max([reminded + 1, *(n for n, wait in enumerate(after, 1) if shown + wait <= now)])
    if stage >= len(after):
        return min(stage, max(len(after), 1)), None
    planned = shown + after[stage - 1]
    return stage, max(planned, now) + after[stage] - after[stage - 1]


def _gaps(policy: str) -> list[int]:
    return cast(list[int], load(policy)["remind_after"])
