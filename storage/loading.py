"""What the engine reads of runs, as its own values."""

from __future__ import annotations

from typing import Any

from graphs.engine.checkpoint import EffectRow, Interrupt, Loaded, Next, PendingWrite, Row, Spent
from graphs.engine.values import load
from storage.ledger import LOOK_AFTER
from storage.rows import RECORD, read_run, select_run, unknown
from storage.statements import Transaction, prepare

_COLUMNS = "thread_id, step, source, next, body, is_full, meta, author, at"
_ROWS = prepare(
    f"SELECT {_COLUMNS} FROM checkpoints WHERE thread_id = :thread_id AND step BETWEEN :first AND :last ORDER BY step"
)
_SINCE_SNAPSHOT = prepare(
    f"SELECT {_COLUMNS} FROM checkpoints WHERE thread_id = :thread_id AND step >= ("
    "  SELECT step FROM checkpoints WHERE thread_id = :thread_id AND is_full ORDER BY step DESC LIMIT 1"
    ") ORDER BY step"
)
_HEAD = prepare("SELECT max(step) FROM checkpoints WHERE thread_id = :thread_id")
_SNAPSHOT = prepare(
    "SELECT step FROM checkpoints WHERE thread_id = :thread_id AND is_full AND step <= :last ORDER BY step DESC LIMIT 1"
)
_NTH = prepare(
    "SELECT step FROM checkpoints WHERE thread_id = :thread_id AND step <= :last ORDER BY step DESC"
    " LIMIT 1 OFFSET :skip"
)
_LOWEST = prepare("SELECT min(step) FROM checkpoints WHERE thread_id = :thread_id")
_WRITES = prepare(
    "SELECT thread_id, step, task, key, value FROM pending_writes WHERE thread_id = :thread_id AND step >= :first"
    " ORDER BY at, step, task, key"
)
_EFFECTS = prepare(
    'SELECT thread_id, step, n, root, kind, address, content, payload, "into", status, receipt, send_until'
    " FROM effects WHERE thread_id = :thread_id AND step = :step ORDER BY n"
)
_IS_OPEN = (
    "kind <> 'effect' AND (status = 'pending' OR (NOT taken AND"
    " status IN ('approved', 'final', 'declined', 'changes_requested', 'answered')))"
)
_OPEN = prepare(f"SELECT id FROM approvals WHERE root = :root AND {_IS_OPEN}")
_ASKED = prepare(
    "SELECT id, thread_id, step, task, place, kind, ask, path FROM approvals"
    " WHERE root = :root AND kind <> 'effect' AND status = 'pending' ORDER BY created_at, thread_id, step, task, place"
)
_RUN = prepare(
    f"SELECT {', '.join(f'run.{name}' for name in RECORD)},"
    " root.calls, root.input_tokens, root.output_tokens, root.steps,"
    f" EXISTS (SELECT 1 FROM approvals WHERE root = run.root AND {_IS_OPEN}),"
    " EXISTS (SELECT 1 FROM pending_writes WHERE thread_id = run.thread_id),"
    " EXISTS (SELECT 1 FROM effects WHERE root = run.root)"
    " FROM runs AS run JOIN runs AS root ON root.thread_id = run.root WHERE run.thread_id = :thread_id"
)


def load_run(tx: Transaction, thread_id: str) -> Loaded:
    """One run from its last snapshot on; raises `UnknownThread`."""
    found: Any = tx.run(_RUN, thread_id=thread_id).fetchone()
    if found is None:
        raise unknown(thread_id)
    *record, calls, input_tokens, output_tokens, steps, asks, wrote, did = found
    run = read_run(record)
    rows = tuple(_read_row(*row) for row in tx.run(_SINCE_SNAPSHOT, thread_id=thread_id).fetchall())
    return Loaded(
        run=run,
        rows=rows,
        writes=_pending(tx, rows[-1]) if wrote else (),
        effects=effects_at(tx, thread_id, rows[-1].step) if did else (),
        open=frozenset(row[0] for row in tx.run(_OPEN, root=run.root).fetchall()) if asks else frozenset(),
        steps=steps,
        spent=Spent(calls, input_tokens, output_tokens),
    )


def head_of(tx: Transaction, thread_id: str) -> int:
    """A run's newest step."""
    return _one(tx.run(_HEAD, thread_id=thread_id))


def snapshot_before(tx: Transaction, thread_id: str, step: int) -> int:
    """The newest step up to `step` that is stored in full."""
    return _one(tx.run(_SNAPSHOT, thread_id=thread_id, last=step))


def rows_between(tx: Transaction, thread_id: str, first: int, last: int) -> tuple[Row, ...]:
    """Checkpoints, oldest first, both ends included."""
    found = tx.run(_ROWS, thread_id=thread_id, first=first, last=last).fetchall()
    return tuple(_read_row(*row) for row in found)


def past(tx: Transaction, thread_id: str, before: int | None, limit: int | None) -> tuple[Row, ...]:
    """The newest `limit` checkpoints before a step and what they are made of, newest first; raises `UnknownThread`."""
    select_run(tx, thread_id)
    last = head_of(tx, thread_id) if before is None else before - 1
    nth = _first_of(tx.run(_NTH, thread_id=thread_id, last=last, skip=max(limit - 1, 0))) if limit is not None else None
    oldest = nth if nth is not None else _one(tx.run(_LOWEST, thread_id=thread_id))
    if oldest > last:
        return ()
    return rows_between(tx, thread_id, snapshot_before(tx, thread_id, oldest), last)[::-1]


def effects_at(tx: Transaction, thread_id: str, step: int) -> tuple[EffectRow, ...]:
    """The effects committed with one checkpoint, in order."""
    return tuple(_read_effect(*row) for row in tx.run(_EFFECTS, thread_id=thread_id, step=step).fetchall())


def asked_of(tx: Transaction, root: str) -> tuple[Interrupt, ...]:
    """What a root run and its children ask, oldest first."""
    found = tx.run(_ASKED, root=root).fetchall()
    return tuple(_read_interrupt(*row) for row in found)


def _pending(tx: Transaction, head: Row) -> tuple[PendingWrite, ...]:
    """What the tasks of the head's superstep have done so far; what older ones did is in the checkpoints."""
    after = Next.from_text(head.next)
    first = min((task.since for task in (*after.tasks, *after.after)), default=head.step)
    return tuple(
        PendingWrite(*row) for row in tx.run(_WRITES, thread_id=head.thread_id, first=min(first, head.step)).fetchall()
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
