"""The box to write in, with the commands and names it offers while one is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from bot.sandbox.markup import Html, element, join
from bot.sandbox.screen import Screen, full_name, title_of

Command: TypeAlias = Mapping[str, Any]

_KEYS = join(
    [
        *(element("kbd", "/"), " for commands · "),
        *(element("kbd", "Enter"), " sends · "),
        *(element("kbd", "Shift Enter"), " starts a new line"),
    ]
)


def compose_box(screen: Screen, commands: Sequence[Command], thread_ts: str = "") -> Html:
    """The form, or a way into a channel that the person is no member of.

    Slash commands, as in the manifest, are offered outside threads only, as in Slack.
    """
    if screen.channel and screen.me.id not in screen.channel.members:
        return _joining(screen)
    key, label = ("thread-box", "Reply…") if thread_ts else ("box", f"Message {_sign(screen)}{title_of(screen)}")
    choices = [*([] if thread_ts else _commands(commands, key)), *_names(screen, key)]
    box = element(
        "textarea",
        id=key,
        rows=1,
        placeholder=label,
        aria_label=label,
        role="combobox",
        aria_expanded="false",
        aria_autocomplete="list",
        aria_controls=f"{key}-list",
        autocomplete="off",
    )
    send = element("button", "➤", type="submit", class_="send", aria_label="Send", title="Send (Enter)")
    listing = element("ul", *choices, id=f"{key}-list", role="listbox", aria_label="Suggestions", hidden=True)
    bar = element("div", Html("") if thread_ts else element("small", _KEYS), send, class_="bar")
    return element("form", listing, box, bar, class_="composer", data_thread=thread_ts or None, novalidate=True)


def _joining(screen: Screen) -> Html:
    name = f"#{title_of(screen)}"
    join_it = element("button", f"Join {name}", type="button", class_="button", data_join=True)
    return element("div", element("span", f"You are not in {name}."), join_it, class_="composer joining")


def _sign(screen: Screen) -> str:
    return "#" if screen.channel and screen.channel.kind != "im" else ""


def _commands(commands: Sequence[Command], key: str) -> list[Html]:
    return [
        _choice(f"{key}-command-{n}", str(one["command"]), str(one.get("usage_hint", "")), str(one["description"]))
        for n, one in enumerate(commands)
    ]


def _names(screen: Screen, key: str) -> list[Html]:
    people = [one for one in screen.workspace.people() if not one.deleted]
    channels = screen.reader.channels.values()
    return [
        *(_choice(f"{key}-person-{n}", f"@{one.name}", full_name(one)) for n, one in enumerate(people)),
        *(_choice(f"{key}-channel-{n}", f"#{name}") for n, name in enumerate(channels)),
    ]


def _choice(id: str, insert: str, hint: str = "", about: str = "") -> Html:
    parts = [element("b", insert)]
    parts += [element("span", hint)] if hint else []
    parts += [element("small", about)] if about else []
    return element("li", *parts, role="option", id=id, data_insert=insert, aria_selected="false", hidden=True)
