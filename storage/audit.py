"""What happened to each run, as rows chained by hashes; texts stand in it by their hash, so that they can be erased."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import JsonValue
from sqlmodel import col, select

from graphs.engine.values import dump
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, AuditRow, DecisionRow, EffectLedgerRow, RunRow, insert_into, to_micros

Damage = Literal["changed", "missing", "cut off"]
_LAST = prepare("SELECT seq, hash FROM audit WHERE root = :root ORDER BY seq DESC LIMIT 1")
_APPEND = prepare(insert_into(AuditRow))
_OPEN = prepare(insert_into(AuditRow) + " ON CONFLICT DO NOTHING")


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a run's chain. Whoever keeps it elsewhere can prove later that nothing was cut off."""

    root: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a chain does not hold; `seq` is the first row concerned."""

    root: str
    seq: int
    damage: Damage
    sentence: str


def content_hash(text: str) -> str:
    """SHA-256 of a text in UTF-8, hexadecimal; lone surrogates are taken as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def append(tx: Transaction, root: str, kind: str, data: Mapping[str, JsonValue], content: str = "") -> None:
    """Add one row to a run's chain; the caller has locked the root's row, otherwise two rows claim one place."""
    last: Any = tx.run(_LAST, root=root).fetchone()
    seq, before = (last[0] + 1, last[1]) if last else (1, "")
    tx.run(_APPEND, **_row(tx.now, root, seq, before, kind, data, content))


def begin(tx: Transaction, root: str, kind: str, data: Mapping[str, JsonValue]) -> None:
    """The first row of a new run; one of a name that a deleted run had goes on with its chain."""
    if tx.run(_OPEN, **_row(tx.now, root, 1, "", kind, data, "")).rowcount != 1:
        append(tx, root, kind, data)


def _row(
    at: int, root: str, seq: int, before: str, kind: str, data: Mapping[str, JsonValue], content: str
) -> dict[str, Any]:
    hashed = content_hash(content) if content else ""
    facts = {"root": root, "seq": seq, "kind": kind, "data": dict(data), "content_hash": hashed, "at": at}
    return {**facts, "data": dump(dict(data)), "hash": chained(before, list(facts.values()))}


def chained(before: str, row: list[Any]) -> str:
    """The hash of a row: SHA-256 over the hash before it and root, seq, kind, data, content hash and time."""
    return hashlib.sha256(f"{before}\n{dump(row)}".encode()).hexdigest()


def rows(database: Database, root: str) -> Sequence[AuditRow]:
    """A run's rows, oldest first."""
    with database.read() as session:
        return session.exec(select(AuditRow).where(AuditRow.root == root).order_by(col(AuditRow.seq))).all()


def heads(database: Database, root: str | None = None) -> list[Head]:
    """The newest row of one chain or of all."""
    newest = select(AuditRow.root, sa.func.max(AuditRow.seq).label("seq")).group_by(AuditRow.root)
    top = (newest.where(AuditRow.root == root) if root is not None else newest).subquery()
    query = select(AuditRow.root, AuditRow.seq, AuditRow.hash).join(
        top, sa.and_(top.c.root == AuditRow.root, top.c.seq == AuditRow.seq)
    )
    with database.read() as session:
        return [Head(*row) for row in session.exec(query.order_by(col(AuditRow.root)))]


def verify(database: Database, root: str | None = None, kept: Sequence[Head] = ()) -> list[Fault]:
    """Every fault of one chain or of all: changed, missing and cut-off rows.

    `kept` are heads noted elsewhere. Without them a cut at the end shows only where other tables still tell of what
    the lost rows told: a decision, an effect that was let out, an ending.
    """
    expected = {head.root: head for head in kept if root in (None, head.root)}
    query = select(AuditRow).order_by(col(AuditRow.root), col(AuditRow.seq)).execution_options(yield_per=500)
    faults: list[Fault] = []
    told: dict[str, set[str]] = {}
    with database.read() as session:
        found = session.exec(query if root is None else query.where(AuditRow.root == root))
        for name, chain in groupby(found, key=lambda row: row.root):
            mentioned: set[str] = told.setdefault(name, set())
            faults += _walk(name, chain, expected.pop(name, None), mentioned)
        faults += [_cut(head.root, 1, f"its head was row {head.seq}") for head in expected.values()]
        faults += [_cut(name, 0, f"nothing tells of {what}") for name, what in _untold(session, root, told)]
    return sorted(faults, key=lambda fault: (fault.root, fault.seq))


def _walk(root: str, chain: Iterator[AuditRow], kept: Head | None, mentioned: set[str]) -> Iterator[Fault]:
    seq, before = 0, ""
    for row in chain:
        if row.seq != seq + 1:
            yield Fault(root, seq + 1, "missing", f"{root}: row {seq + 1} is missing.")
        elif row.hash != chained(before, _facts(row)):
            yield Fault(root, row.seq, "changed", f"{root}: row {row.seq} or a row before it was changed.")
        if kept and row.seq == kept.seq and row.hash != kept.hash:
            yield Fault(root, row.seq, "changed", f"{root}: row {row.seq} is not the one whose hash was kept.")
        seq, before = row.seq, row.hash
        mentioned.add(_name(row.kind, row.data))
    if kept and seq < kept.seq:
        yield _cut(root, seq + 1, f"its head was row {kept.seq}")


def _facts(row: AuditRow) -> list[Any]:
    return [row.root, row.seq, row.kind, row.data, row.content_hash, to_micros(row.at)]


def _cut(root: str, seq: int, why: str) -> Fault:
    return Fault(root, seq, "cut off", f"{root}: rows were cut off at the end: {why}.")


def _name(kind: str, data: Mapping[str, Any]) -> str:
    """What a row tells of, as `_untold` names it."""
    return f"{kind} {data.get('decision') or data.get('effect') or ''}".strip()


def _untold(session: Any, root: str | None, told: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """(root, what) of everything other tables know and the audit does not tell."""
    for name, what in _known(session, root):
        if what not in told.get(name, ()):
            yield name, what


def _known(session: Any, root: str | None) -> Iterator[tuple[str, str]]:
    decided = select(ApprovalRow.root, DecisionRow.id).join(ApprovalRow, col(ApprovalRow.id) == DecisionRow.approval)
    sent = select(EffectLedgerRow).where(col(EffectLedgerRow.status).in_(("sending", "sent", "unknown")))
    ended = select(RunRow.thread_id).where(RunRow.root == RunRow.thread_id, RunRow.ending != "")
    if root is not None:
        decided, sent = decided.where(ApprovalRow.root == root), sent.where(EffectLedgerRow.root == root)
        ended = ended.where(RunRow.thread_id == root)
    yield from ((name, f"decided {decision}") for name, decision in session.exec(decided))
    yield from ((row.root, f"sending {row.thread_id}:{row.step}:{row.n}") for row in session.exec(sent))
    yield from ((name, "ended") for name in session.exec(ended))
