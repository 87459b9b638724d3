"""What stands beside the conversation: a thread, or the phone and the lab."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.sandbox.compose_box import compose_box
from bot.sandbox.conversation import thread
from bot.sandbox.lab import Lab, Text, lab_html, phone
from bot.sandbox.markup import Html, element, join
from bot.sandbox.messages import Piece
from bot.sandbox.records import Channel
from bot.sandbox.screen import Screen, address, title_of


def live_list(id: str, class_: str, label: str, pieces: Iterable[Piece]) -> Html:
    """A list whose additions are read out."""
    inside = join(piece.html for piece in pieces)
    return element("div", inside, id=id, class_=class_, role="log", aria_live="polite", aria_label=label, tabindex=0)


def thread_pane(screen: Screen, channel: Channel) -> Html:
    """The open thread with a box to answer in."""
    back = address(screen.me.id, channel.id)
    close = element("a", "✕", href=back, class_="icon", aria_label="Close thread", title="Close")
    title = element("h2", "Thread ", element("small", title_of(screen)))
    return element(
        "aside",
        element("header", title, close, class_="head"),
        live_list("thread", "log", "Messages in the thread", thread(screen)),
        compose_box(screen, (), screen.thread),
        class_="thread-pane",
        aria_label="Thread",
    )


def tools(screen: Screen, lab: Lab, texts: Sequence[Text], notices: Sequence[str]) -> Html:
    """The phone and the lab; both say what is not real about them."""
    screen_of_phone = live_list("phone", "screen", "Texts on the phone", phone(texts, screen))
    handset = element("div", element("div", class_="speaker"), screen_of_phone, class_="handset")
    about = element("p", "The texts that went out. They reach nobody but this phone.", class_="hint")
    labels = element("p", chips(notices), class_="notices") if notices else Html("")
    return element(
        "aside",
        element("section", element("h2", "Phone"), handset, about, aria_label="Phone"),
        element("section", element("h2", "Lab"), labels, element("div", lab_html(lab), id="lab"), aria_label="Lab"),
        id="tools",
        class_="tools",
        aria_label="Phone and lab",
    )


def chips(notices: Iterable[str]) -> Html:
    """Short labels that must not be overlooked."""
    return join(element("span", notice, class_="chip") for notice in notices)
