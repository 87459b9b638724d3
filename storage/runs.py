"""Runs as people and the dispatcher see them: started, due, stuck, shown, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select

from graphs.engine.checkpoint import Row, RunRecord
from graphs.engine.errors import RunEnded, ThreadExists, UnknownVersion
from storage import audit, inbox, roots, rows
from storage.database import Database
from storage.endings import end_tree
from storage.statements import Transaction
from storage.tables import ApprovalRow, RunRow, UsageRow, from_micros, to_micros

Known = Mapping[tuple[str, int], str]
STUCK_AFTER = 300_000_000  # microseconds a run may be due before it counts as stuck


def start(
    tx: Transaction, run: RunRecord, row: Row, delivery: str | None = None, *, due: bool = True, owner: str = ""
) -> bool:
    """A new root run with its first checkpoint, and the delivery that asked for it done; raises `ThreadExists`.

    It is due at once if `due`, or claimed by `owner` if there is one. False, and nothing started, if somebody has dealt
    with that delivery already.
    """
    if delivery is not None and not inbox.done(tx, delivery):
        return False
    if not rows.insert_run(tx, run, due=due and not owner, owner=owner):
        raise ThreadExists(f"There is a run {run.thread_id} already.", run.thread_id)
    rows.insert_checkpoint(tx, row)
    audit.begin(tx, run.thread_id, "started", {"flow": run.flow, "version": run.version, "by": run.who})
    return True


def wake(tx: Transaction, root: str) -> None:
    """Make a run due now; one that is due earlier stays so."""
    roots.lower_due(tx, root)


def cancel(database: Database, thread_id: str, by: str, timeout: float | None = None) -> None:
    """End a root run and everything under it; raises `UnknownThread` or `RunEnded`."""
    database.write(thread_id, lambda tx: _cancel(tx, thread_id, by), timeout)


def due(database: Database, limit: int, known: Known) -> list[str]:
    """Root runs that may be claimed now by a process with these flow versions, the longest due first."""
    now = from_micros(database.now())
    query = select(RunRow.thread_id).where(_claimable(now), _is_known(known)).order_by(_waiting_since()).limit(limit)
    with database.read() as session:
        return list(session.exec(query))


def stuck(database: Database, known: Known, older_than: int = STUCK_AFTER, limit: int = 100) -> Sequence[RunRow]:
    """Runs that have been claimable for `older_than` microseconds and that no process like this one can take."""
    then = from_micros(database.now() - older_than)
    query = select(RunRow).where(_claimable(then), sa.not_(_is_known(known))).order_by(_waiting_since()).limit(limit)
    with database.read() as session:
        return session.exec(query).all()


def status_of(run: RunRow, approvals: Sequence[ApprovalRow], known: Known, now: int) -> str:
    """How a run is shown: its ending, or failed, stuck, waiting, sleeping, running or queued; `now` in microseconds."""
    if run.ending:
        return run.ending
    waits_since = run.lease_until if run.claim is not None else run.due_at
    overdue = now - to_micros(waits_since) if waits_since is not None else -1
    if run.error and run.claim is None and run.due_at is None:
        return "failed"
    if overdue >= STUCK_AFTER and known.get((run.flow, run.version)) != run.fingerprint:
        return "stuck"
    if any(approval.status == "pending" for approval in approvals) and (run.claim is None and overdue < 0):
        return "waiting"
    if run.claim is not None and overdue < 0:
        return "running"
    return "queued" if overdue >= 0 else "sleeping"


def find(database: Database, thread_id: str) -> RunRow | None:
    """One run, or None."""
    with database.read() as session:
        return session.get(RunRow, thread_id)


def recent(database: Database, limit: int = 20, who: str | None = None) -> Sequence[RunRow]:
    """Root runs, the newest first, of one person if given."""
    query = select(RunRow).where(RunRow.root == RunRow.thread_id)
    if who is not None:
        query = query.where(RunRow.who == who)
    newest = (col(RunRow.created_at).desc(), col(RunRow.thread_id))
    with database.read() as session:
        return session.exec(query.order_by(*newest).limit(limit)).all()


def usage(database: Database, day: str, who: str | None = None) -> tuple[int, int]:
    """Model calls and tokens of a UTC day (ISO date), of everybody or of one person."""
    tokens = sa.func.sum(UsageRow.input_tokens + UsageRow.output_tokens)
    query = sa.select(sa.func.sum(UsageRow.calls), tokens).where(col(UsageRow.day) == day)
    if who is not None:
        query = query.where(col(UsageRow.who) == who)
    with database.read() as session:
        calls, spent = session.connection().execute(query).one()
        return int(calls or 0), int(spent or 0)


def unknown_version(flow: str, version: int, fingerprint: str, thread_id: str) -> UnknownVersion:
    """What to raise, or say, about a run whose structure this process does not have."""
    return UnknownVersion(
        f"{flow} v{version} with structure {fingerprint} is not in this process: deploy the version the run was "
        "started with beside the new one.",
        thread_id,
    )


def _cancel(tx: Transaction, thread_id: str, by: str) -> None:
    if not end_tree(tx, thread_id, "cancelled", by=by):
        run = rows.select_run(tx, thread_id)
        raise RunEnded(f"The run has ended: {run.ending}.", thread_id)


def _claimable(moment: Any) -> Any:
    free = sa.and_(col(RunRow.claim).is_(None), col(RunRow.due_at) <= moment)
    lapsed = sa.and_(col(RunRow.claim).is_not(None), col(RunRow.lease_until) <= moment)
    return sa.and_(col(RunRow.root) == col(RunRow.thread_id), col(RunRow.ending) == "", sa.or_(free, lapsed))


def _is_known(known: Known) -> Any:
    is_one = (
        sa.and_(col(RunRow.flow) == flow, col(RunRow.version) == version, col(RunRow.fingerprint) == fingerprint)
        for (flow, version), fingerprint in known.items()
    )
    return sa.or_(sa.false(), *is_one)


def _waiting_since() -> Any:
    return sa.func.coalesce(RunRow.due_at, RunRow.lease_until)
