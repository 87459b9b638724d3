"""What the app's manifest allows: its commands, scopes, events and Home tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Allowed:
    """The permissions of the installed app. None for a set means that nothing is restricted."""

    scopes: frozenset[str] | None = None
    events: frozenset[str] | None = None
    commands: Mapping[str, bool] | None = None
    home_tab: bool = True

    def has_scope(self, *any_of: str) -> bool:
        """Whether one of these scopes was granted; also if none is asked for."""
        return not any_of or self.scopes is None or not self.scopes.isdisjoint(any_of)

    def hears(self, event: str) -> bool:
        """Whether the app subscribed to this event, such as `message.channels`."""
        return self.events is None or event in self.events

    def knows(self, command: str) -> bool:
        """Whether this is a command of the app."""
        return self.commands is None or command in self.commands

    def escapes(self, command: str) -> bool:
        """Whether mentions in the text of this command are turned into tokens."""
        return self.commands is None or self.commands.get(command, False)


def allowed(manifest: Mapping[str, Any] | None) -> Allowed:
    """The permissions a manifest asks for; everything without one."""
    if manifest is None:
        return Allowed()
    features = manifest.get("features", {})
    settings = manifest.get("settings", {})
    scopes = manifest.get("oauth_config", {}).get("scopes", {}).get("bot", [])
    events = settings.get("event_subscriptions", {}).get("bot_events", [])
    commands = {one["command"]: bool(one.get("should_escape")) for one in features.get("slash_commands", [])}
    return Allowed(
        scopes=frozenset(scopes),
        events=frozenset(events),
        commands=commands,
        home_tab=bool(features.get("app_home", {}).get("home_tab_enabled")),
    )
