"""Rows of the database as the values that cards and windows are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import col, select

from bot.blocks.difference import Change
from bot.blocks.phrases import mention, people, sent
from bot.blocks.question import EffectCard, QuestionCard
from bot.blocks.reading import LoggedStep, RunLog
from bot.blocks.review import ReviewCard, Vote
from bot.blocks.run import EndingNotice, Out, RunCard, Spent, StepMark
from bot.blocks.text import Mrkdwn, fill
from bot.parts import Parts
from bot.people import deciders
from graphs.engine.values import load
from graphs.flow import Question, Review
from storage import approvals, audit, ledger, runs
from storage.refusals import barred
from storage.tables import ApprovalRow, CheckpointRow, DecisionRow, EffectLedgerRow, RunRow

NAMED = 4  # more people than this are "anyone in #channel"
_EFFECT_ANSWERS = {"sent": "went_out", "again": "send_again", "stop": "stop"}
Card = ReviewCard | QuestionCard | EffectCard


def card_of(parts: Parts, asked: ApprovalRow) -> Card:
    """What an approval's card shows now."""
    clicks = [click for click in approvals.decisions_of(parts.database, asked.id) if click.counted]
    if asked.kind == "effect":
        return _effect_card(parts, asked, clicks)
    if asked.kind == "review":
        return _review_card(parts, asked, clicks)
    return _question_card(parts, asked, clicks)


def may_decide(parts: Parts, asked: ApprovalRow) -> Mrkdwn:
    """Who may decide, as a phrase."""
    without = barred(asked)
    found = deciders(parts.people, asked.channel, without)
    if found and len(found) <= NAMED:
        named = people(found)
        return Mrkdwn(named.replace(" and ", " or "))
    where = fill("anyone in {channel}", channel=Mrkdwn(f"<#{asked.channel}>")) if asked.channel else Mrkdwn("anyone")
    return fill("{where} but {who}", where=where, who=mention(without)) if without else where


def _review_card(parts: Parts, asked: ApprovalRow, clicks: Sequence[DecisionRow]) -> ReviewCard:
    first = Review.from_json(asked.ask)
    review = first.with_draft(asked.draft)
    votes = [c for c in clicks if c.draft_version == asked.draft_version and c.verdict in ("approve", "edit")]
    last = clicks[-1] if clicks and asked.status not in ("pending", "expired", "superseded") else None
    return ReviewCard(
        id=asked.id,
        version=asked.draft_version,
        review=review,
        requester=asked.requester,
        may_decide=may_decide(parts, asked),
        status=asked.status,  # type: ignore[arg-type]
        quorum=int(asked.policy.get("quorum") or 1),
        votes=tuple(Vote(click.who, click.at) for click in votes),
        changes=_changes(first, review),
        by=_settled_by(parts, asked, last),
        at=asked.settled_at,
        reason=last.reason if last else "",
        expires_at=asked.expires_at,
        undo_until=asked.undo_until,
        notes=_sent_earlier(parts, asked.root),
    )


def _sent_earlier(parts: Parts, root: str) -> tuple[str, ...]:
    """What the lines that a run was forked from have sent already."""
    with parts.database.read() as session:
        first = session.get(CheckpointRow, (root, 0))
    if first is None or first.source != "fork":
        return ()
    return tuple(
        fill("An earlier line has sent this already: {what}", what=sent(each.kind, each.to))
        for each in parts.runner.sent_before(root)
    )


def _settled_by(parts: Parts, asked: ApprovalRow, last: DecisionRow | None) -> str:
    if asked.status == "cancelled":
        return _who_cancelled(parts, asked.root)
    return last.who if last is not None else ""


def _who_cancelled(parts: Parts, root: str) -> str:
    """Who ended a run, "" where nobody did: one that failed closes what is open as well."""
    ends = [row for row in audit.rows(parts.database, root) if row.kind == "ended"]
    return str(ends[-1].data.get("by", "")) if ends else ""


def _changes(first: Review, now: Review) -> tuple[Change, ...]:
    return tuple(
        Change(part.label, str(part.value or ""), str(now.draft[name].value or ""))
        for name, part in first.draft.items()
        if part.value != now.draft[name].value
    )


def _question_card(parts: Parts, asked: ApprovalRow, clicks: Sequence[DecisionRow]) -> QuestionCard:
    run = runs.find(parts.database, asked.root)
    return QuestionCard(
        id=asked.id,
        version=asked.draft_version,
        question=Question.from_json(asked.ask),
        title=f"A question about {run.flow.replace('_', ' ') if run else 'a run'}",
        requester=asked.requester,
        may_answer=may_decide(parts, asked),
        status=asked.status,  # type: ignore[arg-type]
        answer=asked.answer,
        by=clicks[-1].who if clicks else "",
        at=asked.settled_at,
        expires_at=asked.expires_at,
    )


def _effect_card(parts: Parts, asked: ApprovalRow, clicks: Sequence[DecisionRow]) -> EffectCard:
    effect = next(
        row
        for row in ledger.rows(parts.database, asked.root)
        if (row.thread_id, row.step, str(row.n)) == (asked.thread_id, asked.step, asked.place)
    )
    choices = [choice["value"] for choice in asked.ask["choices"]]
    return EffectCard(
        id=asked.id,
        version=asked.draft_version,
        kind=effect.kind,
        to=effect.address,
        content=effect.content,
        sent_at=effect.first_sent_at or effect.at,
        may_decide=may_decide(parts, asked),
        can_send_again="again" in choices,
        status=asked.status,  # type: ignore[arg-type]
        answer=_EFFECT_ANSWERS.get(str(asked.answer), ""),
        by=clicks[-1].who if clicks else "",
        at=asked.settled_at,
    )


# ---- runs ------------------------------------------------------------------------------------------------------------


def run_card(parts: Parts, run: RunRow) -> RunCard:
    """What a run's message shows now."""
    open_ones = [one for one in approvals.of_root(parts.database, run.thread_id) if one.status == "pending"]
    state = runs.status_of(run, open_ones, parts.runner.known, parts.database.now())
    return RunCard(
        thread_id=run.thread_id,
        command=parts.command_of(run),
        request=request_of(parts, run),
        requester=run.who,
        state=state,  # type: ignore[arg-type]
        steps=_marks(parts, run, state),
        spent=spent_of(parts, run),
        note=run.error if state != "stuck" else str(runs.unknown_version(run.flow, run.version, run.fingerprint, "")),
        until=run.due_at if state == "sleeping" else None,
    )


def request_of(parts: Parts, run: RunRow) -> str:
    """What the person asked for: the first field of the flow's form, as the run's state keeps it."""
    with parts.database.read() as session:
        first = session.get(CheckpointRow, (run.thread_id, 0))
    values = load(first.body).get("set", {}) if first else {}
    if (flow := parts.flow_of(run)) is not None:
        return str(values.get(next(iter(flow.form)), ""))
    return next((value for value in values.values() if isinstance(value, str) and value), "")


def spent_of(parts: Parts, run: RunRow) -> Spent:
    """Steps, model calls and tokens of a run."""
    provider = parts.deps.model.provider
    return Spent(
        steps=len(_steps(parts, run.thread_id)),
        calls=run.calls,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        model=run.model.partition("|")[0],
        provider="simulated model" if provider == "simulated" else provider,
    )


def run_log(parts: Parts, run: RunRow) -> RunLog:
    """A run step by step."""
    steps = [_logged(row) for row in _checkpoints(parts, run.thread_id)]
    return RunLog(thread_id=run.thread_id, title=request_of(parts, run), steps=tuple(steps), spent=spent_of(parts, run))


def ending_notice(parts: Parts, run: RunRow) -> EndingNotice:
    """How a run ended, what it took and what went out."""
    asked = approvals.of_root(parts.database, run.thread_id)
    sent = [_out(row) for row in ledger.rows(parts.database, run.thread_id)]
    by, reason = _who_ended(parts, run, asked)
    return EndingNotice(
        thread_id=run.thread_id,
        command=parts.command_of(run),
        request=request_of(parts, run),
        requester=run.who,
        ending=run.ending,  # type: ignore[arg-type]
        text=_account(parts, run),
        by=by,
        reason=reason,
        spent=spent_of(parts, run),
        took=(run.ended_at or run.created_at) - run.created_at,
        waited=_waited(asked, run.ended_at or run.created_at),
        out=tuple(sent),
        why_not=run.error if run.ending == "failed" else "",
    )


def _account(parts: Parts, run: RunRow) -> str:
    flow = parts.flow_of(run)
    if flow is None or not parts.can_read(run) or run.ending not in ("finished", "gave_up", "declined"):
        return ""
    state = parts.runner.get_state(run.thread_id).values
    return flow.ending(state, run.ending)  # type: ignore[arg-type]


def _who_ended(parts: Parts, run: RunRow, asked: Sequence[ApprovalRow]) -> tuple[str, str]:
    if run.ending == "cancelled":
        return _who_cancelled(parts, run.thread_id), ""
    if run.ending != "declined":
        return "", ""
    clicks = [click for one in asked for click in approvals.decisions_of(parts.database, one.id)]
    last = next((click for click in reversed(clicks) if click.counted and click.verdict == "decline"), None)
    return (last.who, last.reason) if last else ("", "")


def _waited(asked: Sequence[ApprovalRow], until: datetime) -> timedelta:
    """How long people were waited for; overlapping waits count once."""
    total, last = timedelta(0), None
    for begin, end in sorted((one.created_at, one.settled_at or until) for one in asked if one.kind != "effect"):
        start = begin if last is None or begin > last else last
        if end > start:
            total += end - start
            last = end
    return total


def _out(row: EffectLedgerRow) -> Out:
    said = row.receipt or {}
    if row.status == "sent":
        # The ts of a post tells people nothing.
        return Out(row.kind, row.address, ref="" if row.kind == "post" else str(said.get("ref", "")))
    return Out(row.kind, row.address, problem=str(said.get("detail") or row.status))


def _marks(parts: Parts, run: RunRow, state: str) -> tuple[StepMark, ...]:
    rows = _steps(parts, run.thread_id)
    done = [StepMark(_label(name)) for row in rows for name, _ms in load(row.meta).get("ran", ())]
    if run.ending or not (head := _head(parts, run.thread_id)):
        return tuple(done)
    tasks = load(head.next).get("tasks", ())
    mark: Any = "waiting" if state == "waiting" else "active"
    return (*done, *(StepMark(_label(task[0]), mark) for task in tasks))


def _label(node: str) -> str:
    return node.partition("#")[0].replace("_", " ")


def _logged(row: CheckpointRow) -> LoggedStep:
    meta = load(row.meta)
    ran = meta.get("ran", [])
    spent = meta.get("spent") or [0, 0, 0]
    return LoggedStep(
        number=row.step,
        node=", ".join(_label(name) for name, _ms in ran) or row.source,
        next=tuple(_label(target) for _source, target, _why in meta.get("took", ()) if not target.startswith("__")),
        tokens=spent[1] + spent[2],
        took=timedelta(milliseconds=sum(ms for _name, ms in ran)) if ran else None,
    )


def _steps(parts: Parts, thread_id: str) -> list[CheckpointRow]:
    return [row for row in _checkpoints(parts, thread_id) if row.source == "step"]


def _head(parts: Parts, thread_id: str) -> CheckpointRow | None:
    rows = _checkpoints(parts, thread_id)
    return rows[-1] if rows else None


def _checkpoints(parts: Parts, thread_id: str) -> Sequence[CheckpointRow]:
    query = select(CheckpointRow).where(CheckpointRow.thread_id == thread_id).order_by(col(CheckpointRow.step))
    with parts.database.read() as session:
        return session.exec(query).all()
