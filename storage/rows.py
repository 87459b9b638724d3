"""The engine's values as rows: runs, checkpoints, pending writes, effects and what was spent."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from graphs.engine.checkpoint import EffectRow, PendingWrite, Row, RunRecord, Spent
from graphs.engine.errors import UnknownThread
from graphs.engine.values import dump, load
from storage import audit
from storage.statements import Transaction, prepare
from storage.tables import CheckpointRow, EffectLedgerRow, PendingWriteRow, RunRow, UsageRow

runs = cast(sa.Table, RunRow.__table__)  # type: ignore[attr-defined]
checkpoints = cast(sa.Table, CheckpointRow.__table__)  # type: ignore[attr-defined]
writes = cast(sa.Table, PendingWriteRow.__table__)  # type: ignore[attr-defined]
effects = cast(sa.Table, EffectLedgerRow.__table__)  # type: ignore[attr-defined]
_usage = cast(sa.Table, UsageRow.__table__)  # type: ignore[attr-defined]

# PostgreSQL's ON CONFLICT is SQLite's too.
_INSERT_RUN = prepare(postgresql.insert(runs).on_conflict_do_nothing())
_INSERT_ROW = prepare(sa.insert(checkpoints))
_INSERT_WRITE = prepare(postgresql.insert(writes).on_conflict_do_nothing())
_INSERT_EFFECT = prepare(sa.insert(effects))
_RECORD = (
    runs.c.thread_id,
    runs.c.flow,
    runs.c.version,
    runs.c.fingerprint,
    runs.c.root,
    runs.c.parent,
    runs.c.model,
    runs.c.who,
    runs.c.team,
    runs.c.channel,
    runs.c.max_steps,
    runs.c.pause_before,
    runs.c.ending,
    runs.c.error,
)
_NAMES = tuple(column.name for column in _RECORD)
_SELECT_RUN = prepare(sa.select(*_RECORD).where(runs.c.thread_id == sa.bindparam("thread")))
_SPEND = prepare(
    sa.update(runs)
    .where(runs.c.thread_id == sa.bindparam("root_id"))
    .values(
        calls=runs.c.calls + sa.bindparam("more_calls", type_=sa.BigInteger),
        input_tokens=runs.c.input_tokens + sa.bindparam("more_in", type_=sa.BigInteger),
        output_tokens=runs.c.output_tokens + sa.bindparam("more_out", type_=sa.BigInteger),
    )
    .returning(runs.c.who)
)
_insert_usage = postgresql.insert(_usage)
_USE = prepare(
    _insert_usage.on_conflict_do_update(
        index_elements=["day", "who"],
        set_={
            name: _usage.c[name] + _insert_usage.excluded[name] for name in ("calls", "input_tokens", "output_tokens")
        },
    )
)


def insert_run(tx: Transaction, run: RunRecord, *, due: bool) -> bool:
    """A new run; False if there is one of that name already."""
    return (
        tx.run(
            _INSERT_RUN,
            thread_id=run.thread_id,
            root=run.root,
            parent=run.parent,
            flow=run.flow,
            version=run.version,
            fingerprint=run.fingerprint,
            model=run.model,
            who=run.who,
            team=run.team,
            channel=run.channel,
            max_steps=run.max_steps,
            pause_before=dump(list(run.pause_before)),
            rev=0,
            claim=None,
            lease_until=None,
            due_at=tx.now if due else None,
            ending=run.ending,
            error=dump(run.error),
            calls=run.spent.calls,
            input_tokens=run.spent.input_tokens,
            output_tokens=run.spent.output_tokens,
            created_at=tx.now,
            ended_at=None,
        ).rowcount
        == 1
    )


def select_run(tx: Transaction, thread_id: str) -> RunRecord:
    """A run's record; raises `UnknownThread`."""
    if (row := tx.run(_SELECT_RUN, thread=thread_id).fetchone()) is None:
        raise unknown(thread_id)
    return _read_run(*row)


def _read_run(*row: Any) -> RunRecord:
    about = dict(zip(_NAMES, row, strict=True))
    about |= {"pause_before": tuple(load(about["pause_before"])), "error": load(about["error"])}
    return RunRecord(**about)


def unknown(thread_id: str) -> UnknownThread:
    """What to raise for a run that is not there."""
    return UnknownThread(f"There is no run {thread_id}.", thread_id)


def insert_checkpoint(tx: Transaction, row: Row) -> None:
    """The next checkpoint of a run."""
    tx.run(
        _INSERT_ROW,
        thread_id=row.thread_id,
        step=row.step,
        source=row.source,
        next=row.next,
        body=row.body,
        is_full=row.full,
        meta=row.meta,
        author=row.author,
        at=tx.now,
    )


def insert_writes(tx: Transaction, more: Iterable[PendingWrite]) -> None:
    """Facts of a half-done superstep; what is written already stays as it is."""
    for write in more:
        tx.run(
            _INSERT_WRITE,
            thread_id=write.thread_id,
            step=write.step,
            task=write.task,
            key=write.key,
            value=write.value,
            at=tx.now,
        )


def insert_effect(tx: Transaction, root: str, effect: EffectRow, *, guarded: bool) -> None:
    """One effect, pending, and the audit row that tells of it."""
    tx.run(
        _INSERT_EFFECT,
        thread_id=effect.thread_id,
        step=effect.step,
        n=effect.n,
        root=root,
        kind=effect.kind,
        address=effect.address,
        content=dump(effect.content),
        payload=effect.payload,
        into=effect.into,
        guarded=guarded,
        status=effect.status,
        attempt=0,
        not_before=None,
        send_until=None,
        first_sent_at=None,
        receipt=effect.receipt or "null",
        at=tx.now,
    )
    data: dict[str, Any] = {"effect": effect.key, "kind": effect.kind, "to": effect.address, "guarded": guarded}
    audit.append(tx, root, "effect", data, content=effect.content)


def spend(tx: Transaction, root: str, spent: Spent) -> None:
    """Count what was spent for the root run, and for the person and the UTC day."""
    costs = (spent.calls, spent.input_tokens, spent.output_tokens)
    (who,) = tx.run(
        _SPEND, root_id=root, **dict(zip(("more_calls", "more_in", "more_out"), costs, strict=True))
    ).fetchone()
    day = datetime.fromtimestamp(tx.now / 1_000_000, UTC).date().isoformat()
    use = dict(zip(("calls", "input_tokens", "output_tokens"), costs, strict=True))
    tx.run_last(f"usage {day} {who}", _USE, day=day, who=who, **use)
