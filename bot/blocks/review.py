"""The card that shows a review: everything that goes out, what stands behind it, and the buttons that decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final, Literal

from bot import limits
from bot.blocks import actions
from bot.blocks.actions import Subject
from bot.blocks.difference import Change, difference
from bot.blocks.elements import (
    Json,
    button,
    confirmation,
    context,
    divider,
    field_sections,
    header,
    literal,
    mrkdwn,
    plain,
    section,
    text_units,
)
from bot.blocks.elements import message as make_message
from bot.blocks.fields import can_be_edited
from bot.blocks.phrases import (
    costed,
    count,
    facts,
    mention,
    moment,
    people,
    releases_are_brief,
    shown,
    utc,
    what_approving_does,
)
from bot.blocks.text import Mrkdwn, cut, fill, fits, hidden, joined, one_line, pieces, units, visible
from graphs.flow import Field, Review

Status = Literal[
    "pending",
    "approved",
    "final",
    "declined",
    "changes_requested",
    "answered",
    "expired",
    "cancelled",
    "superseded",
]
_MARKS: Final = {
    "approved": "✅ *Approved* by {who}",
    "final": "✅ *Approved* by {who}",
    "declined": "🚫 *Declined* by {who}",
    "changes_requested": "✏️ *Sent back* by {who} with a request for changes",
    "answered": "✅ *Answered* by {who}",
    "expired": "⌛ *Expired*: nobody decided in time",
    "cancelled": "⏹️ *Cancelled* by {who}",
    "superseded": "↪️ *Replaced*: a newer card stands for this",
}
_FACTS = 3_000
_KEY_FACTS = 4
_BETWEEN = 3  # units of the dot between two facts in small print
_MOST_NOTES = 5
_NOTE = 250
_REASON = 2_000
_CHANGES = 1_500
_SHORT_FIELD = 600
_MOST_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Vote:
    """One approval that counts: the person's Slack id and when."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCard:
    """All that a review's card shows.

    `review` holds the draft as it stands at `version`; `requester` and `by` are Slack ids; `may_decide` completes
    "… may decide"; `votes` are the approvals of this version so far; `changes` is what people edited since the graph
    wrote it; `notes` and `result` are sentences (what earlier lines sent; what became of it). For a settled review
    `by`, `at` and `reason` say who settled it, when and why.
    """

    id: str
    version: int
    review: Review
    requester: str
    may_decide: str
    status: Status = "pending"
    quorum: int = 1
    votes: tuple[Vote, ...] = ()
    changes: tuple[Change, ...] = ()
    by: str = ""
    at: datetime | None = None
    reason: str = ""
    expires_at: datetime | None = None
    undo_until: datetime | None = None
    notes: tuple[str, ...] = ()
    result: tuple[str, ...] = ()

    @property
    def subject(self) -> Subject:
        """What its buttons carry."""
        return Subject(self.id, self.version)

    @property
    def is_open(self) -> bool:
        """Whether a decision is still wanted."""
        return self.status == "pending"


def review_message(card: ReviewCard) -> Json:
    """The card. Where the draft does not fit, there is no Approve on it but a way to read all of it first."""
    is_whole = shows_everything(card)
    blocks = _whole(card)
    if not is_whole:
        top, bottom = _top(card), [*_bottom(card), *_buttons(card, is_whole=False)]
        blocks = [*top, *_beginning(card, _room([*top, *bottom])), *bottom]
    return make_message(_fallback(card, is_whole), blocks, str(card.subject))


def shows_everything(card: ReviewCard) -> bool:
    """Whether the card shows the draft and all that it releases in full, so that it may be approved there."""
    blocks = _whole(card)
    is_short = len(blocks) <= limits.MESSAGE_BLOCKS and text_units(blocks) <= limits.MESSAGE_BLOCKS_TEXT
    return is_short and releases_are_brief(card.review)


def draft_blocks(review: Review) -> list[Json]:
    """Every field of the draft in full, exactly as it is."""
    return [block for part in costed(review).draft.values() for block in _field(part)]


def key_fact_blocks(review: Review) -> list[Json]:
    """The first facts behind a draft, which belong above it."""
    return field_sections(_facts_with_room(review)[:_KEY_FACTS])


def more_fact_blocks(review: Review) -> list[Json]:
    """The other facts in small print, as many as there is room for."""
    told = _facts_with_room(review)
    shown_here = [Mrkdwn(" ".join(fact.split())) for fact in told[_KEY_FACTS:]]
    left = len(review.facts) - len(told)
    more = [context(f"{count(left, 'more fact')} under Read it all.")] if left else []
    return [*([context(joined(shown_here, " · "))] if shown_here else []), *more]


def warning_blocks(review: Review) -> list[Json]:
    """A warning where the draft holds characters that nobody can see."""
    found = hidden("".join(str(part.value or "") for part in review.draft.values()))
    if not found:
        return []
    told = "; ".join(f"{name} x{often}" for name, often in list(found.items())[:8])
    return [context(fill("⚠️ The draft has characters that cannot be seen: {told}", told=one_line(told, 600)))]


def decide_buttons(card: ReviewCard) -> list[Json]:
    """Edit, Decline and Request changes."""
    value = str(card.subject)
    edit = button("Edit", actions.EDIT, value, says=f"Edit draft {card.version} of {card.review.title}")
    return [
        *([edit] if can_be_edited(card.review.draft) else []),
        button("Decline", actions.DECLINE, value, style="danger", says=f"Decline {card.review.title}"),
        button("Request changes", actions.CHANGES, value, says=f"Request changes to {card.review.title}"),
    ]


def approve_button(card: ReviewCard) -> Json:
    """Approve, which asks once more where the risk is high."""
    ask = _confirm(card.review) if card.review.risk == "high" else None
    says = f"Approve draft {card.version} of {card.review.title}"
    return button("Approve", actions.APPROVE, str(card.subject), style="primary", confirm=ask, says=says)


def standing(card: ReviewCard) -> Mrkdwn:
    """Who asked, which draft this is, who may decide and until when: one line."""
    parts = [fill("Asked by {who}", who=mention(card.requester)), Mrkdwn(f"draft {card.version}")]
    if card.is_open:
        parts.append(fill("{who} may decide", who=cut_unless_ours(card.may_decide)))
        parts += [fill("until {at}", at=moment(card.expires_at))] if card.expires_at else []
        holds = card.review.valid_until
        parts += [fill("holds until {at}", at=moment(holds))] if holds and holds != card.expires_at else []
        parts += [Mrkdwn("⚠️ *high risk*")] if card.review.risk == "high" else []
    return joined(parts, " · ")


def cut_unless_ours(text: str) -> str:
    """Raw text of a few lines at most; what is mrkdwn already was measured by whoever wrote it."""
    return text if isinstance(text, Mrkdwn) else cut(text, _NOTE)


def _top(card: ReviewCard) -> list[Json]:
    return [
        header(card.review.title),
        *([] if card.is_open else _settled(card)),
        context(standing(card)),
        *key_fact_blocks(card.review),
        *(context(cut_unless_ours(note)) for note in card.notes[:_MOST_NOTES]),
        *difference(card.changes[:_MOST_CHANGES], _CHANGES),
        divider(),
    ]


def _settled(card: ReviewCard) -> list[Json]:
    who = people([vote.by for vote in card.votes]) if card.votes else mention(card.by)
    parts = [fill(_MARKS[card.status], who=who), fill("draft {version}", version=str(card.version))]
    parts += [moment(card.at)] if card.at else []
    blocks = [section(joined(parts, " · "))]
    if card.status == "approved" and card.undo_until:
        blocks += [section(fill("It goes out {at}. Until then it can be undone.", at=moment(card.undo_until)))]
    if card.reason:
        blocks += [context("Reason"), {"type": "section", "text": plain(card.reason, _REASON)}]
    return blocks


def _field(part: Field) -> list[Json]:
    value, name = shown(part), one_line(part.label, 80)
    if part.kind != "text" and fits(value, _SHORT_FIELD):
        pair = [mrkdwn(fill("*{name}*", name=name)), plain(value, limits.SECTION_FIELD)]
        return [{"type": "section", "fields": pair}]
    size = f"{count(len(value), 'character')}" + (f" · {part.hint}" if part.hint else "")
    return [section(fill("*{name}*  ({size})", name=name, size=one_line(size, _NOTE))), *literal(value)]


def _bottom(card: ReviewCard) -> list[Json]:
    done = [section(cut_unless_ours(line)) for line in card.result[:_MOST_NOTES]]
    if not card.is_open:
        return [*warning_blocks(card.review), *more_fact_blocks(card.review), *done]
    does = fill("*Approve* {does}.", does=what_approving_does(card.review))
    got = [f"{len(card.votes)} of {card.quorum} approvals"] if card.quorum > 1 else []
    got += [fill("approved so far by {who}", who=people([vote.by for vote in card.votes]))] if card.votes else []
    counted = [context(joined(got, " · "))] if got else []
    return [*warning_blocks(card.review), section(does), *counted, *done, divider(), *more_fact_blocks(card.review)]


def _buttons(card: ReviewCard, is_whole: bool) -> list[Json]:
    block_id = f"{card.subject}/decide"
    if card.status == "approved" and card.undo_until:
        undo = button("Undo", actions.UNDO, str(card.subject), says=f"Undo the approval of {card.review.title}")
        return [{"type": "actions", "block_id": block_id, "elements": [undo]}]
    if not card.is_open:
        return []
    read = button("Read it all", actions.READ, str(card.subject), style="" if is_whole else "primary")
    read_too = [] if _shows_facts(card.review) else [read]
    row = [approve_button(card), *decide_buttons(card), *read_too] if is_whole else [read, *decide_buttons(card)]
    return [{"type": "actions", "block_id": block_id, "elements": row}]


def _facts_with_room(review: Review) -> list[Mrkdwn]:
    told = facts(review, _NOTE)
    return told[: sum(1 for room in accumulate(units(fact) + _BETWEEN for fact in told) if room <= _FACTS)]


def _shows_facts(review: Review) -> bool:
    is_whole = len(_facts_with_room(review)) == len(review.facts)
    return is_whole and all(fits(value, _NOTE) for value in review.facts.values())


def _beginning(card: ReviewCard, room: int) -> list[Json]:
    """As much of the draft as there is room for, and a sentence that says what is missing."""
    whole = "\n\n".join(shown(part) for part in card.review.draft.values())
    part = (pieces(whole, max(min(room - 300, limits.SECTION_TEXT), 5)) or [""])[0]
    where = "Read it all before you approve." if card.is_open else "The whole text is kept with the run."
    told = f"These are the first {len(part):,} of {len(whole):,} characters. {where}"
    return [{"type": "section", "text": plain(part, limits.SECTION_TEXT)}, section(f"⚠️ {told}")]


def _whole(card: ReviewCard) -> list[Json]:
    return [*_top(card), *draft_blocks(card.review), *_bottom(card), *_buttons(card, is_whole=True)]


def _room(blocks: Sequence[Json]) -> int:
    return limits.MESSAGE_BLOCKS_TEXT - text_units(list(blocks))


def _confirm(review: Review) -> Json:
    to = ", ".join(dict.fromkeys(release.to for release in review.releases)) or "nobody"
    return confirmation("Approve this?", f"High risk. What you approve goes out to {to} at once.", "Approve")


def _fallback(card: ReviewCard, is_whole: bool) -> str:
    title = one_line(card.review.title, 200)
    if not card.is_open:
        when = f", {utc(card.at)}" if card.at else ""
        return f"{title}: {card.status.replace('_', ' ')}, draft {card.version}{when}"
    begin = one_line(visible(" ".join(shown(part) for part in card.review.draft.values())), 200)
    return f"Please decide: {title}, draft {card.version}" + (f": {begin}" if is_whole else " (long)")
