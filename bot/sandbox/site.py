"""What a Web API method works with: the workspace, the app's rights, and the arguments of the call."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bot.sandbox.manifest import Allowed
from bot.sandbox.permits import Permits
from bot.sandbox.records import BOT_USER, Channel, ChannelKind, JsonObject
from bot.sandbox.refusal import Refusal, invalid
from bot.sandbox.workspace import Workspace

T = TypeVar("T")
READ_SCOPES: Mapping[ChannelKind, str] = {"public": "channels:read", "private": "groups:read", "im": "im:read"}
HISTORY_SCOPES: Mapping[ChannelKind, str] = {
    "public": "channels:history",
    "private": "groups:history",
    "im": "im:history",
}
_DEFAULT_PAGE = 100
_LARGEST_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Site:
    """One installation of the app; `url` is where the stand-in serves, `socket_url` makes a new Socket Mode url."""

    workspace: Workspace
    permits: Permits
    allowed: Allowed
    url: Callable[[], str]
    socket_url: Callable[[], str]

    def visible(self, id: str) -> Channel:
        """The conversation, if the app may know of it; raises `channel_not_found`."""
        channel = self.workspace.channel(id)
        if channel is None or (channel.kind != "public" and BOT_USER not in channel.members):
            raise Refusal("channel_not_found")
        return channel

    def need(self, *any_of: str) -> None:
        """Raises `missing_scope` unless one of these scopes was granted."""
        if not self.allowed.has_scope(*any_of):
            raise Refusal(
                "missing_scope", needed=",".join(any_of), provided=",".join(sorted(self.allowed.scopes or ()))
            )


class Arguments:
    """The arguments of a call, whether they came as a form, as JSON or in the query."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        value = self._values.get(name)
        return default if value is None else str(value)

    def required(self, name: str) -> str:
        """A string that must not be empty; raises `invalid_arguments`."""
        value = self.text(name)
        if not value:
            raise invalid("invalid_arguments", [f"[ERROR] missing required field: {name}"])
        return value

    def flag(self, name: str) -> bool:
        """A boolean; forms write it as 1 or true."""
        return self.text(name).lower() in ("1", "true")

    def json(self, name: str, problem: str) -> Any:
        """A JSON value, which forms carry as a string; None when absent; raises `problem` when it is no JSON."""
        value = self._values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise Refusal(problem) from None

    def given(self, name: str) -> bool:
        """Whether the caller sent it at all."""
        return self._values.get(name) is not None


def page(items: Sequence[T], arguments: Arguments) -> tuple[list[T], JsonObject]:
    """One page of the items and the fields of the answer that lead to the next."""
    size = _size(arguments)
    start = _start(arguments)
    more = start + size < len(items)
    cursor = base64.b64encode(f"next:{start + size}".encode()).decode() if more else ""
    return list(items[start : start + size]), {"response_metadata": {"next_cursor": cursor}}


def _size(arguments: Arguments) -> int:
    asked = arguments.text("limit") or str(_DEFAULT_PAGE)
    if not asked.isdecimal() or not 0 <= int(asked) <= _LARGEST_PAGE:
        raise Refusal("invalid_limit")
    return int(asked) or _DEFAULT_PAGE


def _start(arguments: Arguments) -> int:
    cursor = arguments.text("cursor")
    if not cursor:
        return 0
    try:
        word, _, start = base64.b64decode(cursor, validate=True).decode().partition(":")
    except ValueError:
        raise Refusal("invalid_cursor") from None
    if word != "next" or not start.isdecimal():
        raise Refusal("invalid_cursor")
    return int(start)
