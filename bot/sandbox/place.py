"""Where blocks are drawn: for which reader, on which message or view, with which values entered so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox.markup import Html, element, escape
from bot.sandbox.mrkdwn import Reader, mrkdwn, plain
from bot.sandbox.records import JsonObject


@dataclass(frozen=True, slots=True)
class Place:
    """One message or view. `key` starts the HTML ids inside it; `state` and `errors` are those of the view."""

    key: str
    reader: Reader
    state: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def entered(self, block_id: str, action_id: str) -> JsonObject | None:
        """What the person has entered into one element, in the form of Slack's `state.values`, or None."""
        block = self.state.get(block_id) or {}
        entered: JsonObject | None = block.get(action_id)
        return entered


def text_html(text: JsonObject | None, reader: Reader) -> Html:
    """A text object of either type; nothing for None."""
    if text is None:
        return Html("")
    return mrkdwn(text["text"], reader) if text.get("type") == "mrkdwn" else plain(text["text"])


def bare(text: JsonObject | None) -> str:
    """The characters of a plain text object, for an attribute or an option; nothing for None."""
    return str(plain(text["text"])).replace("\n", " ") if text else ""


def field_name(block_id: str, action_id: str) -> str:
    """The name a form field has on the page; `named` reads it back."""
    return json.dumps([block_id, action_id])


def named(name: str) -> tuple[str, str]:
    """The block id and action id in a field name; ValueError when it is not one."""
    match json.loads(name):
        case [str(block_id), str(action_id)]:
            return block_id, action_id
    raise ValueError(f"{name!r} is not the name of a field.")


def unsupported(what: str) -> Html:
    """The note in place of something this page cannot draw."""
    return element("p", "Unsupported block: ", element("code", escape(what)), class_="unsupported", role="note")
