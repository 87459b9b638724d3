"""Long-term memory: JSON that outlives the runs that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue
from sqlmodel import col, select

from graphs.engine.checkpoint import Memory
from graphs.engine.values import dump
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import MemoryRow, insert_into

_KEEP = prepare(
    insert_into(MemoryRow) + " ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, at = excluded.at"
)
_FORGET = prepare("DELETE FROM memories WHERE namespace = :namespace AND key = :key")


def remember(tx: Transaction, memory: Memory) -> None:
    """Keep a memory, or forget it if its value is None; the last write wins."""
    order = f"memory {memory.namespace} {memory.key}"
    place = {"namespace": memory.namespace, "key": memory.key}
    if memory.value is None:
        tx.run_last(order, _FORGET, **place)
    else:
        tx.run_last(order, _KEEP, **place, value=memory.value, at=tx.now)


def recall(database: Database, namespace: str, key: str) -> JsonValue:
    """What a memory holds, or None."""
    with database.read() as session:
        row = session.get(MemoryRow, (namespace, key))
        return None if row is None else cast(JsonValue, row.value)


def listing(database: Database, namespace: str = "", limit: int = 100) -> Sequence[MemoryRow]:
    """What is remembered, of one namespace if given, in the order of the keys."""
    query = select(MemoryRow).order_by(col(MemoryRow.namespace), col(MemoryRow.key)).limit(limit)
    with database.read() as session:
        return session.exec(query.where(MemoryRow.namespace == namespace) if namespace else query).all()


def keep(database: Database, namespace: str, key: str, value: JsonValue) -> None:
    """Write a memory outside any run."""
    database.write("", lambda tx: remember(tx, Memory(namespace, key, dump(value))))


def forget(database: Database, namespace: str, key: str) -> None:
    """Remove a memory outside any run."""
    database.write("", lambda tx: remember(tx, Memory(namespace, key, None)))
