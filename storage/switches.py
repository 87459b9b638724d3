"""Switches that hold for every process: the one that stops all effects, and the time of the last sweep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import select

from graphs.engine.values import dump, load
from storage import audit, roots
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import EffectLedgerRow, SwitchRow, from_micros, insert_into

HOLD, SWEEP = "hold", "sweep"
CHAIN = "(switches)"  # the audit chain of what concerns every run

_SET = prepare(insert_into(SwitchRow) + " ON CONFLICT (name) DO UPDATE SET value = excluded.value, at = excluded.at")
_GET = prepare("SELECT value FROM switches WHERE name = :name")


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing goes out: who stopped it, why and since when."""

    by: str
    reason: str
    since: datetime


def is_held(tx: Transaction) -> bool:
    """Whether effects are stopped, inside a transaction."""
    row: Any = tx.run(_GET, name=HOLD).fetchone()
    return row is not None and bool(load(row[0]).get("on"))


def held(database: Database) -> Hold | None:
    """Who stopped effects, or None while they may go out."""
    with database.read() as session:
        row = session.get(SwitchRow, HOLD)
    return Hold(row.value["by"], row.value["reason"], row.at) if row and row.value.get("on") else None


def hold(database: Database, by: str, reason: str = "") -> None:
    """Stop every effect of every process at once; what has been requested already is not called back."""
    database.write(CHAIN, lambda tx: _turn(tx, True, by, reason))


def release(database: Database, by: str) -> None:
    """Let effects out again, and make the runs due that have some."""
    database.write(CHAIN, lambda tx: _turn(tx, False, by, ""))
    waiting = select(EffectLedgerRow.root).where(EffectLedgerRow.status == "pending").distinct()
    with database.read() as session:
        found = session.exec(waiting).all()
    for root in found:
        database.write(root, lambda tx, root=root: roots.lower_due(tx, root))  # type: ignore[misc]


def mark_sweep(database: Database) -> None:
    """Note that a sweep has just been made."""
    database.write(CHAIN, lambda tx: _set(tx, SWEEP, {}))


def last_sweep(database: Database) -> datetime | None:
    """When any process swept last."""
    with database.read() as session:
        row = session.get(SwitchRow, SWEEP)
    return row.at if row else None


def _turn(tx: Transaction, on: bool, by: str, reason: str) -> None:
    # The switch's row first: otherwise two processes that turn it claim one place in the audit chain.
    _set(tx, HOLD, {"on": on, "by": by, "reason": reason})
    audit.append(tx, CHAIN, "held" if on else "released", {"by": by, "at": from_micros(tx.now).isoformat()}, reason)


def _set(tx: Transaction, name: str, value: dict[str, Any]) -> None:
    tx.run(_SET, name=name, value=dump(value), at=tx.now)
