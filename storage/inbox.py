"""Everything that arrives, kept before it is acknowledged and until it is dealt with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from pydantic import JsonValue
from sqlmodel import col, select

from graphs.engine.values import dump
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import DeliveryRow, from_micros, to_micros

_RECEIVE = prepare(
    "INSERT INTO deliveries (id, kind, payload, attempts, at) VALUES (:id, :kind, :payload, 0, :at) "
    "ON CONFLICT (id) DO NOTHING RETURNING id"
)
_DONE = prepare("UPDATE deliveries SET done_at = :done_at, payload = NULL WHERE id = :id AND done_at IS NULL")
_LATER = prepare(
    "UPDATE deliveries SET attempts = attempts + 1, not_before = :not_before WHERE id = :id AND done_at IS NULL"
)
_FORGET = prepare("DELETE FROM deliveries WHERE done_at < :before")


def receive(tx: Transaction, delivery: str, kind: str, payload: JsonValue) -> bool:
    """Keep an envelope, trigger or event under its id; False if it has been here before, dealt with or not."""
    return tx.run(_RECEIVE, id=delivery, kind=kind, payload=dump(payload), at=tx.now).fetchone() is not None


def done(tx: Transaction, delivery: str) -> bool:
    """Dealt with: the payload is emptied, the id stays. False if somebody else had dealt with it."""
    return tx.run(_DONE, id=delivery, done_at=tx.now).rowcount == 1


def retry_later(tx: Transaction, delivery: str, until: int) -> None:
    """It failed: count the attempt and leave it alone until `until` (microseconds)."""
    tx.run(_LATER, id=delivery, not_before=until)


def forget(tx: Transaction, before: datetime) -> int:
    """Remove the ids of what was dealt with before a time; how many. Slack redelivers within minutes, not days."""
    return tx.run(_FORGET, before=to_micros(before)).rowcount


def open_ones(database: Database, limit: int = 50, older_than: timedelta = timedelta(0)) -> Sequence[DeliveryRow]:
    """What is not dealt with although it arrived `older_than` ago, oldest first; what must wait is left out."""
    now = from_micros(database.now())
    query = select(DeliveryRow).where(
        col(DeliveryRow.done_at).is_(None),
        DeliveryRow.at <= now - older_than,
        sa.or_(col(DeliveryRow.not_before).is_(None), col(DeliveryRow.not_before) <= now),
    )
    with database.read() as session:
        return session.exec(query.order_by(col(DeliveryRow.at), col(DeliveryRow.id)).limit(limit)).all()


def find(database: Database, delivery: str) -> DeliveryRow | None:
    """One delivery, or None."""
    with database.read() as session:
        return session.get(DeliveryRow, delivery)
