"""The engine's values as rows: runs, checkpoints, pending writes, effects and what was spent."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from graphs.engine.checkpoint import EffectRow, PendingWrite, Row, RunRecord, Spent
from graphs.engine.errors import UnknownThread
from graphs.engine.values import dump, load
from storage import audit
from storage.leases import LEASE
from storage.statements import Transaction, prepare
from storage.tables import CheckpointRow, EffectLedgerRow, PendingWriteRow, RunRow, UsageRow, insert_into

RECORD = tuple(name for name in RunRecord._fields if name != "spent")

_INSERT_RUN = prepare(insert_into(RunRow) + " ON CONFLICT DO NOTHING")
_INSERT_ROW = prepare(insert_into(CheckpointRow))
_INSERT_WRITE = prepare(insert_into(PendingWriteRow) + " ON CONFLICT DO NOTHING")
_INSERT_EFFECT = prepare(insert_into(EffectLedgerRow))
_SELECT_RUN = prepare(f"SELECT {', '.join(RECORD)} FROM runs WHERE thread_id = :thread_id")
_SPEND = prepare(
    "UPDATE runs SET calls = calls + :calls, input_tokens = input_tokens + :input_tokens,"
    " output_tokens = output_tokens + :output_tokens WHERE thread_id = :root RETURNING who"
)
_USE = prepare(
    insert_into(UsageRow) + " ON CONFLICT (day, who) DO UPDATE SET calls = usage.calls + excluded.calls,"
    " input_tokens = usage.input_tokens + excluded.input_tokens,"
    " output_tokens = usage.output_tokens + excluded.output_tokens"
)


def insert_run(tx: Transaction, run: RunRecord, *, due: bool, owner: str = "") -> bool:
    """A new run, due now or claimed by `owner`; False if there is one of that name already."""
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
            steps=0,
            claim=owner or None,
            lease_until=tx.now + LEASE if owner else None,
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
    if (row := tx.run(_SELECT_RUN, thread_id=thread_id).fetchone()) is None:
        raise unknown(thread_id)
    return read_run(row)


def read_run(values: Iterable[Any]) -> RunRecord:
    """A run's record from the columns `RECORD`."""
    about = dict(zip(RECORD, values, strict=True))
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
    use = spent._asdict()
    (who,) = tx.run(_SPEND, root=root, **use).fetchone()
    day = datetime.fromtimestamp(tx.now / 1_000_000, UTC).date().isoformat()
    tx.run_last(f"usage {day} {who}", _USE, day=day, who=who, **use)
