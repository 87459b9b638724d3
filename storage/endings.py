"""Every end of a run, whatever the reason: the whole tree ended, nothing of it left to decide or to send."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from graphs.engine.values import dump, load
from storage import audit, roots
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, EffectLedgerRow

_runs = roots.runs
_approvals = cast(sa.Table, ApprovalRow.__table__)  # type: ignore[attr-defined]
_effects = cast(sa.Table, EffectLedgerRow.__table__)  # type: ignore[attr-defined]
_root: sa.BindParameter[str] = sa.bindparam("root_id")

_END = prepare(
    sa.update(_runs)
    .where(_runs.c.root == _root, _runs.c.ending == "")
    .values(
        ending=sa.bindparam("how"),
        error=sa.case((_runs.c.thread_id == _root, sa.bindparam("why", type_=sa.Text)), else_=_runs.c.error),
        ended_at=sa.bindparam("moment", type_=sa.BigInteger),
        due_at=None,
        claim=None,
        lease_until=None,
    )
)
_open = (
    _approvals.c.root == _root,
    sa.or_(_approvals.c.status == "pending", _approvals.c.status == "approved"),
    _approvals.c.kind != "effect",
)
_OPEN = prepare(sa.select(_approvals.c.id).where(*_open).order_by(_approvals.c.id))
_CLOSE = prepare(
    sa.update(_approvals)
    .where(*_open)
    .values(
        status=sa.bindparam("how"),
        settled_at=sa.bindparam("moment", type_=sa.BigInteger),
        undo_until=None,
        rev=_approvals.c.rev + 1,
    )
)
_DOUBTS = prepare(
    sa.select(_approvals.c.id, _approvals.c.ask).where(
        _approvals.c.root == _root, _approvals.c.kind == "effect", _approvals.c.status == "pending"
    )
)
_NARROW = prepare(
    sa.update(_approvals)
    .where(_approvals.c.id == sa.bindparam("approval"))
    .values(ask=sa.bindparam("narrowed", type_=sa.Text), rev=_approvals.c.rev + 1)
)
_UNSETTLED = prepare(
    sa.select(_effects.c.thread_id, _effects.c.step, _effects.c.n, _effects.c.status)
    .where(_effects.c.root == _root, _effects.c.status.in_(("pending", "sending", "unknown")))
    .order_by(_effects.c.thread_id, _effects.c.step, _effects.c.n)
)
_CANCEL = prepare(
    sa.update(_effects).where(_effects.c.root == _root, _effects.c.status == "pending").values(status="cancelled")
)


def end_tree(tx: Transaction, root: str, ending: str, error: str = "", by: str = "") -> bool:
    """End a run and its children; False if it had ended or never was.

    The claim is taken from its owner, `due_at` emptied, approvals pending or approved and pending effects are
    cancelled. What is being sent keeps its outcome, and a question about a lost answer stays open.
    """
    run = roots.lock(tx, root)
    if run is None or run.ending:
        return False
    tx.run(_END, root_id=root, how=ending, why=dump(error), moment=tx.now)
    closed = close_open(tx, root)
    _narrow_doubts(tx, root)
    effects: list[Any] = tx.run(_UNSETTLED, root_id=root).fetchall()
    tx.run(_CANCEL, root_id=root)
    by_status = {
        name: [f"{thread}:{step}:{n}" for thread, step, n, status in effects if status == was]
        for name, was in (("cancelled", "pending"), ("sending", "sending"), ("unknown", "unknown"))
    }
    data = {"ending": ending, "by": by, "approvals": closed, **by_status}
    audit.append(tx, root, "ended", data, content=error)  # type: ignore[arg-type]
    return True


def close_open(tx: Transaction, root: str, status: str = "cancelled") -> list[str]:
    """Close everything people are still asked about a run; the ids of what was closed."""
    ids = [row[0] for row in tx.run(_OPEN, root_id=root).fetchall()]
    if ids:
        tx.run(_CLOSE, root_id=root, how=status, moment=tx.now)
    return ids


def _narrow_doubts(tx: Transaction, root: str) -> None:
    """Take *Send again* off the open questions about lost answers: a run that has ended sends nothing more."""
    for approval, text in tx.run(_DOUBTS, root_id=root).fetchall():
        ask = load(text)
        ask["choices"] = [choice for choice in ask["choices"] if choice["value"] != "again"]
        tx.run(_NARROW, approval=approval, narrowed=dump(ask))
