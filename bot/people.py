"""Who is who: what the surface knows about a person and a channel, for the rule that settles who may decide."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from graphs.ports import PortError
from storage.refusals import Actor

T = TypeVar("T")
TEAM = "T0SIGNOFF"  # the sandbox's workspace, also for work on its database from the command line
REMEMBER = 60.0  # seconds; whoever has left meanwhile may be asked for so long
_NOBODY = {"user_not_found", "user_not_visible", "users_not_found"}
_HIDDEN = {"channel_not_found", "not_in_channel"}


@dataclass(frozen=True, slots=True)
class Profile:
    """A person as the surface knows them; `time_zone` is an IANA name."""

    id: str
    name: str
    team: str = ""
    is_bot: bool = False
    is_guest: bool = False
    time_zone: str = "UTC"


class UnknownPerson(LookupError):
    """Nobody of that id; the message says who there is."""


class NoAnswer(PortError):
    """Slack could not be asked just now; that says nothing about the person or the channel."""


class People(Protocol):
    """The people of a workspace and the members of its channels. Every method may raise `NoAnswer`."""

    @property
    def me(self) -> str:
        """The app's own id among the members, or "" where it needs to be none."""
        ...

    def profile(self, user: str) -> Profile:
        """Raises `UnknownPerson`."""
        ...

    def members(self, channel: str, *, fresh: bool = False) -> Sequence[str]:
        """Ids of everybody in a channel, bots included; empty if the channel cannot be looked into.

        What was asked a moment ago may be answered from memory unless `fresh`.
        """
        ...


def actor_of(people: People, user: str, channel: str) -> Actor:
    """What the rule about deciders needs to know of a person. Raises `UnknownPerson`."""
    profile = people.profile(user)
    is_member = not channel or is_in(people, user, channel)
    return Actor(profile.id, profile.team, profile.is_bot, profile.is_guest, is_member)


def is_in(people: People, user: str, channel: str) -> bool:
    """Whether somebody is in a channel; whoever has joined a moment ago is."""
    return user in people.members(channel) or user in people.members(channel, fresh=True)


def deciders(people: People, channel: str, without: str = "") -> list[str]:
    """Ids of the full members of a channel, bots left out, and one person where they may not decide."""
    found = [people.profile(user) for user in people.members(channel)]
    return [one.id for one in found if not one.is_bot and not one.is_guest and one.id != without]


class SandboxPeople:
    """The sandbox's people, for work without Slack: all of them are in every channel."""

    _NAMES = ("U0ANA0001", "Ana"), ("U0BEN0002", "Ben"), ("U0CLEO003", "Cleo")

    def __init__(self) -> None:
        self._profiles = {id_: Profile(id_, name, TEAM, time_zone="America/Los_Angeles") for id_, name in self._NAMES}
        self.me = ""

    def profile(self, user: str) -> Profile:
        """See `People.profile`."""
        try:
            return self._profiles[user]
        except KeyError:
            listed = ", ".join(f"{id_} ({name})" for id_, name in self._NAMES)
            raise UnknownPerson(f"There is no {user!r} here; without Slack the people are {listed}.") from None

    def members(self, channel: str, *, fresh: bool = False) -> Sequence[str]:
        """See `People.members`."""
        return tuple(self._profiles)


class SlackPeople:
    """Slack's people, each looked up once a minute at most."""

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[float, Any]] = {}

    @property
    def me(self) -> str:
        """See `People.me`."""
        return self._remembered(("profile", "me"), lambda: str(self._ask("auth_test")["user_id"]))

    def profile(self, user: str) -> Profile:
        """See `People.profile`."""
        return self._remembered(("profile", user), lambda: self._profile(user))

    def members(self, channel: str, *, fresh: bool = False) -> Sequence[str]:
        """See `People.members`."""
        if fresh:
            with self._lock:
                self._kept.pop(("members", channel), None)
        return self._remembered(("members", channel), lambda: self._members(channel))

    def forget(self) -> None:
        """Look everybody up anew."""
        with self._lock:
            self._kept.clear()

    def _remembered(self, key: tuple[str, str], look_up: Callable[[], T]) -> T:
        with self._lock:
            kept = self._kept.get(key)
        if kept and time.monotonic() - kept[0] < REMEMBER:
            return kept[1]  # type: ignore[no-any-return]
        found = look_up()
        with self._lock:
            self._kept[key] = time.monotonic(), found
        return found

    def _profile(self, user: str) -> Profile:
        try:
            found: dict[str, Any] = self._ask("users_info", user=user)["user"]
        except SlackApiError as error:
            raise UnknownPerson(f"Slack does not know {user!r}: {error.response['error']}.") from error
        named = found.get("profile") or {}
        is_guest = bool(found.get("is_restricted") or found.get("is_ultra_restricted") or found.get("is_stranger"))
        return Profile(
            id=user,
            name=str(named.get("display_name") or found.get("real_name") or found.get("name") or user),
            team=str(found.get("team_id") or ""),
            is_bot=bool(found.get("is_bot")) or user == "USLACKBOT",
            is_guest=is_guest or bool(found.get("deleted")),
            time_zone=str(found.get("tz") or "UTC"),
        )

    def _members(self, channel: str) -> tuple[str, ...]:
        found: list[str] = []
        cursor = ""
        try:
            while True:
                page = self._ask("conversations_members", channel=channel, limit=200, cursor=cursor)
                found += page["members"]
                cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
                if not cursor:
                    return tuple(found)
        except SlackApiError:
            return ()

    def _ask(self, method: str, **arguments: Any) -> Any:
        """Raises `SlackApiError` where that is an answer: there is no such person, or no such channel for us."""
        try:
            return getattr(self._client, method)(**arguments)
        except SlackApiError as error:
            if error.response.get("error") in _NOBODY | _HIDDEN:
                raise
            raise NoAnswer(f"Slack could not be asked: {error.response.get('error') or 'no answer'}.") from error
        except OSError as error:
            raise NoAnswer(f"Slack did not answer: {type(error).__name__}.") from error
