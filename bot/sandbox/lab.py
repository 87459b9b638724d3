"""The phone with the texts that went out, and the panel that breaks things on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from bot.sandbox.markup import Html, element, stamped
from bot.sandbox.messages import Piece
from bot.sandbox.mrkdwn import moment
from bot.sandbox.screen import Screen

Text: TypeAlias = Mapping[str, Any]

_SENT = "{date_short_pretty}, {time}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that can be made to go wrong: what a person reads, and what is armed of it, such as "3 left"."""

    name: str
    label: str
    armed: str = ""


@dataclass(frozen=True, slots=True)
class Lab:
    """What the panel can do. `status` is the bot's state in a word or two, such as `running` or `restarting`.

    `inject` takes a fault's name and raises `KeyError` for one that is not in `faults()`; `clear` disarms them all.
    """

    status: Callable[[], str]
    kill: Callable[[], None]
    start: Callable[[], None]
    faults: Callable[[], Sequence[Fault]]
    inject: Callable[[str], None]
    clear: Callable[[], None]


def phone(texts: Sequence[Text], screen: Screen) -> list[Piece]:
    """The texts as bubbles, oldest first.

    A text is `{"to", "body", "at"}`; `at` is a datetime, Unix seconds or an ISO 8601 string.
    """
    return [_bubble(n, text, screen) for n, text in enumerate(texts)]


def _bubble(n: int, text: Text, screen: Screen) -> Piece:
    key, body = f"sms-{n}", str(text["body"])
    about = element("p", "To ", element("b", str(text["to"])), " ", moment(_when(text["at"]), screen.reader, _SENT))
    return Piece(key, stamped("div", about, element("p", body, class_="bubble"), class_="sms", id=key))


def _when(at: object) -> datetime:
    if isinstance(at, datetime):
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    if isinstance(at, int | float):
        return datetime.fromtimestamp(at, UTC)
    parsed = datetime.fromisoformat(str(at))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def lab_html(lab: Lab) -> Html:
    """The panel's changing part: the bot's state, the two buttons, the faults."""
    status = lab.status()
    stopped = status == "stopped"
    buttons = (
        element("button", "Kill the bot", type="button", class_="button danger", data_lab="kill", disabled=stopped),
        element("button", "Start the bot", type="button", class_="button", data_lab="start", disabled=not stopped),
    )
    faults = [_fault(fault) for fault in lab.faults()]
    clear = element("button", "All back to normal", type="button", class_="button", data_lab="clear")
    list_of = (
        [element("h3", "Make something go wrong"), element("ul", *faults, class_="faults"), clear] if faults else []
    )
    return stamped(
        "div",
        element("p", "The bot is ", status_html(status), ".", role="status"),
        element("div", *buttons, class_="actions"),
        *list_of,
        id="lab-state",
    )


def status_html(status: str) -> Html:
    """The bot's state with its light."""
    known = status if status in ("running", "starting", "restarting", "stopped") else "unknown"
    return element("span", status, class_=f"bot-status is-{known}")


def _fault(fault: Fault) -> Html:
    left = [element("span", fault.armed, class_="armed")] if fault.armed else []
    button = element("button", fault.label, type="button", class_="button", data_fault=fault.name)
    return element("li", button, *left)
