"""Which Slack messages show what, and which of them no longer say what the database says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast

import sqlalchemy as sa

from graphs.engine.values import dump
from storage.database import Database
from storage.statements import Transaction, prepare
from storage.tables import APPROVAL_STATUSES, ENDINGS, ApprovalRow, CardRow, RunRow, from_micros, to_micros

Scope = Literal["run", "approval", "ending", "told"]
BUSY_FOR = 30_000_000  # microseconds one process has for posting a card before another may
RECENT = timedelta(days=3)  # how long the cards of what is settled are still put right

_approvals = cast(sa.Table, ApprovalRow.__table__)  # type: ignore[attr-defined]
_cards = cast(sa.Table, CardRow.__table__)  # type: ignore[attr-defined]
_runs = cast(sa.Table, RunRow.__table__)  # type: ignore[attr-defined]

_CREATE = prepare(
    "INSERT INTO cards (scope, subject, channel, ts, drawn, failures, note) "
    "VALUES (:scope, :subject, '', '', '', 0, '\"\"') ON CONFLICT (scope, subject) DO NOTHING"
)
_TAKE = prepare(
    "UPDATE cards SET busy_until = :busy_until WHERE scope = :scope AND subject = :subject "
    "AND (busy_until IS NULL OR busy_until <= :now) AND (not_before IS NULL OR not_before <= :now)"
)
_DRAWN = prepare(
    "UPDATE cards SET channel = :channel, ts = :ts, drawn = :drawn, note = :note, failures = 0, busy_until = NULL,"
    " not_before = NULL, posted_at = coalesce(posted_at, :now) "
    "WHERE scope = :scope AND subject = :subject"
)
_FAILED = prepare(
    "UPDATE cards SET failures = failures + 1, busy_until = NULL, not_before = :not_before, note = :note "
    "WHERE scope = :scope AND subject = :subject"
)
_LOST = prepare(
    "UPDATE cards SET ts = '', drawn = '', busy_until = NULL, not_before = NULL "
    "WHERE scope = :scope AND subject = :subject"
)


@dataclass(frozen=True, slots=True)
class Stale:
    """A card that must be posted (no `ts`) or drawn anew, and the fingerprint it then has."""

    scope: Scope
    subject: str
    fingerprint: str
    channel: str
    ts: str


def stale(database: Database, limit: int = 50, scopes: Sequence[Scope] = ("run", "approval", "ending")) -> list[Stale]:
    """What has no card yet or one that was drawn from something older; cards that are busy or must wait are left out.

    An approval that was settled before it had a card gets none.
    """
    now = from_micros(database.now())
    found: list[Stale] = []
    with database.read() as session:
        for scope in scopes:
            if len(found) < limit:
                rows = session.connection().execute(_QUERIES[scope](scope, now).limit(limit - len(found)))
                found += [Stale(scope, *row) for row in rows]
    return found


def take(database: Database, scope: Scope, subject: str) -> CardRow | None:
    """Claim a card for posting or drawing; None while another process has it or it must wait."""
    if not database.write(_key(scope, subject), lambda tx: take_within(tx, scope, subject)):
        return None
    return find(database, scope, subject)


def take_within(tx: Transaction, scope: Scope, subject: str) -> bool:
    """`take` inside a transaction; whether the card is ours now."""
    tx.run(_CREATE, scope=scope, subject=subject)
    return tx.run(_TAKE, scope=scope, subject=subject, now=tx.now, busy_until=tx.now + BUSY_FOR).rowcount == 1


def drawn(
    database: Database, scope: Scope, subject: str, *, channel: str, ts: str, fingerprint: str, note: str = ""
) -> None:
    """The card stands in Slack as `ts` in `channel` and shows what `fingerprint` names."""
    card = {"scope": scope, "subject": subject, "channel": channel, "ts": ts, "drawn": fingerprint, "note": dump(note)}
    database.write(_key(scope, subject), lambda tx: _run(tx, _DRAWN, **card, now=tx.now))


def failed(database: Database, scope: Scope, subject: str, *, until: int, note: str = "") -> None:
    """It could not be posted or drawn: wait until `until` (microseconds); `note` says why."""
    card = {"scope": scope, "subject": subject, "not_before": until, "note": dump(note)}
    database.write(_key(scope, subject), lambda tx: _run(tx, _FAILED, **card))


def lost(database: Database, scope: Scope, subject: str) -> None:
    """The message is gone from Slack: it has to be posted again."""
    database.write(_key(scope, subject), lambda tx: _run(tx, _LOST, scope=scope, subject=subject))


def find(database: Database, scope: Scope, subject: str) -> CardRow | None:
    """One card, or None."""
    with database.read() as session:
        return session.get(CardRow, (scope, subject))


def _run(tx: Transaction, statement: Any, **values: Any) -> None:
    tx.run(statement, **values)


def _key(scope: Scope, subject: str) -> str:
    return f"~card {scope} {subject}"  # after every run in a batch, as cards are locked after everything else


def _approval_cards(scope: str, now: Any) -> Any:
    fingerprint = sa.cast(_approvals.c.rev, sa.Text) + ":" + _approvals.c.status
    settled = [status for status in APPROVAL_STATUSES if status not in ("pending", "approved")]
    return (
        sa.select(_approvals.c.id, fingerprint, *_place())
        .join_from(_approvals, _cards, _shows(scope, _approvals.c.id), isouter=True)
        .where(
            _approvals.c.kind != "signal",
            sa.or_(
                _approvals.c.status.in_(("pending", "approved")),
                sa.and_(_approvals.c.status.in_(settled), _approvals.c.settled_at >= to_micros(now - RECENT)),
            ),
            sa.or_(_approvals.c.status == "pending", _cards.c.ts != ""),
            _is_stale(fingerprint, now),
        )
        .order_by(_approvals.c.created_at, _approvals.c.id)
    )


def _run_cards(scope: str, now: Any) -> Any:
    fingerprint = sa.cast(_runs.c.rev, sa.Text) + ":" + _runs.c.ending
    return (
        _of_runs(scope, now, fingerprint)
        .where(sa.or_(_runs.c.ending == "", _ended_lately(now)))
        .order_by(_runs.c.created_at, _runs.c.thread_id)
    )


def _endings(scope: str, now: Any) -> Any:
    return _of_runs(scope, now, _runs.c.ending).where(_ended_lately(now)).order_by(_runs.c.ended_at, _runs.c.thread_id)


def _ended_lately(now: Any) -> Any:
    """By every ending, otherwise the index on it is of no use."""
    return sa.and_(_runs.c.ending.in_([ending for ending in ENDINGS if ending]), _runs.c.ended_at >= now - RECENT)


def _of_runs(scope: str, now: Any, fingerprint: Any) -> Any:
    return (
        sa.select(_runs.c.thread_id, fingerprint, *_place())
        .join_from(_runs, _cards, _shows(scope, _runs.c.thread_id), isouter=True)
        .where(_runs.c.root == _runs.c.thread_id, _runs.c.channel != "", _is_stale(fingerprint, now))
    )


def _place() -> list[Any]:
    return [sa.func.coalesce(_cards.c.channel, ""), sa.func.coalesce(_cards.c.ts, "")]


def _shows(scope: str, subject: Any) -> Any:
    return sa.and_(_cards.c.scope == scope, _cards.c.subject == subject)


def _is_stale(fingerprint: Any, now: Any) -> Any:
    """No card or one drawn from something else, and nobody is at it or has to wait."""
    return sa.or_(
        _cards.c.subject.is_(None),
        sa.and_(
            _cards.c.drawn != fingerprint,
            sa.or_(_cards.c.busy_until.is_(None), _cards.c.busy_until <= now),
            sa.or_(_cards.c.not_before.is_(None), _cards.c.not_before <= now),
        ),
    )


_QUERIES = {"run": _run_cards, "approval": _approval_cards, "ending": _endings, "told": _endings}
