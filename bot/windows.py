"""The windows that buttons and commands open: a loading view at once, then what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from bot import pictures
from bot.blocks import actions
from bot.blocks.actions import Malformed, RunPage, Subject, page_of, subject_of
from bot.blocks.modals import (
    StartForm,
    answer_view,
    changes_view,
    decline_view,
    edit_view,
    loading_view,
    message_view,
    start_view,
)
from bot.blocks.notes import CLICK_AGAIN
from bot.blocks.question import QuestionCard
from bot.blocks.reading import log_view, read_view
from bot.blocks.review import ReviewCard
from bot.clicks import Click
from bot.deliveries import answer_click
from bot.desk import Desk
from bot.home import publish
from bot.slack import Refused
from graphs.flow import Flow
from storage import approvals, runs
from storage.refusals import barred

log = structlog.get_logger(__name__)
View = dict[str, Any]
TITLES = {
    actions.EDIT: "Edit",
    actions.DECLINE: "Decline",
    actions.CHANGES: "Request changes",
    actions.ANSWER: "Answer",
    actions.READ: "Draft",
    actions.LOG: "Run log",
}
"""Buttons that open a window, and what it is called while it loads."""

TURNS = {actions.READ_BACK, actions.READ_ON, actions.LOG_BACK, actions.LOG_ON}
"""Buttons inside a window that show another page of it."""

HOME_TURNS = {actions.HOME_BACK, actions.HOME_ON}


def open_window(desk: Desk, click: Click) -> None:
    """Open the window of a button: first one that says so, because the right to open it lasts three seconds."""
    loading = loading_view(TITLES[click.name])
    try:
        in_modal = click.view_id and not click.home
        opener = desk.slack.push_view if in_modal else desk.slack.open_view
        view_id = opener(click.trigger_id, loading)
    except Refused as error:
        log.info("window not opened", action=click.name, code=error.code)
        answer_click(desk, click, CLICK_AGAIN)
        return
    _fill(desk, click, view_id)


def _fill(desk: Desk, click: Click, view_id: str) -> None:
    try:
        desk.slack.update_view(view_id, view_for(desk, click))
    except Refused as error:
        log.info("window not filled", action=click.name, code=error.code)
        if error.code != "not_found":  # closed while it was loading
            answer_click(desk, click, CLICK_AGAIN)


def turn_page(desk: Desk, click: Click) -> None:
    """Show another page in the window the click came from."""
    _fill(desk, click, click.view_id)


def turn_home(desk: Desk, click: Click) -> None:
    """Show another page of the Home tab."""
    publish(desk.parts, desk.slack, click.user, page_of(click.action))


def view_for(desk: Desk, click: Click) -> View:
    """What the window of a click shows; a sentence where there is nothing to do any more."""
    try:
        if click.name in (actions.LOG, actions.LOG_BACK, actions.LOG_ON):
            return _log(desk, RunPage.parse(str(click.action.get("value", ""))))
        return _about_approval(desk, click, subject_of(click.action))
    except Malformed as error:
        return message_view("Not now", str(error))


def _log(desk: Desk, wanted: RunPage) -> View:
    run = runs.find(desk.parts.database, wanted.thread_id)
    if run is None:
        return message_view("Run log", "That run is gone.")
    return log_view(pictures.run_log(desk.parts, run), wanted.page)


def _about_approval(desk: Desk, click: Click, subject: Subject) -> View:
    asked = approvals.find(desk.parts.database, subject.id)
    if asked is None:
        return message_view("Not now", "This is no longer asked.")
    card = pictures.card_of(desk.parts, asked)
    if isinstance(card, ReviewCard) and click.name in (actions.READ, actions.READ_BACK, actions.READ_ON):
        return read_view(card, subject.page, may_decide=click.user != barred(asked))
    if asked.status != "pending":
        return message_view(
            "Not now", f"This was {asked.status.replace('_', ' ').replace('final', 'approved')} already."
        )
    if subject.version != card.version:
        return message_view(
            "Not now", f"There is a newer draft now, number {card.version}. Please use the newest card."
        )
    if isinstance(card, QuestionCard):
        return answer_view(card)
    if not isinstance(card, ReviewCard):
        return message_view("Not now", "Use the buttons on the card.")
    if click.name == actions.EDIT:
        return edit_view(card, may_approve=click.user != barred(asked))
    return _COMMENTS[click.name](card)


_COMMENTS: Mapping[str, Callable[[ReviewCard], View]] = {
    actions.DECLINE: decline_view,
    actions.CHANGES: changes_view,
}


def start_form(flow: Flow, metadata: str) -> View:
    """A flow's form, for its command without a text."""
    form = StartForm(
        title=flow.name.replace("_", " ").capitalize(), fields=flow.form, usage=flow.usage, metadata=metadata
    )
    return start_view(form)
