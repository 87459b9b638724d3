"""One message as HTML: who wrote it, what it says, what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bot.sandbox.courier import NOT_CONNECTED
from bot.sandbox.emoji import EMOJI
from bot.sandbox.markup import Html, element, join, stamped
from bot.sandbox.mrkdwn import moment, mrkdwn
from bot.sandbox.place import Place
from bot.sandbox.records import Delivery, JsonObject, Message
from bot.sandbox.render import blocks_html, folded
from bot.sandbox.screen import Screen, address, avatar, first_name, full_name, ts_moment

_DECIDERS = re.compile(r"([^·\n]*) may (decide|answer)\b")
_NAMED = re.compile(r"<@(\w+)>")


@dataclass(frozen=True, slots=True)
class Piece:
    """One child of a live list, by the id its element has."""

    id: str
    html: Html


@dataclass(frozen=True, slots=True)
class Replies:
    """What hangs below a message: how many answers, the latest ts, who wrote them."""

    count: int
    latest: str
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A message to draw. `key` is its id on the page, `compact` leaves out its heading, `trouble` is a warning."""

    message: Message
    screen: Screen
    key: str
    compact: bool = False
    below: Replies | None = None
    trouble: str = ""
    in_thread: bool = False


class Drawings:
    """The messages of one window as they were last drawn: what did not change is not drawn again."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Drawn, Piece]] = {}

    def piece(self, drawn: Drawn) -> Piece:
        """The message as a child of its list."""
        before, piece = self._last.get(drawn.key, (None, None))
        if piece is None or before != drawn:
            piece = message_piece(drawn)
            self._last[drawn.key] = drawn, piece
        return piece

    def keep(self, keys: Collection[str]) -> None:
        """Forget all others."""
        self._last = {key: kept for key, kept in self._last.items() if key in keys}


def message_piece(drawn: Drawn) -> Piece:
    """The message as a child of its list."""
    message = drawn.message
    author = drawn.screen.workspace.person(message.user)
    name = full_name(author) if author else message.user
    by_app = message.bot is not None or (author is not None and author.is_bot)
    sign = _clock(drawn) if drawn.compact else avatar(message.user, name)
    body = element("div", *_body(drawn), class_="body")
    classes = ["message", "compact" if drawn.compact else "", "ephemeral" if message.ephemeral_to else ""]
    whole = stamped(
        "article",
        element("div", sign, class_="gutter"),
        element("div", _heading(drawn, name, by_app=by_app), body, class_="column"),
        Html("") if drawn.in_thread or message.ephemeral_to else _tools(drawn),
        id=drawn.key,
        class_=" ".join(filter(None, classes)),
        data_channel=message.channel,
        data_ts=message.ts,
    )
    return Piece(drawn.key, whole)


def trouble_of(delivery: Delivery | None) -> str:
    """The sentence about a delivery that was not taken; empty when all is well or it is still on its way."""
    match delivery:
        case Delivery(status="late"):
            return "The app did not answer within 3 seconds. Look here again before you press once more."
        case Delivery(status="failed", problem=problem) if problem == NOT_CONNECTED:
            return "The app could not be reached, so this did not count. Press again once it is running."
        case Delivery(status="failed", problem=problem):
            return f"The app could not be reached, or answered wrongly ({problem})."
    return ""


def _heading(drawn: Drawn, name: str, *, by_app: bool) -> Html:
    if drawn.compact:
        return element("h3", name, class_="unseen")
    app = [element("span", "APP", class_="badge")] if by_app else []
    return element("div", element("h3", name), *app, _clock(drawn), class_="by")


def _clock(drawn: Drawn) -> Html:
    return moment(ts_moment(drawn.message.ts), drawn.screen.reader)


def _body(drawn: Drawn) -> Iterator[Html]:
    message = drawn.message
    if message.ephemeral_to:
        yield element("p", "👁 Only visible to you", class_="only-you")
    yield _content(drawn)
    if message.edited:
        yield element("span", "(edited)", class_="edited")
    if message.reactions:
        yield element("div", *(_reaction(name, len(users)) for name, users in message.reactions), class_="reactions")
    if drawn.trouble:
        yield element("p", "⚠️ ", drawn.trouble, class_="trouble", role="alert")
    if _asks(message.blocks) and not message.ephemeral_to:
        yield _open_as(drawn)
    if drawn.below:
        yield _thread_link(drawn, drawn.below)


def _content(drawn: Drawn) -> Html:
    message, reader = drawn.message, drawn.screen.reader
    if message.blocks:
        return element("div", blocks_html(message.blocks, Place(drawn.key, reader)), class_="blocks")
    return folded(element("div", mrkdwn(message.text, reader), class_="text"), message.text, drawn.key)


def _reaction(name: str, count: int) -> Html:
    return element("span", EMOJI.get(name, f":{name}:"), f" {count}", class_="reaction", title=f":{name}:")


def _asks(blocks: Iterable[JsonObject]) -> bool:
    """Whether a decision is waited for here: there is something to press, and a first choice or a word on who may."""
    elements = [part for block in blocks if block.get("type") == "actions" for part in block.get("elements") or []]
    is_first_choice = any(part.get("style") == "primary" and not part.get("url") for part in elements)
    return bool(elements) and (is_first_choice or any(_said_deciders(blocks)))


def _said_deciders(blocks: Iterable[JsonObject]) -> tuple[str, str]:
    """What stands before "may decide" or "may answer" in the message, and which of the two."""
    found = (_DECIDERS.search(text) for block in blocks for text in _texts(block))
    return next(((match[1], match[2]) for match in found if match), ("", ""))


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        yield from (text for one in part for text in _texts(one))
    elif isinstance(part, dict) and part.get("type") == "mrkdwn":
        yield str(part.get("text", ""))
    elif isinstance(part, dict):
        yield from (text for key in ("text", "elements", "fields") for text in _texts(part.get(key)))


def _open_as(drawn: Drawn) -> Html:
    """Whose window this is and how to get to the others', for what one person may not do another may."""
    screen, message = drawn.screen, drawn.message
    members = screen.channel.members if screen.channel else ()
    others = [other for other in screen.others() if other.id in members]
    deciders, verb = _said_deciders(message.blocks)
    may, _, but = deciders.partition(" but ")
    named = set(_NAMED.findall(may)) or {one for one in members if but} - set(_NAMED.findall(but))
    is_mine = screen.me.id in named
    can = [] if is_mine else [other for other in others if other.id in named]
    links = [
        element("a", first_name(other), href=address(other.id, message.channel) + f"#m-{message.ts}", target="_blank")
        for other in can or others
    ]
    told = f"{' or '.join(map(first_name, can))} can {verb}: open as " if can else "Open as "
    offer = [" ", told, join(links, " · ")] if links else []
    you = ["You are ", element("b", first_name(screen.me)), f" and can {verb}." if is_mine else "."]
    return element("p", *you, *offer, class_="open-as")


def _thread_link(drawn: Drawn, below: Replies) -> Html:
    reader = drawn.screen.reader
    faces = join(avatar(one, reader.people.get(one, one)) for one in below.authors[:4])
    count = f"{below.count} {'reply' if below.count == 1 else 'replies'}"
    last = element("small", "Last reply ", moment(ts_moment(below.latest), reader, "{date_short_pretty} at {time}"))
    return element("a", faces, element("b", count), last, class_="replies", href=_thread_address(drawn))


def _tools(drawn: Drawn) -> Html:
    label = "Reply in thread"
    return element(
        "div", element("a", "💬", href=_thread_address(drawn), title=label, aria_label=label), class_="tools-of"
    )


def _thread_address(drawn: Drawn) -> str:
    message = drawn.message
    return address(drawn.screen.me.id, message.channel, message.thread_ts or message.ts)
