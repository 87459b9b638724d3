"""Slack's text formats (mrkdwn, plain text, markdown) as escaped HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from itertools import groupby
from urllib.parse import quote, urlsplit

from bot.sandbox.emoji import EMOJI
from bot.sandbox.markup import Html, element, escape, join

_BODY = r"(?=\S)(?:<[^<>\n]*>|`[^`\n]*`|[^{mark}\n<`])+?(?<=\S)"


def _marked(name: str, mark: str) -> str:
    return rf"(?<![\w{mark}]){mark}(?P<{name}>{_BODY.format(mark=mark)}){mark}(?![\w{mark}])"


_INLINE = re.compile(
    "|".join(
        (
            r"`(?P<code>[^`\n]+)`",
            r"<(?P<token>[^<>\n]+)>",
            r":(?P<emoji>[a-z0-9_+-]+):",
            r"(?P<url>https?://[^\s<>|\"`*]+)",
            _marked("strong", r"\*"),
            _marked("em", "_"),
            _marked("s", "~"),
        )
    )
)
_FENCE = re.compile(r"\n?```\n?(.*?)\n?```\n?", re.DOTALL)
_DATE = re.compile(r"\{(\w+)\}")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_SCHEMES = ("http", "https", "mailto")


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks: names for the ids in a text (`people` and `channels` by id), their time zone and day, their own id."""

    me: str
    zone: tzinfo = UTC
    people: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)
    today: date | None = None


def plain(text: str) -> Html:
    """A `plain_text` object: nothing but emoji shortcodes is read."""
    parts = re.split(r"(:[a-z0-9_+-]+:)", text)
    return join(EMOJI.get(part.strip(":"), part) if part.startswith(":") else part for part in parts)


def mrkdwn(text: str, reader: Reader) -> Html:
    """A `mrkdwn` object with its code fences, quotes, emphasis, links, mentions, dates and emoji."""
    parts = _FENCE.split(text)
    return join(
        element("pre", _unescaped(part)) if index % 2 else _paragraphs(part, reader)
        for index, part in enumerate(parts)
        if part
    )


def link(url: str, label: str) -> Html:
    """A link that shows its real address on hover, or the bare label where the address is not one to follow."""
    if not _followable(url):
        return escape(label)
    return element("a", label, href=url, title=url, target="_blank", rel="noopener noreferrer nofollow")


def moment(at: datetime, reader: Reader, pattern: str = "{time}", link_to: str = "") -> Html:
    """A time in the reader's zone, in one of the patterns that Slack's `<!date>` knows."""
    local, today = at.astimezone(reader.zone), reader.today or datetime.now(reader.zone).date()
    parts = {name: part(local, today) for name, part in _DATE_PARTS.items() if f"{{{name}}}" in pattern}
    text = _DATE.sub(lambda found: parts.get(found[1], found[0]), pattern)
    shown = element("time", text, datetime=at.isoformat(), title=f"{local:%A, %d %B %Y, %H:%M} {local.tzname()}")
    return link(link_to, shown) if link_to else shown


def channel_link(channel: str, label: str, reader: Reader) -> Html:
    """The way to a channel of this workspace, as the same person."""
    href = f"/?as={quote(reader.me)}&channel={quote(channel)}"
    return element("a", label, href=href, class_="mention", data_channel=channel)


def _paragraphs(text: str, reader: Reader) -> Html:
    return join(
        element("blockquote", _inline("\n".join(_unquoted(line) for line in lines), reader))
        if quoted
        else _inline("\n".join(lines), reader)
        for quoted, lines in ((key, list(group)) for key, group in groupby(text.split("\n"), _is_quote))
    )


def _is_quote(line: str) -> bool:
    # Only a bare ">" quotes: text that was escaped before it got here must stay as it was typed.
    return line.startswith(">")


def _unquoted(line: str) -> str:
    return line.removeprefix(">").removeprefix(" ")


def _inline(text: str, reader: Reader) -> Html:
    parts: list[str] = []
    end = 0
    for found in _INLINE.finditer(text):
        parts += [_unescaped(text[end : found.start()]), _piece(found, reader)]
        end = found.end()
    return join([*parts, _unescaped(text[end:])])


def _piece(found: re.Match[str], reader: Reader) -> Html:
    kind, body = str(found.lastgroup), found[str(found.lastgroup)]
    match kind:
        case "code":
            return element("code", _unescaped(body))
        case "token":
            return _token(body, reader)
        case "emoji":
            return escape(EMOJI.get(body, found[0]))
        case "url":
            address = body.rstrip(".,;:!?)'")
            return join([link(_unescaped(address), _unescaped(address)), body[len(address) :]])
        case _:
            return element(kind, _inline(body, reader))


def _token(body: str, reader: Reader) -> Html:
    target, _, label = (_unescaped(part) for part in body.partition("|"))
    match target[0]:
        case "@":
            return _person(target[1:], label, reader)
        case "#":
            return channel_link(target[1:], f"#{reader.channels.get(target[1:], label or target[1:])}", reader)
        case "!":
            return _special(target[1:], label, reader)
        case _:
            return link(target, label or target.removeprefix("mailto:"))


def _person(person: str, label: str, reader: Reader) -> Html:
    name = reader.people.get(person, label or person)
    return element("span", f"@{name}", class_="mention me" if person == reader.me else "mention")


def _special(target: str, label: str, reader: Reader) -> Html:
    kind, *parts = target.split("^")
    if kind == "date" and len(parts) > 1 and parts[0].isdecimal() and len(parts[0]) <= 11:
        return moment(datetime.fromtimestamp(int(parts[0]), UTC), reader, parts[1], "".join(parts[2:3]))
    if kind in ("here", "channel", "everyone"):
        return element("span", f"@{kind}", class_="mention me")
    return element("span", label or f"@{kind}", class_="mention") if kind == "subteam" else escape(label or target)


def _unescaped(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _followable(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


def _written(pattern: str) -> Callable[[datetime, date], str]:
    return lambda at, today: at.strftime(pattern)


def _pretty(pattern: str) -> Callable[[datetime, date], str]:
    names = {0: "today", 1: "yesterday", -1: "tomorrow"}
    return lambda at, today: names.get((today - at.date()).days) or at.strftime(pattern)


_DATE_PARTS: dict[str, Callable[[datetime, date], str]] = {
    "date_num": _written("%Y-%m-%d"),
    "date": _written("%B %-d, %Y"),
    "date_short": _written("%b %-d, %Y"),
    "date_long": _written("%A, %B %-d, %Y"),
    "date_pretty": _pretty("%B %-d, %Y"),
    "date_short_pretty": _pretty("%b %-d, %Y"),
    "date_long_pretty": _pretty("%A, %B %-d, %Y"),
    "time": lambda at, today: f"{at.hour % 12 or 12}:{at:%M %p}",
    "time_secs": lambda at, today: f"{at.hour % 12 or 12}:{at:%M:%S %p}",
    "ago": _pretty("%b %-d, %Y"),
}
