"""What one window shows: as whom, which conversation, which thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.sandbox.markup import Html, element
from bot.sandbox.mrkdwn import Reader
from bot.sandbox.records import APP_NAME, BOT_USER, SLACKBOT, Channel, Person
from bot.sandbox.workspace import Workspace

HOME = "home"


@dataclass(frozen=True, slots=True)
class Screen:
    """`channel` is None on the app's Home tab; `since` is the ts of what had been read when the window was opened."""

    workspace: Workspace
    me: Person
    reader: Reader
    channel: Channel | None
    thread: str = ""
    since: str = ""

    def others(self) -> list[Person]:
        """The other people who can be looked at in a window of their own."""
        return [one for one in self.workspace.people() if is_human(one) and one.id != self.me.id]


def reader_of(workspace: Workspace, me: Person) -> Reader:
    """Names and time zone as this person sees them."""
    channels = {one.id: one.name for one in workspace.channels_of(me.id) if one.name}
    zone = zone_of(me)
    today = datetime.fromtimestamp(workspace.clock(), zone).date()
    return Reader(me.id, zone, short_names(workspace.people()), channels, today)


def is_human(person: Person) -> bool:
    """Whether somebody can sit in front of a window as this person."""
    return not person.is_bot and not person.deleted


def address(person: str, channel: str = "", thread: str = "") -> str:
    """The address of a window."""
    query = {"as": person, "channel": channel, "thread": thread}
    return "/?" + urlencode({key: value for key, value in query.items() if value})


def zone_of(person: Person) -> ZoneInfo:
    """The person's time zone; UTC where the name is unknown."""
    try:
        return ZoneInfo(person.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("Etc/UTC")


def short_names(people: Iterable[Person]) -> dict[str, str]:
    """First names by id; the full name where two people share the first."""
    everyone = list(people)
    shared = Counter(first_name(one) for one in everyone)
    return {one.id: full_name(one) if shared[first_name(one)] > 1 else first_name(one) for one in everyone}


def full_name(person: Person) -> str:
    """The name a message is signed with."""
    return person.real_name or person.name


def first_name(person: Person) -> str:
    """What colleagues call them."""
    return (full_name(person).split() or [person.id])[0]


def ts_moment(ts: str) -> datetime:
    """The time in a message's ts."""
    return datetime.fromtimestamp(float(ts), UTC)


def title_of(screen: Screen) -> str:
    """The name a person sees on the open conversation: the channel's, or the other person's."""
    channel, me = screen.channel, screen.me.id
    if channel is None or counterpart(channel, me) == BOT_USER:
        return APP_NAME
    return channel.name or screen.reader.people.get(counterpart(channel, me), channel.id)


def counterpart(channel: Channel, me: str) -> str:
    """The other member of a direct message, oneself in a conversation with oneself; empty for a channel."""
    return next((one for one in channel.members if one != me), me) if channel.kind == "im" else ""


def avatar(person: str, name: str) -> Html:
    """A picture made of the first letter; the app has a sign of its own."""
    shade = f"avatar shade-{sum(person.encode()) % 8}"
    if person in (BOT_USER, SLACKBOT):
        return element("span", "✓" if person == BOT_USER else "#", class_=f"{shade} is-app", aria_hidden="true")
    return element("span", name[:1].upper(), class_=shade, aria_hidden="true")
