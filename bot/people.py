"""Who is who: what the surface knows about a person and a channel, for the rule that settles who may decide."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from storage.refusals import Actor

T = TypeVar("T")
REMEMBER = 60.0  # seconds; a member who has just joined may have to wait so long


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


class People(Protocol):
    """The people of a workspace and the members of its channels."""

    def profile(self, user: str) -> Profile:
        """Raises `UnknownPerson`."""
        ...

    def members(self, channel: str) -> Sequence[str]:
        """Ids of everybody in a channel, bots included; empty if the channel cannot be looked into."""
        ...


def actor_of(people: People, user: str, channel: str) -> Actor:
    """What the rule about deciders needs to know of a person. Raises `UnknownPerson`."""
    profile = people.profile(user)
    is_member = not channel or user in people.members(channel)
    return Actor(profile.id, profile.team, profile.is_bot, profile.is_guest, is_member)


def deciders(people: People, channel: str, without: str = "") -> list[str]:
    """Ids of the full members of a channel, bots left out, and one person where they may not decide."""
    found = [people.profile(user) for user in people.members(channel)]
    return [one.id for one in found if not one.is_bot and not one.is_guest and one.id != without]


class SandboxPeople:
    """The sandbox's people, for work without Slack: all of them are in every channel."""

    _NAMES = ("U0ANA0001", "Ana"), ("U0BEN0002", "Ben"), ("U0CLEO003", "Cleo")

    def __init__(self) -> None:
        self._profiles = {id_: Profile(id_, name, time_zone="America/Los_Angeles") for id_, name in self._NAMES}

    def profile(self, user: str) -> Profile:
        """See `People.profile`."""
        try:
            return self._profiles[user]
        except KeyError:
            listed = ", ".join(f"{id_} ({name})" for id_, name in self._NAMES)
            raise UnknownPerson(f"There is no {user!r} here; without Slack the people are {listed}.") from None

    def members(self, channel: str) -> Sequence[str]:
        """See `People.members`."""
        return tuple(self._profiles)


class SlackPeople:
    """Slack's people, each looked up once a minute at most."""

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[float, Any]] = {}

    def profile(self, user: str) -> Profile:
        """See `People.profile`."""
        return self._remembered(("profile", user), lambda: self._profile(user))

    def members(self, channel: str) -> Sequence[str]:
        """See `People.members`."""
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
            found: dict[str, Any] = self._client.users_info(user=user)["user"]
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
                page = self._client.conversations_members(channel=channel, limit=200, cursor=cursor)
                found += page["members"]
                cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
                if not cursor:
                    return tuple(found)
        except SlackApiError:
            return ()
