"""What Slack's payloads say, as values: who clicked what, where, and how to answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A button or menu that somebody used. `trigger_id` opens windows for three seconds and names the click."""

    action: dict[str, JsonValue]
    user: str
    team: str
    channel: str
    trigger_id: str
    response_url: str
    view_id: str = ""
    home: bool = False

    @property
    def name(self) -> str:
        """The action id."""
        return str(self.action.get("action_id", ""))

    def to_json(self) -> dict[str, JsonValue]:
        """The click for the inbox."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Click:
        """Read what `to_json` wrote."""
        return cls(**data)


def click_of(body: Mapping[str, Any]) -> Click:
    """The click of a `block_actions` payload."""
    view = body.get("view") or {}
    channel = (body.get("channel") or {}).get("id") or (body.get("container") or {}).get("channel_id") or ""
    return Click(
        action=dict(body["actions"][0]),
        user=str(body["user"]["id"]),
        team=str((body.get("team") or {}).get("id") or body["user"].get("team_id") or ""),
        channel=str(channel),
        trigger_id=str(body.get("trigger_id", "")),
        response_url=str(body.get("response_url") or ""),
        view_id=str(view.get("id", "")),
        home=view.get("type") == "home",
    )
