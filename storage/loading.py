"""What the engine reads of runs, as its own values."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from graphs.engine.checkpoint import EffectRow, Interrupt, Loaded, Next, PendingWrite, Row, Spent
from graphs.engine.values import load
from storage.ledger import LOOK_AFTER
from storage.rows import checkpoints, effects, runs, select_run, writes
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow

_approvals = cast(sa.Table, ApprovalRow.__table__)  # type: ignore[attr-defined]
_thread: Any = sa.bindparam("thread")
_root: Any = sa.bindparam("root_id")
_first: Any = sa.bindparam("first", type_=sa.Integer)
_last: Any = sa.bindparam("last", type_=sa.Integer)

_columns = tuple(
    checkpoints.c[name] for name in ("thread_id", "step", "source", "next", "body", "is_full", "meta", "author", "at")
)
_ROWS = prepare(
    sa.select(*_columns)
    .where(checkpoints.c.thread_id == _thread, checkpoints.c.step.between(_first, _last))
    .order_by(checkpoints.c.step)
)
_full = checkpoints.alias("full")
_SINCE_SNAPSHOT = prepare(
    sa.select(*_columns)
    .where(
        checkpoints.c.thread_id == _thread,
        checkpoints.c.step
        >= sa.select(_full.c.step)
        .where(_full.c.thread_id == _thread, _full.c.is_full)
        .order_by(_full.c.step.desc())
        .limit(1)
        .scalar_subquery(),
    )
    .order_by(checkpoints.c.step)
)
_HEAD = prepare(sa.select(sa.func.max(checkpoints.c.step)).where(checkpoints.c.thread_id == _thread))
_SNAPSHOT = prepare(
    sa.select(checkpoints.c.step)
    .where(checkpoints.c.thread_id == _thread, checkpoints.c.is_full, checkpoints.c.step <= _last)
    .order_by(checkpoints.c.step.desc())
    .limit(1)
)
_NTH = prepare(
    sa.select(checkpoints.c.step)
    .where(checkpoints.c.thread_id == _thread, checkpoints.c.step <= _last)
    .order_by(checkpoints.c.step.desc())
    .limit(1)
    .offset(sa.bindparam("skip", type_=sa.Integer))
)
_LOWEST = prepare(sa.select(sa.func.min(checkpoints.c.step)).where(checkpoints.c.thread_id == _thread))
_WRITES = prepare(
    sa.select(writes.c.thread_id, writes.c.step, writes.c.task, writes.c.key, writes.c.value)
    .where(writes.c.thread_id == _thread, writes.c.step >= _first)
    .order_by(writes.c.at, writes.c.step, writes.c.task, writes.c.key)
)
_EFFECTS = prepare(
    sa.select(*(effects.c[name] for name in (
        "thread_id", "step", "n", "root", "kind", "address", "content", "payload", "into", "status", "receipt",
        "send_until",
    )))
    .where(effects.c.thread_id == _thread, effects.c.step == _last)
    .order_by(effects.c.n)
)  # fmt: skip
_is_open = sa.or_(
    _approvals.c.status == "pending",
    sa.and_(
        _approvals.c.status.in_(("approved", "final", "declined", "changes_requested", "answered")),
        sa.not_(_approvals.c.taken),
    ),
)
_OPEN = prepare(sa.select(_approvals.c.id).where(_approvals.c.root == _root, _approvals.c.kind != "effect", _is_open))
_ASKED = prepare(
    sa.select(*(_approvals.c[name] for name in (
        "id", "thread_id", "step", "task", "place", "kind", "ask", "path"
    )))
    .where(_approvals.c.root == _root, _approvals.c.kind != "effect", _approvals.c.status == "pending")
    .order_by(_approvals.c.created_at, _approvals.c.thread_id, _approvals.c.step, _approvals.c.task, _approvals.c.place)
)  # fmt: skip
_tree = runs.alias("tree")
_USED = prepare(
    sa.select(
        sa.select(sa.func.count())
        .select_from(checkpoints.join(_tree, checkpoints.c.thread_id == _tree.c.thread_id))
        .where(_tree.c.root == _root, checkpoints.c.source == "step")
        .scalar_subquery(),
        runs.c.calls,
        runs.c.input_tokens,
        runs.c.output_tokens,
    ).where(runs.c.thread_id == _root)
)


def load_run(tx: Transaction, thread_id: str) -> Loaded:
    """One run from its last snapshot on; raises `UnknownThread`."""
    run = select_run(tx, thread_id)
    rows = tuple(_read_row(*row) for row in tx.run(_SINCE_SNAPSHOT, thread=thread_id).fetchall())
    steps, *spent = cast(Any, tx.run(_USED, root_id=run.root).fetchone())
    return Loaded(
        run=run,
        rows=rows,
        writes=_pending(tx, rows[-1]),
        effects=effects_at(tx, thread_id, rows[-1].step),
        open=frozenset(row[0] for row in tx.run(_OPEN, root_id=run.root).fetchall()),
        steps=steps,
        spent=Spent(*spent),
    )


def head_of(tx: Transaction, thread_id: str) -> int:
    """A run's newest step."""
    return _one(tx.run(_HEAD, thread=thread_id))


def snapshot_before(tx: Transaction, thread_id: str, step: int) -> int:
    """The newest step up to `step` that is stored in full."""
    return _one(tx.run(_SNAPSHOT, thread=thread_id, last=step))


def rows_between(tx: Transaction, thread_id: str, first: int, last: int) -> tuple[Row, ...]:
    """Checkpoints, oldest first, both ends included."""
    found = tx.run(_ROWS, thread=thread_id, first=first, last=last).fetchall()
    return tuple(_read_row(*row) for row in found)


def past(tx: Transaction, thread_id: str, before: int | None, limit: int | None) -> tuple[Row, ...]:
    """The newest `limit` checkpoints before a step and what they are made of, newest first; raises `UnknownThread`."""
    select_run(tx, thread_id)
    last = head_of(tx, thread_id) if before is None else before - 1
    nth = _first_of(tx.run(_NTH, thread=thread_id, last=last, skip=max(limit - 1, 0))) if limit is not None else None
    oldest = nth if nth is not None else _one(tx.run(_LOWEST, thread=thread_id))
    if oldest > last:
        return ()
    return rows_between(tx, thread_id, snapshot_before(tx, thread_id, oldest), last)[::-1]


def effects_at(tx: Transaction, thread_id: str, step: int) -> tuple[EffectRow, ...]:
    """The effects committed with one checkpoint, in order."""
    return tuple(_read_effect(*row) for row in tx.run(_EFFECTS, thread=thread_id, last=step).fetchall())


def asked_of(tx: Transaction, root: str) -> tuple[Interrupt, ...]:
    """What a root run and its children ask, oldest first."""
    found = tx.run(_ASKED, root_id=root).fetchall()
    return tuple(_read_interrupt(*row) for row in found)


def _pending(tx: Transaction, head: Row) -> tuple[PendingWrite, ...]:
    """What the tasks of the head's superstep have done so far; what older ones did is in the checkpoints."""
    after = Next.from_text(head.next)
    first = min((task.since for task in (*after.tasks, *after.after)), default=head.step)
    return tuple(
        PendingWrite(*row) for row in tx.run(_WRITES, thread=head.thread_id, first=min(first, head.step)).fetchall()
    )


def _read_row(thread: str, step: int, source: Any, after: str, body: str, full: Any, *rest: Any) -> Row:
    meta, author, at = rest
    return Row(thread, step, source, after, body, bool(full), meta, author, at)


def _read_interrupt(*row: Any) -> Interrupt:
    ident, thread, step, task, place, asks, ask, path = row
    return Interrupt(ident, thread, step, task, place, asks, load(ask), tuple(load(path)))


def _read_effect(*row: Any) -> EffectRow:
    thread, step, n, root, kind, address, content, payload, into, status, receipt, until = row
    proof = "" if receipt in (None, "null") else receipt
    look_at = until + LOOK_AFTER if status == "sending" and until is not None else 0
    return EffectRow(thread, step, n, root, kind, address, load(content), payload, into, status, proof, look_at)


def _first_of(cursor: Any) -> int | None:
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def _one(cursor: Any) -> int:
    return int(cursor.fetchone()[0])
