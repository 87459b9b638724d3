"""What happens to a whole tree of runs outside its steps: tried again, edited, cut short, forgotten."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from graphs.engine.checkpoint import Row
from graphs.engine.errors import EffectsPending, NotNow, RunEnded
from graphs.engine.values import dump
from storage import approvals, audit, loading, rows
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, CardRow, DecisionRow, ReleaseRow

_runs, _checkpoints, _writes, _effects = rows.runs, rows.checkpoints, rows.writes, rows.effects
_approvals = cast(sa.Table, ApprovalRow.__table__)  # type: ignore[attr-defined]
_decisions = cast(sa.Table, DecisionRow.__table__)  # type: ignore[attr-defined]
_releases = cast(sa.Table, ReleaseRow.__table__)  # type: ignore[attr-defined]
_cards = cast(sa.Table, CardRow.__table__)  # type: ignore[attr-defined]
_big = sa.BigInteger
_thread: Any = sa.bindparam("thread")
_root: Any = sa.bindparam("root_id")

_LOCK = prepare(
    sa.select(
        _runs.c.ending,
        _runs.c.error,
        _runs.c.ended_at,
        _runs.c.claim,
        _runs.c.lease_until,
        _runs.c.due_at,
        _runs.c.max_steps,
    )
    .where(_runs.c.thread_id == _thread)
    .with_for_update()
)
_END_CHILD = prepare(
    sa.update(_runs)
    .where(_runs.c.thread_id == _thread, _runs.c.ending == "")
    .values(
        ending=sa.bindparam("how"),
        error=sa.bindparam("why", type_=sa.Text),
        ended_at=sa.bindparam("moment", type_=_big),
    )
)
_REVIVE = prepare(
    sa.update(_runs)
    .where(_runs.c.root == _root, _runs.c.ending == "failed", _runs.c.ended_at == sa.bindparam("moment", type_=_big))
    .values(ending="", error=dump(""), ended_at=None)
)
_REOPEN = prepare(
    sa.update(_runs)
    .where(_runs.c.thread_id == _root)
    .values(
        rev=_runs.c.rev + 1,
        error=dump(""),
        due_at=sa.bindparam("moment", type_=_big),
        max_steps=sa.bindparam("steps", type_=sa.Integer),
    )
)
_TAKE_BACK = prepare(
    sa.update(_runs)
    .where(_runs.c.thread_id == _root)
    .values(
        rev=_runs.c.rev + 1,
        claim=None,
        lease_until=None,
        due_at=sa.case(
            (_runs.c.claim.is_not(None), sa.func.coalesce(_runs.c.due_at, sa.bindparam("moment", type_=_big))),
            else_=_runs.c.due_at,
        ),
    )
)
_MOVE = prepare(
    sa.update(rows.runs)
    .where(rows.runs.c.thread_id == sa.bindparam("thread"))
    .values(version=sa.bindparam("to_version"), fingerprint=sa.bindparam("structure"))
)
_UNSETTLED = prepare(
    sa.select(_effects.c.n).where(_effects.c.root == _root, _effects.c.status.in_(("sending", "unknown"))).limit(1)
)
_PRUNE = prepare(
    sa.delete(_checkpoints).where(
        _checkpoints.c.thread_id == _thread, _checkpoints.c.step < sa.bindparam("first", type_=sa.Integer)
    )
)
_tree = sa.select(_runs.c.thread_id).where(_runs.c.root == _root)
_asked = sa.select(_approvals.c.id).where(_approvals.c.root == _root)
_DELETE = tuple(
    prepare(statement)
    for statement in (
        sa.delete(_cards).where(sa.or_(_cards.c.subject.in_(_tree), _cards.c.subject.in_(_asked))),
        sa.delete(_decisions).where(_decisions.c.approval.in_(_asked)),
        sa.delete(_releases).where(_releases.c.root == _root),
        sa.delete(_approvals).where(_approvals.c.root == _root),
        sa.delete(_effects).where(_effects.c.root == _root),
        sa.delete(_writes).where(_writes.c.thread_id.in_(_tree)),
        sa.delete(_checkpoints).where(_checkpoints.c.thread_id.in_(_tree)),
        sa.delete(_runs).where(_runs.c.root == _root),
    )
)


def end_child(tx: Transaction, thread_id: str, ending: str, error: str) -> None:
    """End a child run alone; the caller has fenced its root."""
    tx.run(_END_CHILD, thread=thread_id, how=ending, why=dump(error), moment=tx.now)


def reopen(tx: Transaction, root: str, max_steps: int | None) -> None:
    """Make a failed or halted run due again, with what its very end had closed asked once more.

    Halted is a run without an ending that stopped with an error and that nothing will wake. Raises `RunEnded`.
    """
    ending, error, ended_at, claim, _, due_at, steps = _locked(tx, root)
    is_halted = not ending and error != dump("") and claim is None and due_at is None
    if ending != "failed" and not is_halted:
        raise RunEnded(f"The run cannot be tried again: {ending or 'it goes on'}.", root)
    if ending:
        tx.run(_REVIVE, root_id=root, moment=ended_at)
        approvals.reopen_cancelled(tx, root, ended_at)
    tx.run(_REOPEN, root_id=root, moment=tx.now, steps=max_steps or steps)
    audit.append(tx, root, "reopened", {"ending": ending, "max_steps": max_steps or steps})


def edit(tx: Transaction, root: str, row: Row) -> None:
    """Put an edited checkpoint on top of a run; raises `NotNow` while somebody advances it, or has meanwhile."""
    ending, _, _, claim, lease_until, _, _ = _locked(tx, root)
    if ending:
        raise RunEnded(f"The run has ended: {ending}.", row.thread_id)
    if claim is not None and lease_until > tx.now:
        raise NotNow("Somebody advances the run right now: try again when it has paused.", row.thread_id)
    if row.step != loading.head_of(tx, row.thread_id) + 1:
        raise NotNow("The run has moved on meanwhile: look again.", row.thread_id)
    tx.run(_TAKE_BACK, root_id=root, moment=tx.now)
    rows.insert_checkpoint(tx, row)
    audit.append(tx, root, "edited", {"run": row.thread_id, "step": row.step, "by": row.author}, content=row.body)


def move(tx: Transaction, root: str, version: int, fingerprint: str, row: Row) -> None:
    """A run goes on as another version of its flow, from the checkpoint given; whoever wakes next can claim it."""
    edit(tx, root, row)
    tx.run(_MOVE, thread=root, to_version=version, structure=fingerprint)
    audit.append(tx, root, "moved", {"version": version, "by": row.author})


def delete(tx: Transaction, root: str) -> None:
    """Forget a tree; its audit stays, which holds no texts. Raises `EffectsPending`."""
    _locked(tx, root)
    if tx.run(_UNSETTLED, root_id=root).fetchone() is not None:
        raise EffectsPending("Something of the run is being sent: delete it when that is settled.", root)
    for statement in _DELETE:
        tx.run(statement, root_id=root)
    audit.append(tx, root, "deleted", {})


def prune(tx: Transaction, thread_id: str) -> None:
    """Forget checkpoints before the last snapshot."""
    _locked(tx, rows.select_run(tx, thread_id).root)
    first = loading.snapshot_before(tx, thread_id, loading.head_of(tx, thread_id))
    tx.run(_PRUNE, thread=thread_id, first=first)


def _locked(tx: Transaction, root: str) -> Any:
    if (row := tx.run(_LOCK, thread=root).fetchone()) is None:
        raise rows.unknown(root)
    return row
