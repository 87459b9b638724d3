"""From a click to what it changes: one transaction that checks, counts, settles and writes down why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import JsonValue
from sqlmodel import select

from graphs.engine.values import dump
from graphs.flow import Decision, Question, Review
from storage import audit, doubts, refusals, roots
from storage.answers import BadAnswer, check_answer, check_draft
from storage.database import Database
from storage.drafts import Asked, load_asked, next_version, store
from storage.refusals import Actor, Code, Refused, Vote
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, DecisionRow, from_micros, insert_into

Verb = Literal["approve", "edit", "decline", "changes", "undo", "save", "answer"]
Result = Literal["settled", "counted", "saved", "undone", "refused"]
_SETTLES = {"decline": "declined", "changes": "changes_requested"}

_VOTES = prepare(
    "SELECT who, draft_version, verdict, at FROM decisions WHERE approval = :approval AND counted ORDER BY at, id"
)
_COUNT = prepare("SELECT count(*) FROM decisions WHERE approval = :approval")
_KEEP = prepare(insert_into(DecisionRow))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a click did. `sentence` is for the person who clicked, people in it are named `<@ID>`.

    `by` is who had decided already, if somebody had; `have` of `needed` people have approved the draft `version`.
    """

    result: Result
    status: str = ""
    version: int = 0
    refusal: Code | Literal[""] = ""
    sentence: str = ""
    by: str = ""
    needed: int = 1
    have: int = 0
    root: str = ""


@dataclass(frozen=True, slots=True)
class Click:
    """What a person did, as it arrived."""

    actor: Actor
    verdict: Verb
    version: int | None = None
    edits: Mapping[str, JsonValue] = field(default_factory=dict)
    reason: str = ""
    value: JsonValue = None
    via: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a click that counts changes; the root becomes due at `due`, None leaves it as it is."""

    result: Result
    after: Asked
    due: int | None
    sentence: str


def decide(
    database: Database,
    approval_id: str,
    *,
    actor: Actor,
    verdict: Verb,
    version: int | None,
    edits: Mapping[str, JsonValue] | None = None,
    reason: str = "",
    value: JsonValue = None,
    via: str = "",
    timeout: float | None = None,
) -> Outcome:
    """Decide in one transaction, or be refused with a reason; both are kept.

    `version` is the draft version the person saw, None stands for the current one. Raises `StoreFailed`, and
    `TooSlow` when the database did not get to it within `timeout` seconds: then nothing was counted.
    """
    with database.read() as session:
        root = session.exec(select(ApprovalRow.root).where(ApprovalRow.id == approval_id)).first()
    if root is None:
        return Outcome("refused", refusal="unknown", sentence=refusals.GONE)
    click = Click(actor, verdict, version, edits or {}, reason, value, via)
    return database.write(root, lambda tx: decide_within(tx, root, approval_id, click), timeout)


def decide_within(tx: Transaction, root: str, approval_id: str, click: Click) -> Outcome:
    """`decide` inside a transaction of the caller's: the root's row is locked before the approval is read."""
    run = roots.lock(tx, root)
    asked = load_asked(tx, approval_id) if run else None
    if run is None or asked is None:
        return Outcome("refused", refusal="unknown", sentence=refusals.GONE)
    votes = [Vote(*row) for row in tx.run(_VOTES, approval=approval_id).fetchall()]
    try:
        ruling = judge(asked, run.ending, click, votes, tx.now)
    except Refused as refused:
        _keep(tx, asked, asked, click, refused.code)
        answer = _outcome(asked, votes, "refused", refused.sentence)
        return replace(answer, refusal=refused.code, by=refused.by)
    _apply(tx, asked, ruling, click)
    voted = [*votes, Vote(click.actor.id, ruling.after.draft_version, click.verdict, tx.now)]
    return replace(_outcome(ruling.after, voted, ruling.result, ruling.sentence), by=click.actor.id)


def judge(asked: Asked, ending: str, click: Click, votes: Sequence[Vote], now: int) -> Ruling:
    """What a click changes, from what is known under the root's lock; raises `Refused`. Changes nothing itself."""
    refusals.admit(asked, click.actor)
    if click.verdict == "undo":
        refusals.may_undo(asked, votes, click.version)
        after = next_version(asked)
        return Ruling("undone", after, None, f"Taken back. Draft {after.draft_version} waits for a decision.")
    refusals.must_be_pending(asked, votes, click.actor)
    refusals.must_be_current(asked, click.version)
    refusals.must_be_in_time(asked, now)
    if (click.verdict == "answer") == (asked.kind == "review"):
        raise Refused("bad_answer", "A review is approved, declined or sent back; a question is answered.")
    try:
        return _RULES[click.verdict](asked, ending, click, votes, now)
    except BadAnswer as error:
        raise Refused("bad_answer", str(error)) from error


def approvers(votes: Sequence[Vote], version: int) -> set[str]:
    """Who has approved a draft version: a person counts once."""
    return {vote.who for vote in votes if vote.version == version and vote.verdict in ("approve", "edit")}


def _approve(asked: Asked, _ending: str, click: Click, votes: Sequence[Vote], now: int) -> Ruling:
    refusals.must_not_be_own(asked, click.actor)
    draft = _edited(asked, click) if click.verdict == "edit" else asked
    refusals.must_be_first(draft, votes, click.actor)
    have = len(approvers(votes, draft.draft_version) | {click.actor.id})
    if have < asked.quorum:
        return Ruling("counted", draft, None, f"Your approval counts: {have} of {asked.quorum}.")
    undo_for = int(asked.policy.get("undo_for") or 0)
    undo_until = now + undo_for if undo_for else None
    after = replace(_settled(draft, click, "approved", now), undo_until=undo_until)
    return Ruling("settled", after, undo_until or now, "Approved.")


def _turn_down(asked: Asked, _ending: str, click: Click, _votes: Sequence[Vote], now: int) -> Ruling:
    if click.verdict == "changes" and not click.reason.strip():
        raise BadAnswer("Say what should change.")
    sentence = "Declined." if click.verdict == "decline" else "Sent back with your comment."
    return Ruling("settled", _settled(asked, click, _SETTLES[click.verdict], now), now, sentence)


def _save(asked: Asked, _ending: str, click: Click, _votes: Sequence[Vote], _now: int) -> Ruling:
    after = _edited(asked, click)
    return Ruling("saved", after, None, f"Saved as draft {after.draft_version}; it waits for a decision.")


def _answer(asked: Asked, ending: str, click: Click, _votes: Sequence[Vote], now: int) -> Ruling:
    if asked.kind == "effect" and ending and click.value == "again":
        raise Refused("ended", "The run has ended, so nothing more is sent for it.")
    value = click.value if asked.kind == "signal" else check_answer(Question.from_json(asked.ask), click.value)
    is_taken = asked.kind == "effect"  # no node waits for it: the ledger takes the answer at once
    after = replace(asked, status="answered", answer=value, settled_at=now, taken=is_taken)
    return Ruling("settled", after, now, "Answered.")


_RULES = {
    "approve": _approve,
    "edit": _approve,
    "decline": _turn_down,
    "changes": _turn_down,
    "save": _save,
    "answer": _answer,
}


def _edited(asked: Asked, click: Click) -> Asked:
    draft = check_draft(Review.from_json(asked.ask), asked.draft, click.edits)
    if draft == dict(asked.draft):
        raise Refused("unchanged", "Nothing was changed; approve the draft as it is, or change it.")
    return next_version(asked, draft)


def _settled(asked: Asked, click: Click, status: str, now: int) -> Asked:
    decision = Decision(
        verdict=click.verdict,  # type: ignore[arg-type]
        draft=dict(asked.draft),
        reason=click.reason,
        by=click.actor.id,
        at=from_micros(now),
        version=asked.draft_version,
    )
    return replace(asked, status=status, answer=decision.to_json(), settled_at=now)


def _apply(tx: Transaction, asked: Asked, ruling: Ruling, click: Click) -> None:
    store(tx, asked, ruling.after)
    if asked.kind == "effect":
        doubts.resolve(tx, asked, str(ruling.after.answer), click.actor.id)
    if ruling.due is not None:
        roots.lower_due(tx, asked.root, ruling.due)
    _keep(tx, asked, ruling.after, click)


def _keep(tx: Transaction, asked: Asked, after: Asked, click: Click, refusal: str = "") -> None:
    """The decision as a row and in the audit, refused ones too."""
    number = int(tx.run(_COUNT, approval=asked.id).fetchone()[0]) + 1
    version = asked.draft_version if click.verdict == "undo" else after.draft_version
    if refusal and click.version is not None:
        version = min(max(click.version, 0), 2**31 - 1)
    row: dict[str, Any] = {
        "id": f"{asked.id}:{number:06}",
        "approval": asked.id,
        "draft_version": version,
        "who": click.actor.id,
        "team": click.actor.team,
        "verdict": click.verdict,
        "counted": not refusal,
        "refusal": refusal,
        "via": click.via,
    }
    tx.run(_KEEP, **row, edits=dump(dict(click.edits)), reason=dump(click.reason), at=tx.now)
    content = dump([dict(click.edits), click.reason, click.value])
    told = {key: value for key, value in row.items() if key != "id"}
    shown = {"status": after.status, "draft": after.content_hash}
    audit.append(tx, asked.root, "decided", {"decision": row["id"], **told, **shown}, content)


def _outcome(asked: Asked, votes: Sequence[Vote], result: Result, sentence: str) -> Outcome:
    have = len(approvers(votes, asked.draft_version))
    return Outcome(
        result,
        status=asked.status,
        version=asked.draft_version,
        sentence=sentence,
        needed=asked.quorum,
        have=have,
        root=asked.root,
    )
