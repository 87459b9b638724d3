"""The App Home inbox: what waits for a person, what of theirs waits for others, what was decided lately."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlmodel import col, select

from bot import pictures
from bot.blocks.home import OTHERS_SHOWN, WAITING_PAGE, Inbox, Mine, Recent, Waiting, home_view, inbox_page
from bot.blocks.question import EffectCard
from bot.parts import Parts
from bot.slack import Posted, Slack
from storage import approvals, board, runs
from storage.refusals import barred
from storage.tables import ApprovalRow, from_micros

LONGEST = 500  # open approvals that are looked through for one person


def publish(parts: Parts, slack: Slack, user: str, page: int = 0) -> None:
    """Show a person's Home tab as things stand."""
    slack.publish_home(user, home_view(inbox_of(parts, slack, user, page)))


def inbox_of(parts: Parts, slack: Slack, user: str, page: int = 0) -> Inbox:
    """What a person's Home tab shows."""
    link = partial(_link, parts, slack)
    waiting = [one for one in approvals.open_for(parts.database, limit=LONGEST) if _concerns(parts, user, one)]
    page = inbox_page(len(waiting), page)
    here = waiting[page * WAITING_PAGE : (page + 1) * WAITING_PAGE]
    mine = [run for run in runs.recent(parts.database, 100, user) if not run.ending]
    return Inbox(
        waiting=tuple(_waiting(parts, user, one, link(one)) for one in here),
        waiting_total=len(waiting),
        mine=tuple(
            Mine(
                thread_id=run.thread_id,
                title=pictures.request_of(parts, run) or run.flow,
                state=pictures.run_card(parts, run).state,
                since=run.created_at,
            )
            for run in mine[:OTHERS_SHOWN]
        ),
        mine_total=len(mine),
        recent=tuple(_recent(parts, one) for one in _decided(parts, user)),
        page=page,
        at=from_micros(parts.database.now()),
    )


def _concerns(parts: Parts, user: str, asked: ApprovalRow) -> bool:
    """Whether this person may settle it. A doubt about an effect is settled on its card, with its text in view."""
    if asked.kind == "effect" or (asked.channel and user not in parts.people.members(asked.channel)):
        return False
    return user != barred(asked)


def _waiting(parts: Parts, user: str, asked: ApprovalRow, link: str) -> Waiting:
    card = pictures.card_of(parts, asked)
    assert not isinstance(card, EffectCard)
    return Waiting(card=card, since=asked.created_at, link=link, may_approve=user != barred(asked))


def _link(parts: Parts, slack: Slack, asked: ApprovalRow) -> str:
    card = board.find(parts.database, "approval", asked.id)
    return slack.permalink(Posted(card.channel, card.ts)) if card and card.ts else ""


def _decided(parts: Parts, user: str) -> Sequence[ApprovalRow]:
    query = (
        select(ApprovalRow)
        .where(col(ApprovalRow.settled_at).is_not(None), ApprovalRow.kind != "signal")
        .order_by(col(ApprovalRow.settled_at).desc())
        .limit(OTHERS_SHOWN * 5)
    )
    with parts.database.read() as session:
        found = session.exec(query).all()
    return [one for one in found if not one.channel or user in parts.people.members(one.channel)][:OTHERS_SHOWN]


def _recent(parts: Parts, asked: ApprovalRow) -> Recent:
    clicks = [click for click in approvals.decisions_of(parts.database, asked.id) if click.counted]
    return Recent(
        title=asked.subject,
        outcome=asked.status.replace("_", " ").replace("final", "approved"),
        by=clicks[-1].who if clicks else asked.requester,
        at=asked.settled_at or asked.created_at,
    )
