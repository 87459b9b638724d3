"""The ledger of effects: written before a request leaves and after its answer, so that each goes out once or is told.

An effect is `pending` until a request for it may leave (`begin`), then `sending` until its outcome is known. The
outcome is fenced by the attempt, not by the claim: whoever sent it may tell, whoever advances the run meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import JsonValue
from sqlmodel import col, select

from graphs.engine.checkpoint import Claim
from graphs.engine.effects import Receipt, ReceiptStatus
from graphs.engine.errors import ClaimLost
from graphs.engine.values import dump, load
from storage import audit, roots, switches
from storage.database import Database
from storage.doubts import Doubt, effect_question
from storage.releases import bind_release
from storage.statements import Transaction, prepare
from storage.steps import fence
from storage.tables import EffectLedgerRow, from_micros, to_micros

SEND_WITHIN = 120_000_000  # microseconds from `sending` until no request may leave any more
LOOK_AFTER = 30_000_000  # and from then until an answer that never came may be looked up
HOLD_WAIT = 60_000_000  # how long a run with effects sleeps while they are held
UNRELEASED = "No final review releases this very content, by this way, to this address; nothing was sent."

_READ = prepare(
    "SELECT root, kind, address, content, payload, guarded, status, attempt, not_before, first_sent_at "
    "FROM effects WHERE thread_id = :thread_id AND step = :step AND n = :n"
)
_BEGIN = prepare(
    "UPDATE effects SET status = 'sending', attempt = attempt + 1, send_until = :send_until,"
    " first_sent_at = coalesce(first_sent_at, :now), not_before = NULL "
    "WHERE thread_id = :thread_id AND step = :step AND n = :n AND status = 'pending'"
)
_REFUSE = prepare(
    "UPDATE effects SET status = 'failed', receipt = :receipt "
    "WHERE thread_id = :thread_id AND step = :step AND n = :n AND status = 'pending'"
)
_SETTLE = prepare(
    "UPDATE effects SET status = :status, receipt = :receipt, not_before = :not_before, send_until = NULL "
    "WHERE thread_id = :thread_id AND step = :step AND n = :n AND status = 'sending' AND attempt = :attempt"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of effects, read inside a transaction; times are microseconds since the epoch."""

    key: str
    root: str
    kind: str
    address: str
    content: str
    payload: dict[str, JsonValue]
    guarded: bool
    status: str
    attempt: int
    not_before: int | None
    first_sent_at: int | None


@dataclass(frozen=True, slots=True)
class Sending:
    """The right to make one request, until `send_until`; times are microseconds since the epoch."""

    key: str
    root: str
    kind: str
    address: str
    content: str
    payload: dict[str, JsonValue]
    attempt: int
    send_until: int
    first_sent_at: int

    @property
    def since(self) -> datetime:
        """When a request for this effect may first have left."""
        return from_micros(self.first_sent_at)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request. `not_accepted` means that surely nothing went out; `until` is when to try again.

    `detail` is what the other side said, or why it failed; `ref` its own name for what went out.
    """

    status: Literal["sent", "failed", "unknown", "not_accepted"]
    ref: str = ""
    detail: str = ""
    until: int | None = None


def begin(database: Database, claim: Claim, key: str) -> Sending | None:
    """`pending → sending`: the run is fenced, the release found and bound to this effect for good.

    None when nothing may be sent now: it is not pending, must wait, is held, or no final review releases it (then it
    has `failed`). Raises `ClaimLost` and `StoreFailed`; after either the claim is lost.
    """
    if claim.lost:
        raise ClaimLost(f"{claim.thread_id} has been taken over by somebody else.", claim.thread_id)
    try:
        with claim.turn() as rev:
            saving = database.writer.enqueue(claim.thread_id, lambda tx: begin_within(tx, claim, rev, key))
        return database.writer.wait(saving)
    except BaseException:
        claim.lost = True  # whether the rev was counted up is not known
        raise


def begin_within(tx: Transaction, claim: Claim, rev: int, key: str) -> Sending | None:
    """`begin` inside a transaction."""
    fence(tx, claim.thread_id, rev, claim.id)
    entry = _read(tx, key)
    if entry is None or entry.root != claim.thread_id or entry.status != "pending":
        return None
    if wait := _must_wait(tx, entry):
        # A claim has emptied `due_at`: without this nobody would come back for the effect.
        roots.lower_due(tx, entry.root, wait)
        return None
    release = _release(tx, entry) if entry.guarded else ""
    if release is None:
        receipt = dump(_receipt(entry, "failed", detail=UNRELEASED))
        tx.run(_REFUSE, **place_of(key), receipt=receipt)
        _tell(tx, entry, "failed", entry.attempt, UNRELEASED)
        return None
    return _start(tx, entry, release)


def may_send(database: Database, sending: Sending) -> bool:
    """Ask right before the request leaves: still this attempt's turn, not held, and its time not over."""
    thread, step, n = place_of(sending.key).values()
    with database.read() as session:
        row = session.get(EffectLedgerRow, (thread, step, n))
    is_mine = row is not None and row.status == "sending" and row.attempt == sending.attempt
    return is_mine and switches.held(database) is None and database.now() < sending.send_until


def outcome(database: Database, key: str, attempt: int, result: Result, timeout: float | None = None) -> bool:
    """Record what became of an attempt, with or without the claim; False if it comes too late and is only told.

    `unknown` opens a question to people in the same transaction. The root becomes due, unless it has ended.
    """
    with database.read() as session:
        row = session.get(EffectLedgerRow, tuple(place_of(key).values()))
    if row is None:
        return False
    return database.write(row.root, lambda tx: outcome_within(tx, key, attempt, result), timeout)


def outcome_within(tx: Transaction, key: str, attempt: int, result: Result) -> bool:
    """`outcome` inside a transaction."""
    entry = _read(tx, key)
    run = roots.lock(tx, entry.root) if entry else None
    if entry is None or run is None:
        return False
    status, receipt = _becomes(entry, result, bool(run.ending))
    wait = result.until if status == "pending" else None
    settled = tx.run(_SETTLE, **place_of(key), attempt=attempt, status=status, receipt=receipt, not_before=wait)
    if settled.rowcount != 1:
        _tell(tx, entry, "told too late", attempt, f"{result.status} {result.ref} {result.detail}")
        return False
    _tell(tx, entry, "not accepted" if status == "pending" else status, attempt, result.detail)
    if status == "unknown":
        effect_question(tx, Doubt(run.thread_id, key, entry.kind, entry.address, attempt), run)
    roots.lower_due(tx, run.thread_id, wait)
    return True


def lookups_due(database: Database, limit: int = 50) -> list[Sending]:
    """What was being sent and whose answer never came, long enough ago; runs that have ended included."""
    long_ago = from_micros(database.now() - LOOK_AFTER)
    # In words, because a parameter would not tell SQLite that its partial index holds every row that is asked for.
    is_open = sa.text("effects.status IN ('pending', 'sending', 'unknown')")
    query = select(EffectLedgerRow).where(
        is_open, EffectLedgerRow.status == "sending", col(EffectLedgerRow.send_until) <= long_ago
    )
    with database.read() as session:
        found = session.exec(query.order_by(col(EffectLedgerRow.send_until)).limit(limit)).all()
    return [_sending(row) for row in found]


def rows(database: Database, root: str) -> Sequence[EffectLedgerRow]:
    """Every effect of a run and its children, in the order they were committed."""
    query = select(EffectLedgerRow).where(EffectLedgerRow.root == root)
    order = (EffectLedgerRow.at, EffectLedgerRow.thread_id, EffectLedgerRow.step, EffectLedgerRow.n)
    with database.read() as session:
        return session.exec(query.order_by(*(col(column) for column in order))).all()


def key_of(row: EffectLedgerRow) -> str:
    """The effect's name everywhere: thread, step and place."""
    return f"{row.thread_id}:{row.step}:{row.n}"


def place_of(key: str) -> dict[str, Any]:
    """Where an effect stands, from its name; raises `ValueError` for anything else."""
    thread, step, n = key.rsplit(":", 2)
    return {"thread_id": thread, "step": int(step), "n": int(n)}


def _read(tx: Transaction, key: str) -> Entry | None:
    row: Any = tx.run(_READ, **place_of(key)).fetchone()
    if row is None:
        return None
    root, kind, address, content, payload, guarded, *rest = row
    return Entry(key, root, kind, address, load(content), load(payload), bool(guarded), *rest)


def _must_wait(tx: Transaction, entry: Entry) -> int | None:
    if entry.not_before is not None and entry.not_before > tx.now:
        return entry.not_before
    return tx.now + HOLD_WAIT if switches.is_held(tx) else None


def _release(tx: Transaction, entry: Entry) -> str | None:
    return bind_release(tx, entry.root, entry.kind, address=entry.address, content=entry.content, effect=entry.key)


def _start(tx: Transaction, entry: Entry, release: str) -> Sending:
    until = tx.now + SEND_WITHIN
    tx.run(_BEGIN, **place_of(entry.key), send_until=until, now=tx.now)
    data: dict[str, JsonValue] = {"effect": entry.key, "attempt": entry.attempt + 1, "release": release}
    audit.append(tx, entry.root, "sending", data, content=entry.content)
    return Sending(
        key=entry.key,
        root=entry.root,
        kind=entry.kind,
        address=entry.address,
        content=entry.content,
        payload=entry.payload,
        attempt=entry.attempt + 1,
        send_until=until,
        first_sent_at=tx.now if entry.first_sent_at is None else entry.first_sent_at,
    )


def _becomes(entry: Entry, result: Result, ended: bool) -> tuple[str, str | None]:
    """The effect's next status, and the receipt where it is settled."""
    if result.status == "unknown":
        return "unknown", None
    if result.status != "not_accepted":
        return result.status, dump(_receipt(entry, result.status, result.ref, result.detail))
    if not ended:
        return "pending", None
    return "cancelled", dump(_receipt(entry, "cancelled", detail="The run had ended before it went out."))


def _receipt(entry: Entry, status: ReceiptStatus, ref: str = "", detail: str = "") -> dict[str, JsonValue]:
    return Receipt(kind=entry.kind, to=entry.address, status=status, ref=ref, detail=detail).to_json()


def _tell(tx: Transaction, entry: Entry, what: str, attempt: int, text: str) -> None:
    audit.append(tx, entry.root, what, {"effect": entry.key, "attempt": attempt}, content=text)


def _sending(row: EffectLedgerRow) -> Sending:
    return Sending(
        key=key_of(row),
        root=row.root,
        kind=row.kind,
        address=row.address,
        content=row.content,
        payload=row.payload,
        attempt=row.attempt,
        send_until=to_micros(row.send_until) if row.send_until else 0,
        first_sent_at=to_micros(row.first_sent_at) if row.first_sent_at else 0,
    )
