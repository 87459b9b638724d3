"""Windows to read in, a page at a time: all of a long draft with what stands behind it, and the log of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from bot.blocks import actions
from bot.blocks.actions import RunPage, Subject
from bot.blocks.elements import (
    Json,
    button,
    context,
    divider,
    field_sections,
    header,
    literal,
    modal,
    option,
    section,
    text_units,
)
from bot.blocks.fields import block_id_of, input_block
from bot.blocks.phrases import duration, facts, sent, shown
from bot.blocks.review import ReviewCard, decide_buttons, standing, warning_blocks
from bot.blocks.run import NOTHING, Spent, spent_line
from bot.blocks.text import fill, fits, joined, one_line
from graphs.flow import Review

READ_ALL: Final = "read"
_PAGE_UNITS = 12_000
_PAGE_BLOCKS = 60
_LOG_PAGE = 40
_SHORT_FACT = 200


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """One checkpoint: its number, the node (or source), what came next, tokens, and how long it took."""

    number: int
    node: str
    next: tuple[str, ...] = ()
    tokens: int = 0
    took: timedelta | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog:
    """A run step by step."""

    thread_id: str
    title: str
    steps: tuple[LoggedStep, ...]
    spent: Spent = NOTHING


def read_view(card: ReviewCard, page: int = 0, *, may_decide: bool = True) -> Json:
    """A page of the whole draft, its facts and its releases. Only the last one, reached through all others, approves.

    Submitting it is an approval: `callback_id` is `actions.APPROVE`, `private_metadata` the subject. Where the risk is
    high, it needs a tick as well.
    """
    pages = _pages(_everything(card))
    page = max(0, min(page, len(pages) - 1))
    is_last = page == len(pages) - 1
    asks = is_last and may_decide and card.is_open
    subject = Subject(card.id, card.version, page)
    blocks = [context(standing(card)), *pages[page], *_turning(subject, page, len(pages))]
    if asks:
        blocks += [_tick(subject)] if card.review.risk == "high" else []
        blocks += [{"type": "actions", "block_id": f"{card.subject}/decide", "elements": decide_buttons(card)}]
    callback_id = actions.APPROVE if asks else actions.NOTICE
    return modal(callback_id, card.review.title, blocks, metadata=str(subject), submit="Approve" if asks else "")


def has_ticked(state: Mapping[str, Any]) -> bool:
    """Whether the tick of a high risk was set; True where there was none to set."""
    for block_id, contents in dict(state.get("values") or {}).items():
        if str(block_id).partition("/")[2] == f"{READ_ALL}/0":
            return bool((contents.get(actions.FIELD) or {}).get("selected_options"))
    return True


def log_view(log: RunLog, page: int = 0) -> Json:
    """A page of a run's log, the newest step on the last page."""
    count = max(1, -(-len(log.steps) // _LOG_PAGE))
    page = max(0, min(page, count - 1))
    steps = log.steps[page * _LOG_PAGE : (page + 1) * _LOG_PAGE]
    lines = [section(_step(step)) for step in steps] or [section("No step has been taken yet.")]
    back = button("Earlier", actions.LOG_BACK, str(RunPage(log.thread_id, page - 1)))
    on = button("Later", actions.LOG_ON, str(RunPage(log.thread_id, page + 1)))
    row = [*([back] if page else []), *([on] if page < count - 1 else [])]
    turning = [{"type": "actions", "block_id": f"run/{log.thread_id}/turn", "elements": row}] if row else []
    where = f"page {page + 1} of {count}" if count > 1 else ""
    told = context(joined([one_line(log.title, 200), spent_line(log.spent), where], " · "))
    return modal(actions.NOTICE, "Run log", [told, *lines, *turning],
                 metadata=str(RunPage(log.thread_id, page)))  # fmt: skip


def _step(step: LoggedStep) -> str:
    took = duration(step.took) if step.took and step.took >= timedelta(seconds=1) else ""
    took = f"{step.took / timedelta(milliseconds=1):,.0f} ms" if step.took and not took else took
    tokens = f"{step.tokens:,} tokens" if step.tokens else ""
    to = fill("→ {next}", next=one_line(", ".join(step.next), 200)) if step.next else ""
    name = fill("*{n}* {node}", n=str(step.number), node=one_line(step.node, 100))
    return joined([joined([name, to], " "), took, tokens, one_line(step.note, 300)], " · ")


def _everything(card: ReviewCard) -> list[Json]:
    """All there is to read, in blocks each small enough for a page."""
    review = card.review
    blocks: list[Json] = []
    for part in review.draft.values():
        blocks += [header(part.label), *literal(shown(part))]
    blocks += warning_blocks(review)
    blocks += [divider(), *_releases(review)] if review.releases else []
    blocks += [divider(), *_facts(review)] if review.facts else []
    return blocks


def _facts(review: Review) -> list[Json]:
    short = {name: value for name, value in review.facts.items() if fits(value, _SHORT_FACT)}
    blocks = field_sections(facts(review.model_copy(update={"facts": short}), _SHORT_FACT))
    for name in (name for name in review.facts if name not in short):
        blocks += [section(fill("*{name}*", name=one_line(name, 200))), *literal(review.facts[name])]
    return blocks


def _releases(review: Review) -> list[Json]:
    told = [section("*Approving lets out*")]
    for release in review.releases:
        field = review.draft.get(release.content)
        what = one_line(field.label if field else release.content, 200)
        # An address that would be cut is shown letter by letter.
        is_brief = fits(release.to, _SHORT_FACT // 2)
        line = sent(release.kind, release.to if is_brief else "the address below")
        told.append(section(fill("• {line}: {what}", line=line, what=what)))
        told += [] if is_brief else literal(release.to)
    return told


def _pages(blocks: Sequence[Json]) -> list[list[Json]]:
    pages: list[list[Json]] = [[]]
    room = _PAGE_UNITS
    for block in blocks:
        size = text_units(block)
        if pages[-1] and (size > room or len(pages[-1]) >= _PAGE_BLOCKS):
            pages.append([])
            room = _PAGE_UNITS
        pages[-1].append(block)
        room -= size
    return pages


def _turning(subject: Subject, page: int, count: int) -> list[Json]:
    if count == 1:
        return []
    back = button("Back", actions.READ_BACK, str(Subject(subject.id, subject.version, page - 1)))
    on = button("Read on", actions.READ_ON, str(Subject(subject.id, subject.version, page + 1)), style="primary")
    row = [*([back] if page else []), *([on] if page < count - 1 else [])]
    told = "" if page == count - 1 else " Approve is on the last page."
    return [
        context(f"Page {page + 1} of {count}.{told}"),
        {"type": "actions", "block_id": f"{subject.id}:{subject.version}/turn{page}", "elements": row},
    ]


def _tick(subject: Subject) -> Json:
    box = {"type": "checkboxes", "options": [option("I have read all of it, and it may go out", "read")]}
    return input_block(block_id_of(f"{subject.id}:{subject.version}", READ_ALL), "High risk", box)
