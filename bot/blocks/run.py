"""Messages about a run: how far it is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, Literal

from bot.blocks import actions
from bot.blocks.elements import Json, button, confirmation, context, message, section
from bot.blocks.phrases import count, duration, link, mention, moment, sent
from bot.blocks.text import Mrkdwn, cut, fill, joined, one_line
from graphs.flow import Ending

State = Literal["queued", "running", "waiting", "sleeping", "stuck"]
_STATES: Final = {
    "queued": "⏳ *Queued*",
    "running": "⚙️ *Working*",
    "waiting": "✋ *Waiting for a person*",
    "sleeping": "💤 *Sleeping*",
    "stuck": "⚠️ *Stuck*",
    "finished": "🏁 *Finished*",
    "declined": "🚫 *Declined*",
    "gave_up": "🤷 *Gave up*",
    "expired": "⌛ *Expired*",
    "cancelled": "⏹️ *Cancelled*",
    "failed": "❌ *Failed*",
}
_STEP_MARKS: Final = {"done": "✓", "active": "▸", "waiting": "✋", "failed": "✗"}
_SHOWN_STEPS = 24
_SHOWN_SENT = 8
_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step of a run by the name of its node."""

    label: str
    state: Literal["done", "active", "waiting", "failed"] = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run took. `model` and `provider` say who answered ("claude-sonnet-5-5", "simulated model")."""

    rounds: int = 0
    round_limit: int = 0
    steps: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""
    provider: str = ""


NOTHING: Final = Spent()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCard:
    """A run's message. `note` says what it waits for or why it is stuck; `card` is the address of an open card."""

    thread_id: str
    command: str
    request: str
    requester: str
    state: State | Ending
    steps: tuple[StepMark, ...] = ()
    spent: Spent = NOTHING
    note: str = ""
    until: datetime | None = None
    card: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will happen any more."""
        return self.state not in ("queued", "running", "waiting", "sleeping", "stuck")


@dataclass(frozen=True, slots=True)
class Out:
    """Something a run sent, with the other side's `ref`, or did not, with its `problem`."""

    kind: str
    to: str
    ref: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingNotice:
    """How a run ended. `text` is the flow's account; `by` who declined or cancelled; `why_not` if nothing went out."""

    thread_id: str
    command: str
    request: str
    requester: str
    ending: Ending
    text: str = ""
    by: str = ""
    reason: str = ""
    spent: Spent = NOTHING
    took: timedelta = timedelta(0)
    waited: timedelta = timedelta(0)
    out: tuple[Out, ...] = ()
    why_not: str = ""
    card: str = ""


def run_message(card: RunCard) -> Json:
    """How far a run is, with *Run log* and, while it lasts, *Cancel*."""
    parts = [
        Mrkdwn(_STATES[card.state]),
        fill("{command} for {who}", command=card.command, who=mention(card.requester)),
    ]
    parts += [fill("until {at}", at=moment(card.until))] if card.until else []
    blocks = [
        section(joined(parts, " · ")),
        section(cut(card.request, _TEXT)),
    ]
    blocks += [section(_steps(card.steps))] if card.steps else []
    blocks += [context(_note(card))] if card.note or card.card else []
    blocks += [context(spent_line(card.spent)), _buttons(card.thread_id, not card.has_ended)]
    return message(
        f"{card.command}: {card.state.replace('_', ' ')}: {one_line(card.request, 300)}",
        blocks,
        f"run/{card.thread_id}",
    )


def ending_message(notice: EndingNotice) -> Json:
    """How a run ended, what it took, and what went out or why nothing did."""
    blocks = [section(_how(notice))]
    blocks += [section(cut(notice.text, _TEXT))] if notice.text else []
    blocks += [context(fill("Reason: {reason}", reason=cut(notice.reason, _TEXT)))] if notice.reason else []
    blocks += [section(_sent_lines(notice)), context(_figures(notice))]
    blocks += [_buttons(notice.thread_id, False)]
    told = f"{notice.command}: {notice.ending.replace('_', ' ')}: {one_line(notice.request, 300)}"
    return message(told, blocks, f"end/{notice.thread_id}")


def spent_line(spent: Spent) -> Mrkdwn:
    """Rounds, model calls, tokens, and who answered: one line."""
    rounds = f"round {spent.rounds} of {spent.round_limit}" if spent.round_limit else ""
    tokens = f"{spent.input_tokens + spent.output_tokens:,} tokens ({spent.output_tokens:,} written)"
    parts = [rounds, count(spent.calls, "model call"), tokens, one_line(spent.model, 80), one_line(spent.provider, 80)]
    return joined(parts, " · ")


def _steps(steps: tuple[StepMark, ...]) -> Mrkdwn:
    told: list[str] = []
    for (label, state), group in groupby(steps, key=lambda step: (step.label, step.state)):
        often = len(list(group))
        told.append(f"{_STEP_MARKS[state]} {one_line(label, 60)}" + (f" x{often}" if often > 1 else ""))
    earlier = [f"… {count(len(told) - _SHOWN_STEPS, 'earlier step')}"] if len(told) > _SHOWN_STEPS else []
    return joined([*earlier, *told[-_SHOWN_STEPS:]], "  →  ")


def _note(card: RunCard) -> Mrkdwn:
    shown = [cut(card.note, 600)] if card.note else []
    return joined([*shown, link(card.card, "Open the card")] if card.card else shown, " · ")


def _how(notice: EndingNotice) -> Mrkdwn:
    parts = [fill("{how}: {command} for {who}", how=Mrkdwn(_STATES[notice.ending]), command=notice.command,
                  who=mention(notice.requester))]  # fmt: skip
    parts += [fill("by {who}", who=mention(notice.by))] if notice.by else []
    parts += [link(notice.card, "the card")] if notice.card else []
    return joined([joined(parts, " · "), cut(notice.request, _TEXT // 2)])


def _sent_lines(notice: EndingNotice) -> Mrkdwn:
    lines = [_sent_line(out) for out in notice.out[:_SHOWN_SENT]]
    if len(notice.out) > _SHOWN_SENT:
        lines.append(Mrkdwn(f"… and {len(notice.out) - _SHOWN_SENT} more in the run log"))
    if not lines:
        lines = [fill("Nothing went out. {why}", why=cut(notice.why_not, 600))]
    return joined(lines)


def _sent_line(out: Out) -> Mrkdwn:
    if out.problem:
        return fill("✗ {what}: {problem}", what=sent(out.kind, out.to), problem=one_line(out.problem, 120))
    ref = fill(" ({ref})", ref=one_line(out.ref, 80)) if out.ref else Mrkdwn("")
    return fill("✓ {what}{ref}", what=sent(out.kind, out.to), ref=ref)


def _figures(notice: EndingNotice) -> Mrkdwn:
    took, waited = f"took {duration(notice.took)}", f"waited {duration(notice.waited)} for people"
    return joined([count(notice.spent.steps, "step"), took, waited, spent_line(notice.spent)], " · ")


def _buttons(thread_id: str, may_cancel: bool) -> Json:
    ask = confirmation(
        "Cancel this run?", "Nothing more of it will be sent, and what waits for a person is closed.", "Cancel the run",
        "Keep it", "danger",
    )  # fmt: skip
    row = [button("Run log", actions.LOG, thread_id)]
    row += [button("Cancel", actions.CANCEL, thread_id, confirm=ask)] if may_cancel else []
    return {"type": "actions", "block_id": f"run/{thread_id}/buttons", "elements": row}
