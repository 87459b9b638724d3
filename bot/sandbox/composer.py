"""Turn what a person types into the text Slack passes on, with mentions as tokens."""

from __future__ import annotations

import re

from bot.sandbox.workspace import Workspace

_MENTION = re.compile(r"(?<![\w<])([@#])([\w.-]*\w)")
_BROADCASTS = ("here", "channel", "everyone")


def escaped(text: str) -> str:
    """The three characters Slack escapes, escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def command_text(workspace: Workspace, typed: str, should_escape: bool) -> str:
    """The text of a slash command: with `should_escape` mentions become `<@U…|name>`, otherwise they stay as typed."""
    return _mentions(workspace, escaped(typed), named=True) if should_escape else escaped(typed)


def message_text(workspace: Workspace, typed: str) -> str:
    """The text of a message: mentions become `<@U…>`."""
    return _mentions(workspace, escaped(typed), named=False)


def _mentions(workspace: Workspace, text: str, named: bool) -> str:
    people = {person.name.lower(): person for person in workspace.people()}
    channels = {channel.name.lower(): channel for channel in workspace.channels() if channel.name}

    def token(match: re.Match[str]) -> str:
        sign, name = match[1], match[2].lower()
        if sign == "@" and name in _BROADCASTS:
            return f"<!{name}>"
        found = people.get(name) if sign == "@" else channels.get(name)
        if found is None:
            return match[0]
        return f"<{sign}{found.id}|{found.name}>" if named else f"<{sign}{found.id}>"

    return _MENTION.sub(token, text)
