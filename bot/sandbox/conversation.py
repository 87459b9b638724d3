"""A conversation as a list of keyed pieces: messages, day dividers and the line above what is new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date

from bot.sandbox.markup import element, stamped
from bot.sandbox.messages import Drawings, Drawn, Piece, Replies, trouble_of
from bot.sandbox.records import APP_NAME, BOT_USER, Channel, Delivery, Message
from bot.sandbox.screen import Screen, counterpart, title_of, ts_moment

SHOWN = 100
_GROUP_SECONDS = 300


def conversation(screen: Screen, drawings: Drawings | None = None) -> list[Piece]:
    """The open channel or direct message, oldest first, at most the `SHOWN` latest messages."""
    if screen.channel is None:
        return []
    below = _replies(screen.workspace.replies(screen.channel.id, screen.me.id))
    found = screen.workspace.messages(screen.channel.id, screen.me.id)
    drawn = [Drawn(one, screen, f"m-{one.ts}", below=below.get(one.ts)) for one in found[-SHOWN:]]
    start = _start(screen, screen.channel) if len(found) <= SHOWN else _earlier()
    return [start, *_pieces(drawn, screen, drawings or Drawings(), "m", screen.since)]


def thread(screen: Screen, drawings: Drawings | None = None) -> list[Piece]:
    """The open thread with its first message, oldest first."""
    if screen.channel is None or not screen.thread:
        return []
    found = screen.workspace.messages(screen.channel.id, screen.me.id, screen.thread)[-SHOWN:]
    drawn = [Drawn(one, screen, f"t-{one.ts}", in_thread=True) for one in found]
    return list(_pieces(drawn, screen, drawings or Drawings(), "t"))


def _earlier() -> Piece:
    note = element("p", "Earlier messages are not shown here.")
    return Piece("start", stamped("div", note, class_="intro", id="start"))


def _start(screen: Screen, channel: Channel) -> Piece:
    """What a newcomer reads above the first message, and in an empty conversation."""
    if counterpart(channel, screen.me.id) == BOT_USER:
        about = f"{APP_NAME} writes to you here about what concerns you alone."
    else:
        about = f"Type / in the box below to see what {APP_NAME} can do here, or write to the others as usual."
    sign = "#" if channel.kind != "im" else ""
    title = element("h2", f"This is the very beginning of {sign}{title_of(screen)}")
    return Piece("start", stamped("div", title, element("p", about), class_="intro", id="start"))


def _replies(messages: list[Message]) -> dict[str, Replies]:
    """The answers below each message, by its ts."""
    below: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        below[str(message.thread_ts)].append(message)
    return {
        ts: Replies(len(found), found[-1].ts, tuple(dict.fromkeys(one.user for one in found)))
        for ts, found in below.items()
    }


def _pieces(drawn: list[Drawn], screen: Screen, drawings: Drawings, prefix: str, since: str = "0") -> Iterator[Piece]:
    troubles = _troubles(screen.workspace.deliveries(), screen.me.id)
    first_new = _first_new(drawn, screen.me.id, float(since or 0))
    before: Drawn | None = None
    for one in drawn:
        day = _day_of(one.message, screen)
        if before is None or _day_of(before.message, screen) != day:
            before = None
            yield _day(day, screen, prefix)
        if one is first_new:
            before = None
            yield Piece("new", stamped("div", element("span", "New"), class_="new", id="new", role="separator"))
        compact = before is not None and _together(before.message, one.message)
        yield drawings.piece(replace(one, compact=compact, trouble=troubles.get(one.message.ts, "")))
        before = one


def _first_new(drawn: list[Drawn], me: str, since: float) -> Drawn | None:
    """The first message of somebody else after `since`; None where the person had never been here."""
    fresh = (one for one in drawn if float(one.message.ts) > since and one.message.user != me)
    return next(fresh, None) if since else None


def _together(before: Message, message: Message) -> bool:
    """Whether two neighbours share one heading, as Slack groups them."""
    same = (before.user, before.ephemeral_to) == (message.user, message.ephemeral_to)
    return same and float(message.ts) - float(before.ts) < _GROUP_SECONDS


def _day_of(message: Message, screen: Screen) -> date:
    return ts_moment(message.ts).astimezone(screen.reader.zone).date()


def _day(day: date, screen: Screen, prefix: str) -> Piece:
    key = f"{prefix}-day-{day.isoformat()}"
    ago = (screen.reader.today - day).days if screen.reader.today else None
    name = {0: "Today", 1: "Yesterday"}.get(-1 if ago is None else ago, f"{day:%A, %B} {day.day}")
    return Piece(key, stamped("div", element("span", name), class_="day", id=key, role="separator"))


def _troubles(deliveries: list[Delivery], me: str) -> Mapping[str, str]:
    """What went wrong with the latest press on each message, by its ts."""
    latest = {one.message_ts: one for one in deliveries if one.user == me and one.message_ts}
    return {ts: trouble for ts, one in latest.items() if (trouble := trouble_of(one))}
