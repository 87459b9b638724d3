"""The Home tab: what waits for a person, what of theirs waits for others, and what was decided lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.blocks import actions
from bot.blocks.actions import Subject
from bot.blocks.elements import Json, button, context, divider, header, literal, numbered, section
from bot.blocks.phrases import link, mention, moment, releases_are_brief, shown, what_approving_does
from bot.blocks.question import QuestionCard
from bot.blocks.review import ReviewCard, approve_button
from bot.blocks.text import Mrkdwn, cut, fill, fits, hidden, joined, one_line

WAITING_PAGE = 16
OTHERS_SHOWN = 10
_WHOLE_DRAFT = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Something that waits for this person. `may_approve` is False for what they asked for themselves."""

    card: ReviewCard | QuestionCard
    since: datetime
    link: str = ""
    may_approve: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """A run this person asked for, and what it does or waits for ("waiting for a decision since …")."""

    thread_id: str
    title: str
    state: str
    since: datetime
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Something that was settled: how (a sentence), by whom and when."""

    title: str
    outcome: str
    by: str
    at: datetime
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """All that the Home tab shows. The tuples may be whole lists or just the page and the first ones that are shown.

    `waiting` starts at item `page * WAITING_PAGE` of `waiting_total`.
    """

    waiting: tuple[Waiting, ...] = ()
    waiting_total: int = 0
    mine: tuple[Mine, ...] = ()
    mine_total: int = 0
    recent: tuple[Recent, ...] = ()
    page: int = 0
    at: datetime | None = None


def home_view(inbox: Inbox) -> Json:
    """The view for views.publish."""
    blocks = [header("Waiting for you"), *_waiting(inbox), divider(), header("You asked for"), *_mine(inbox)]
    blocks += [divider(), header("Decided lately"), *(_recent(one) for one in inbox.recent[:OTHERS_SHOWN])]
    blocks += [] if inbox.recent else [section("Nothing yet.")]
    blocks += [context(fill("As of {at}.", at=moment(inbox.at)))] if inbox.at else []
    return {"type": "home", "callback_id": "signoff.home", "blocks": numbered(blocks, "home")}


def inbox_page(inbox_total: int, page: int) -> int:
    """The page to show when `page` is asked for: the last one where there are fewer by now."""
    return max(0, min(page, -(-inbox_total // WAITING_PAGE) - 1))


def _waiting(inbox: Inbox) -> list[Json]:
    if not inbox.waiting:
        return [section("Nothing waits for you. 🌲")]
    items = inbox.waiting[:WAITING_PAGE]
    total = max(inbox.waiting_total, inbox.page * WAITING_PAGE + len(items))
    return [
        *(block for number, item in enumerate(items) for block in _item(item, number)),
        *_turning(inbox, total, len(items)),
    ]


def _turning(inbox: Inbox, total: int, here: int) -> list[Json]:
    first = inbox.page * WAITING_PAGE
    if total <= here:
        return []
    row = [button("Back", actions.HOME_BACK, str(inbox.page - 1))] if inbox.page else []
    row += [button("More", actions.HOME_ON, str(inbox.page + 1))] if first + here < total else []
    told = context(f"{first + 1} to {first + here} of {total:,}")
    return [told, {"type": "actions", "block_id": "home/turn", "elements": row}] if row else [told]


def _item(item: Waiting, number: int) -> list[Json]:
    if isinstance(item.card, QuestionCard):
        return _question(item, item.card, number)
    return _review(item, item.card, number)


def _review(item: Waiting, card: ReviewCard, number: int) -> list[Json]:
    parts = card.review.draft.values()
    whole = "\n".join(f"{part.label}: {shown(part)}" if len(parts) > 1 else shown(part) for part in parts)
    # Only what can be read here in full can be approved here.
    is_whole = fits(whole, _WHOLE_DRAFT) and not hidden(whole) and releases_are_brief(card.review)
    risk = Mrkdwn(" · ⚠️ *high risk*") if card.review.risk == "high" else Mrkdwn("")
    about = _about(card.review.title, f"draft {card.version}", card.requester, item, risk)
    row = [approve_button(card)] if is_whole and item.may_approve and card.is_open else []
    row += [button("Open", actions.READ, str(card.subject), says=f"Open {card.review.title}")]
    does = [context(fill("Approve {does}.", does=what_approving_does(card.review)))] if len(row) > 1 else []
    return [about, *literal(whole if is_whole else cut(whole, _WHOLE_DRAFT)), *does, _row(card.subject, number, row)]


def _question(item: Waiting, card: QuestionCard, number: int) -> list[Json]:
    about = _about(card.title, "a question", card.requester, item, Mrkdwn(""))
    answer = button("Answer", actions.ANSWER, str(card.subject), style="primary", says=f"Answer: {card.question.text}")
    return [about, *literal(cut(card.question.text, _WHOLE_DRAFT)), _row(card.subject, number, [answer])]


def _row(subject: Subject, number: int, row: list[Json]) -> Json:
    return {"type": "actions", "block_id": f"{subject}/home{number}", "elements": row}


def _about(title: str, what: str, requester: str, item: Waiting, risk: Mrkdwn) -> Json:
    name = fill("*{title}*", title=_titled(title, item.link))
    parts = [what, fill("asked by {who}", who=mention(requester)), fill("{at}", at=moment(item.since))]
    return section(joined([name, Mrkdwn(joined(parts, " · ") + risk)]))


def _mine(inbox: Inbox) -> list[Json]:
    if not inbox.mine:
        return [section("Nothing of yours is under way.")]
    shown_ones = inbox.mine[:OTHERS_SHOWN]
    rest = max(inbox.mine_total, len(inbox.mine)) - len(shown_ones)
    return [*map(_my_run, shown_ones), *([context(f"and {rest:,} more")] if rest else [])]


def _my_run(run: Mine) -> Json:
    parts = [cut(run.state, 200), fill("since {at}", at=moment(run.since))]
    told = joined([fill("*{title}*", title=_titled(run.title, run.link)), joined(parts, " · ")])
    log = button("Run log", actions.LOG, run.thread_id, says=f"Run log of {run.title}")
    return section(told) | {"accessory": log}


def _recent(one: Recent) -> Json:
    parts = [cut(one.outcome, 200), fill("by {who}", who=mention(one.by)), moment(one.at)]
    return section(joined([fill("*{title}*", title=_titled(one.title, one.link)), joined(parts, " · ")]))


def _titled(title: str, url: str) -> str:
    name = one_line(title, 150) or "Untitled"
    return link(url, name) if url else name
