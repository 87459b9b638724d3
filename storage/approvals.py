"""What people are asked: opened by a pausing run, read by every surface, taken up by the run once it is settled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import JsonValue
from sqlmodel import col, select

from graphs.engine.checkpoint import Interrupt, RunRecord
from graphs.engine.errors import StaleInterrupt, UnknownInterrupt
from graphs.engine.values import dump
from graphs.flow import Policy, Question, Review
from storage import audit, drafts, roots
from storage.database import Database
from storage.deadlines import Reminder, expire_due, remind_due
from storage.decisions import Outcome, decide, decide_within
from storage.doubts import effect_question
from storage.drafts import Asked, all_of, load_asked, store
from storage.endings import close_open
from storage.refusals import Actor
from storage.releases import release_draft
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, DecisionRow, PendingWriteRow, insert_into, to_micros

__all__ = [
    "Actor",
    "Outcome",
    "Reminder",
    "answer_raw",
    "close_open",
    "decide",
    "decide_within",
    "decisions_of",
    "effect_question",
    "expire_due",
    "find",
    "of_root",
    "open_approval",
    "open_for",
    "remind_due",
    "reopen_cancelled",
    "supersede",
    "take",
]
_SETTLED = ("final", "declined", "changes_requested", "answered")

_FORGET = prepare(
    "DELETE FROM pending_writes WHERE thread_id = :thread_id AND step = :step AND task = :task AND key = :key"
)
_ANSWER = prepare(insert_into(PendingWriteRow))


# -- within a transaction ---------------------------------------------------------------------------------------------


def open_approval(tx: Transaction, *, run: RunRecord, interrupt: Interrupt, policy: Policy) -> None:
    """Ask: the row, what its first draft version releases, and an audit row; the root is locked or fenced already.

    One that was asked before under the same id is left as it is. Raises `UpdateRefused` for a release without draft.
    """
    if load_asked(tx, interrupt.id) is not None:
        return
    review = Review.from_json(cast(Any, interrupt.payload)) if interrupt.asks == "review" else None
    draft = review.contents() if review else {}
    hashed = drafts.draft_hash(draft) if review else ""
    terms = drafts.policy_to_json(policy)
    drafts.open_row(
        tx,
        terms,
        id=interrupt.id,
        root=run.root,
        thread_id=interrupt.thread_id,
        step=interrupt.step,
        task=interrupt.task,
        place=interrupt.place,
        kind=interrupt.asks,
        subject=dump(_subject(interrupt, review)),
        ask=dump(interrupt.payload),
        path=dump(list(interrupt.path)),
        draft=dump(draft),
        content_hash=hashed,
        requester=run.who,
        team=run.team,
        channel=run.channel,
        expires_at=_expiry(tx, terms, review),
    )
    if review:
        release_draft(tx, interrupt.id, run.root, 1, review)
    data: dict[str, JsonValue] = {"approval": interrupt.id, "kind": interrupt.asks, "version": 1, "draft": hashed}
    audit.append(tx, run.root, "asked", data, content=dump(interrupt.payload))


def supersede(tx: Transaction, ids: Iterable[str]) -> None:
    """Close questions that the run asks no longer; those that were settled and taken stay as they are."""
    for approval_id in ids:
        asked = load_asked(tx, approval_id)
        if asked is None or asked.taken or asked.status not in ("pending", "approved", *_SETTLED):
            continue
        store(tx, asked, replace(asked, status="superseded", undo_until=None, settled_at=tx.now))
        audit.append(tx, asked.root, "superseded", {"approval": asked.id, "version": asked.draft_version})


def take(tx: Transaction, root: str) -> int:
    """Hand settled answers to their run, as pending writes `answer:PLACE`; how many there were.

    An approval is taken up, and becomes `final`, only when its undo has passed. The caller holds the run's claim.
    """
    ready = [asked for asked in all_of(tx, root) if _is_ready(asked, tx.now)]
    for asked in ready:
        status = "final" if asked.status == "approved" else asked.status
        store(tx, asked, replace(asked, status=status, taken=True, undo_until=None))
        place = {"thread_id": asked.thread_id, "step": asked.step, "task": asked.task}
        # A question asked anew may stand at the place of one whose answer was never used.
        tx.run(_FORGET, **place, key=f"answer:{asked.place}")
        _hand_over(tx, asked)
        data: dict[str, JsonValue] = {"approval": asked.id, "version": asked.draft_version, "status": status}
        audit.append(tx, root, "taken", data, content=dump(asked.answer))
    return len(ready)


def answer_raw(tx: Transaction, root: str, approval_id: str, value: JsonValue, by: str = "") -> None:
    """Answer as the engine does, with a value of any shape: the root becomes due. No release is let out by it.

    Raises `UnknownInterrupt` or `StaleInterrupt`. People's answers go through `decide`, which knows the policy.
    """
    asked = load_asked(tx, approval_id)
    if asked is None or asked.kind == "effect" or asked.root != root:
        raise UnknownInterrupt(f"{approval_id} is no question of this run; ask for the open ones.", root)
    if asked.status != "pending":
        raise StaleInterrupt(f"{approval_id} is {asked.status.replace('_', ' ')} already.", asked.root)
    store(tx, asked, replace(asked, status="answered", answer=value, settled_at=tx.now))
    roots.lower_due(tx, asked.root)
    data: dict[str, JsonValue] = {"approval": approval_id, "version": asked.draft_version, "by": by}
    audit.append(tx, asked.root, "answered", data, content=dump(value))


def reopen_cancelled(tx: Transaction, root: str, ended_at: int) -> list[str]:
    """Ask again what the end at `ended_at` had cancelled, as a new draft version; the ids."""
    lost = [asked for asked in all_of(tx, root) if asked.status == "cancelled" and asked.settled_at == ended_at]
    for asked in lost:
        after = drafts.next_version(asked)
        store(tx, asked, after)
        data: dict[str, JsonValue] = {"approval": asked.id, "version": after.draft_version}
        audit.append(tx, root, "asked again", data)
    return [asked.id for asked in lost]


def _subject(interrupt: Interrupt, review: Review | None) -> str:
    if review:
        return review.title
    return Question.from_json(cast(Any, interrupt.payload)).text if interrupt.asks == "question" else ""


def _expiry(tx: Transaction, terms: Any, review: Review | None) -> int | None:
    """The policy's time or the review's own, whichever is sooner."""
    ends = [tx.now + terms["expires_after"]] if terms["expires_after"] is not None else []
    if review and review.valid_until:
        ends.append(to_micros(review.valid_until))
    return min(ends, default=None)


def _is_ready(asked: Asked, now: int) -> bool:
    if asked.taken or asked.kind == "effect":
        return False
    if asked.status == "approved":
        return asked.undo_until is None or asked.undo_until <= now
    return asked.status in _SETTLED


def _hand_over(tx: Transaction, asked: Asked) -> None:
    tx.run(
        _ANSWER,
        thread_id=asked.thread_id,
        step=asked.step,
        task=asked.task,
        key=f"answer:{asked.place}",
        value=dump(asked.answer),
        at=tx.now,
    )


# -- reading ----------------------------------------------------------------------------------------------------------


def find(database: Database, approval_id: str) -> ApprovalRow | None:
    """One approval, or None."""
    with database.read() as session:
        return session.get(ApprovalRow, approval_id)


def of_root(database: Database, root: str) -> Sequence[ApprovalRow]:
    """Everything a run and its children ever asked, oldest first."""
    query = select(ApprovalRow).where(ApprovalRow.root == root)
    with database.read() as session:
        return session.exec(query.order_by(col(ApprovalRow.created_at), col(ApprovalRow.id))).all()


def open_for(
    database: Database, *, requester: str | None = None, team: str | None = None, limit: int = 100
) -> Sequence[ApprovalRow]:
    """What waits for people, oldest first: signals left out, of one requester or workspace if given."""
    query = select(ApprovalRow).where(ApprovalRow.status == "pending", ApprovalRow.kind != "signal")
    if requester is not None:
        query = query.where(ApprovalRow.requester == requester)
    if team is not None:
        query = query.where(ApprovalRow.team == team)
    with database.read() as session:
        return session.exec(query.order_by(col(ApprovalRow.created_at), col(ApprovalRow.id)).limit(limit)).all()


def decisions_of(database: Database, approval_id: str) -> Sequence[DecisionRow]:
    """Every click on an approval, refused ones too, oldest first."""
    query = select(DecisionRow).where(DecisionRow.approval == approval_id)
    with database.read() as session:
        return session.exec(query.order_by(col(DecisionRow.at), col(DecisionRow.id))).all()
