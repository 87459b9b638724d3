"""Everything one Slack workspace knows, kept in memory, written to a file, and told to whoever listens."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from bot.sandbox.journal import Journal
from bot.sandbox.records import (
    APP_ID,
    BOT_ID,
    BOT_USER,
    DEFAULT_CHANNELS,
    DEFAULT_PEOPLE,
    SLACKBOT,
    TEAM_DOMAIN,
    TEAM_ID,
    TEAM_NAME,
    Change,
    ChangeKind,
    Channel,
    Delivery,
    JsonObject,
    Message,
    Person,
    Timing,
    Unread,
    View,
)
from bot.sandbox.subscription import Subscription

__all__ = [
    "APP_ID",
    "BOT_ID",
    "BOT_USER",
    "SLACKBOT",
    "TEAM_DOMAIN",
    "TEAM_ID",
    "TEAM_NAME",
    "Change",
    "Channel",
    "Delivery",
    "Message",
    "Person",
    "Subscription",
    "Timing",
    "Unread",
    "View",
    "Workspace",
]

T = TypeVar("T")
_NEVER_READ = "0000000000.000000"
_KEPT_DELIVERIES = 500


class Workspace:
    """One team with its people, channels, messages, views and deliveries; safe to use from any thread.

    With a path, people, channels, messages, home views and what was read survive a restart; modals, private answers
    and deliveries do not, as in Slack when the window is closed.
    """

    def __init__(
        self, path: Path | None = None, *, timing: Timing | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.timing = timing or Timing()
        self.clock = clock
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._journal = Journal(path)
        self._subscriptions: list[Subscription] = []
        self._people: dict[str, Person] = {}
        self._channels: dict[str, Channel] = {}
        self._messages: dict[str, dict[str, Message]] = {}
        self._views: dict[str, View] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._last_read: dict[tuple[str, str], str] = {}
        self._last_micros = 0
        self._sequence = itertools.count(1)
        self._ids = itertools.count(int(clock() * 1000))
        self._load()

    # --- listening -------------------------------------------------------------------------------------------------

    def subscribe(self, person: str | None = None) -> Subscription:
        """The changes that concern this person (None: all of them) from now on; close it when done."""
        with self.lock:
            subscription = Subscription(person, self._forget)
            self._subscriptions.append(subscription)
            return subscription

    def wait(self, predicate: Callable[[], T], timeout: float = 5.0) -> T:
        """The first true value of `predicate`, asked anew after every change; its last value once time is up."""
        with self._changed:
            return self._changed.wait_for(predicate, timeout)

    def announce(
        self, what: ChangeKind, id: str = "", *, channel: str = "", audience: Iterable[str] | None = None
    ) -> None:
        """Tell every listener and everyone who waits that something changed."""
        with self._changed:
            heard_by = None if audience is None else frozenset(audience)
            change = Change(next(self._sequence), what, id, channel, heard_by)
            for subscription in tuple(self._subscriptions):
                subscription.offer(change)
            self._changed.notify_all()

    # --- people ----------------------------------------------------------------------------------------------------

    def people(self) -> list[Person]:
        """Everyone, bots included, in the order they joined."""
        with self.lock:
            return list(self._people.values())

    def person(self, id: str) -> Person | None:
        """The person with this id, or None."""
        return self._people.get(id)

    def put_person(self, person: Person) -> Person:
        """Add or change a person."""
        with self.lock:
            self._people[person.id] = person
            self._journal.save("person", person.id, asdict(person))
            self.announce("person", person.id)
            return person

    # --- channels --------------------------------------------------------------------------------------------------

    def channels(self) -> list[Channel]:
        """Every conversation there is, direct messages included."""
        with self.lock:
            return list(self._channels.values())

    def channel(self, id: str) -> Channel | None:
        """The conversation with this id, or None."""
        return self._channels.get(id)

    def channels_of(self, person: str) -> list[Channel]:
        """What this person's sidebar may show: public channels, and the private ones they are in."""
        return [one for one in self.channels() if one.kind == "public" or person in one.members]

    def put_channel(self, channel: Channel) -> Channel:
        """Add a channel or change its name, members or archived flag."""
        with self.lock:
            self._channels[channel.id] = channel
            self._journal.save("channel", channel.id, asdict(channel))
            self.announce("channel", channel.id, channel=channel.id)
            return channel

    def join(self, channel: str, person: str) -> Channel:
        """Make a person (or the bot) a member."""
        with self.lock:
            found = self._channels[channel]
            members = (*(one for one in found.members if one != person), person)
            return self.put_channel(replace(found, members=members))

    def leave(self, channel: str, person: str) -> Channel:
        """Remove a person (or the bot) from a channel."""
        with self.lock:
            found = self._channels[channel]
            return self.put_channel(replace(found, members=tuple(one for one in found.members if one != person)))

    def direct_message(self, one: str, other: str) -> Channel:
        """The direct conversation of two people, opened if there is none yet."""
        with self.lock:
            for channel in self._channels.values():
                if channel.kind == "im" and set(channel.members) == {one, other}:
                    return channel
            number = sum(channel.kind == "im" for channel in self._channels.values()) + 1
            return self.put_channel(Channel(f"D0DIRECT{number:03d}", "", "im", (one, other), created=int(self.clock())))

    # --- messages --------------------------------------------------------------------------------------------------

    def next_ts(self) -> str:
        """A timestamp in Slack's form, later than every one before."""
        with self.lock:
            self._last_micros = max(self._last_micros + 1, int(self.clock() * 1_000_000))
            return f"{self._last_micros // 1_000_000}.{self._last_micros % 1_000_000:06d}"

    def post(self, channel: str, user: str, text: str, **fields: Any) -> Message:
        """Add a message; `fields` are further fields of `Message`."""
        with self.lock:
            return self.put_message(Message(self.next_ts(), channel, user, text, **fields))

    def put_message(self, message: Message) -> Message:
        """Add a message, or replace the one with its channel and ts."""
        with self.lock:
            self._messages.setdefault(message.channel, {})[message.ts] = message
            if message.ephemeral_to is None:
                self._journal.save("message", f"{message.ts} {message.channel}", asdict(message))
            self.announce("message", message.ts, channel=message.channel, audience=self.audience(message))
            return message

    def delete_message(self, channel: str, ts: str) -> bool:
        """Remove a message for everyone; False when there is none."""
        with self.lock:
            message = self.message(channel, ts)
            if message is None:
                return False
            del self._messages[channel][ts]
            self._journal.remove("message", f"{ts} {channel}")
            self.announce("message", ts, channel=channel, audience=self.audience(message))
            return True

    def message(self, channel: str, ts: str) -> Message | None:
        """The message as it is now, private answers included, or None."""
        return self._messages.get(channel, {}).get(ts)

    def messages(self, channel: str, viewer: str | None = None, thread_ts: str | None = None) -> list[Message]:
        """What a channel shows, oldest first.

        `viewer` adds the private answers that person sees; `thread_ts` gives a thread with its first message instead
        of the channel (where replies are left out).
        """
        with self.lock:
            kept = self._messages.get(channel, {}).values()
            seen = [
                one for one in kept if one.ephemeral_to is None or (viewer is not None and one.ephemeral_to == viewer)
            ]
        shown = [one for one in seen if (thread_ts in (one.ts, one.thread_ts) if thread_ts else not one.is_reply)]
        return sorted(shown, key=lambda one: one.ts)

    def replies(self, channel: str, viewer: str | None = None) -> list[Message]:
        """Every answer in every thread of a channel that this person may see, oldest first."""
        with self.lock:
            kept = [one for one in self._messages.get(channel, {}).values() if one.is_reply]
        return sorted((one for one in kept if one.ephemeral_to in (None, viewer)), key=lambda one: one.ts)

    def audience(self, message: Message) -> frozenset[str] | None:
        """Who may see a message: None for everyone."""
        if message.ephemeral_to is not None:
            return frozenset((message.ephemeral_to,))
        channel = self._channels.get(message.channel)
        return None if channel is None or channel.kind == "public" else frozenset(channel.members)

    # --- reading ---------------------------------------------------------------------------------------------------

    def mark_read(self, person: str, channel: str) -> None:
        """This person has seen all there is in the channel."""
        with self.lock:
            shown = self.messages(channel, person)
            latest = shown[-1].ts if shown else _NEVER_READ
            if latest == self.last_read(person, channel):
                return
            self._last_read[person, channel] = latest
            body = {"person": person, "channel": channel, "ts": latest}
            self._journal.save("last_read", f"{person} {channel}", body)
            self.announce("unread", channel, channel=channel, audience=(person,))

    def last_read(self, person: str, channel: str) -> str:
        """The ts of the newest message the person has seen."""
        return self._last_read.get((person, channel), _NEVER_READ)

    def unread(self, person: str) -> dict[str, Unread]:
        """What is new to this person, by channel id; channels without news are included with a count of 0."""
        return {channel.id: self._unread_of(person, channel.id) for channel in self.channels_of(person)}

    def _unread_of(self, person: str, channel: str) -> Unread:
        since = self.last_read(person, channel)
        new = [one for one in self.messages(channel, person) if one.ts > since and one.user != person]
        mentions = sum(f"<@{person}" in one.text for one in new)
        return Unread(channel, len(new), mentions, since)

    # --- views -----------------------------------------------------------------------------------------------------

    def put_view(self, view: View) -> View:
        """Show a view, or replace the one with its id."""
        with self.lock:
            self._views[view.id] = view
            if view.kind == "home":
                self._journal.save("view", view.id, asdict(view))
            self.announce("view", view.id, audience=(view.user,))
            return view

    def drop_views(self, ids: Iterable[str]) -> None:
        """Take these views off the screen."""
        with self.lock:
            for view in [self._views.pop(id) for id in ids if id in self._views]:
                self.announce("view", view.id, audience=(view.user,))

    def view(self, id: str) -> View | None:
        """The view with this id while it is open, or None."""
        return self._views.get(id)

    def views(self) -> list[View]:
        """All open views and homes of everybody."""
        with self.lock:
            return list(self._views.values())

    def modals(self, person: str) -> list[View]:
        """The person's open modals from the bottom of the stack to the one on top."""
        return [one for one in self.views() if one.kind == "modal" and one.user == person]

    def home(self, person: str) -> View | None:
        """What the app published on this person's Home tab, or None."""
        return next((one for one in self.views() if one.kind == "home" and one.user == person), None)

    # --- deliveries ------------------------------------------------------------------------------------------------

    def put_delivery(self, delivery: Delivery) -> Delivery:
        """Record a delivery or what became of it."""
        with self.lock:
            self._deliveries[delivery.id] = delivery
            while len(self._deliveries) > _KEPT_DELIVERIES:
                del self._deliveries[next(iter(self._deliveries))]
            self.announce("delivery", delivery.id, channel=delivery.channel, audience=(delivery.user,))
            return delivery

    def delivery(self, id: str) -> Delivery | None:
        """The delivery with this envelope id, or None."""
        return self._deliveries.get(id)

    def deliveries(self) -> list[Delivery]:
        """The latest deliveries, oldest first."""
        with self.lock:
            return list(self._deliveries.values())

    # --- life ------------------------------------------------------------------------------------------------------

    def new_id(self, prefix: str) -> str:
        """An id of Slack's kind that was not given before, such as `V0…`."""
        with self.lock:
            return f"{prefix}0{_base36(next(self._ids)).rjust(9, '0')}"

    def close(self) -> None:
        """Close the file and every subscription; may be called twice."""
        with self.lock:
            for subscription in tuple(self._subscriptions):
                subscription.close()
            self._changed.notify_all()
            self._journal.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _forget(self, subscription: Subscription) -> None:
        with self.lock:
            self._subscriptions.remove(subscription)

    def _load(self) -> None:
        for body in self._journal.load("person"):
            self._people[body["id"]] = Person(**body)
        for body in self._journal.load("channel"):
            self._channels[body["id"]] = Channel(**{**body, "members": tuple(body["members"])})
        for body in self._journal.load("message"):
            self._messages.setdefault(body["channel"], {})[body["ts"]] = _message(body)
        for body in self._journal.load("view"):
            self._views[body["id"]] = View(**body)
        for body in self._journal.load("last_read"):
            self._last_read[body["person"], body["channel"]] = body["ts"]
        latest = (ts for by_ts in self._messages.values() for ts in by_ts)
        self._last_micros = max((int(ts.replace(".", "")) for ts in latest), default=0)
        if not self._people:
            self._found()

    def _found(self) -> None:
        for person in DEFAULT_PEOPLE:
            self.put_person(person)
        for channel in DEFAULT_CHANNELS:
            self.put_channel(replace(channel, created=int(self.clock())))


def _message(body: JsonObject) -> Message:
    reactions = tuple((name, tuple(users)) for name, users in body["reactions"])
    return Message(**{**body, "blocks": tuple(body["blocks"]), "reactions": reactions})


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest] + digits
    return digits
