"""Short messages to one person: why a click did not count, a reminder, what became of a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bot.blocks.elements import Json, context, message, section
from bot.blocks.phrases import link, mention, moment, people
from bot.blocks.run import EndingNotice, ending_message
from bot.blocks.text import Mrkdwn, cut, fill, joined, one_line

_TEXT = 2_500

NOT_COUNTED: Final = "The click did not count: the database did not answer in time. Please click again."
GIVEN_UP: Final = "This could not be done, and trying several times did not help. Please try again later."
OUT_OF_DATE: Final = "The click did not count: this card is out of date. Please use the newest one."
CLICK_AGAIN: Final = "Slack gave up before the window could open. Please click again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A nudge about an open card: `users` are reminded the `nth` time; `card` is its address."""

    title: str
    users: tuple[str, ...]
    requester: str
    since: datetime
    card: str = ""
    expires_at: datetime | None = None
    nth: int = 1
    is_escalated: bool = False


def note(text: str) -> Json:
    """One sentence or two, only for whoever clicked or typed; raw text is escaped."""
    shown = text if isinstance(text, Mrkdwn) else fill("{text}", text=cut(text, _TEXT))
    return message(shown, [section(shown)], "note")


def reminder_message(reminder: Reminder) -> Json:
    """Who is waited for, for what, since when."""
    title = one_line(reminder.title, 200)
    begin = (
        "📣 Nobody has decided yet, so this comes to you too" if reminder.is_escalated else "🔔 Still waiting for you"
    )
    told = fill("{who}: {begin}: *{title}*", who=people(reminder.users), begin=begin, title=title)
    parts = [fill("asked by {who} {at}", who=mention(reminder.requester), at=moment(reminder.since))]
    parts += [fill("expires {at}", at=moment(reminder.expires_at))] if reminder.expires_at else []
    parts += [link(reminder.card, "Open the card")] if reminder.card else []
    return message(f"Still waiting: {title}", [section(told), context(joined(parts, " · "))], "reminder")


def told_message(notice: EndingNotice) -> Json:
    """How a run ended, for whoever asked for it, as a direct message."""
    told = ending_message(notice)
    return told | {"text": f"Your request: {told['text']}"}
