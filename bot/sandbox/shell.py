"""The frame of the page: top bar, sidebar, conversation, and what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.sandbox.compose_box import Command, compose_box
from bot.sandbox.conversation import conversation
from bot.sandbox.heading import heading
from bot.sandbox.lab import Lab, Text, status_html
from bot.sandbox.markup import Html, element, join, stamped
from bot.sandbox.panels import chips, live_list, thread_pane, tools
from bot.sandbox.records import APP_NAME, TEAM_NAME, Person
from bot.sandbox.screen import HOME, Screen, address, avatar, full_name, title_of
from bot.sandbox.sidebar import sidebar
from bot.sandbox.surfaces import home, modal


@dataclass(frozen=True, slots=True)
class Frame:
    """What is around a screen: the manifest's commands, the lab, the texts that went out, labels to show."""

    commands: Sequence[Command]
    lab: Lab
    texts: Sequence[Text]
    notices: Sequence[str]


def document(screen: Screen, frame: Frame) -> Html:
    """The whole document."""
    body = element(
        "body",
        element("a", "Skip to the conversation", href="#main", class_="skip"),
        _top(screen, frame),
        element("nav", sidebar(screen), id="sidebar", aria_label="Conversations"),
        element("main", *_main(screen, frame), id="main"),
        _beside(screen, frame),
        element("dialog", modal(screen), id="modal", aria_labelledby="modal-title"),
        element("div", id="toasts", role="status", aria_live="polite"),
        data_as=screen.me.id,
        data_channel=screen.channel.id if screen.channel else HOME,
        data_thread=screen.thread or None,
        data_since=screen.since,
    )
    return join([Html("<!doctype html>"), element("html", _head(screen), body, lang="en")])


def top_status(lab: Lab) -> Html:
    """The bot's state in the top bar."""
    return stamped("span", f"{APP_NAME} is ", status_html(lab.status()), class_="top-status", id="top-status-text")


def _head(screen: Screen) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title_of(screen)} · {full_name(screen.me)} · {TEAM_NAME}"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/style.css"),
        element("script", src="/static/app.js", type="module"),
    )


def _top(screen: Screen, frame: Frame) -> Html:
    return element(
        "header",
        _toggle("menu", "☰", "sidebar", aria_label="Conversations"),
        element("strong", TEAM_NAME),
        element("span", chips(frame.notices), class_="chips"),
        element("span", top_status(frame.lab), id="top-status"),
        Html("") if screen.thread else _toggle("tools-toggle", "📱 Phone & lab", "tools", aria_label="Phone and lab"),
        _switcher(screen),
        class_="top",
    )


def _toggle(id: str, text: str, opens: str, aria_label: str) -> Html:
    return element(
        "button", text, type="button", id=id, aria_label=aria_label, aria_expanded="false", aria_controls=opens
    )


def _switcher(screen: Screen) -> Html:
    links = (_other(one, screen.channel.id if screen.channel else HOME) for one in screen.others())
    note = element("p", "Each person has a window of their own.")
    summary = element("summary", _face(screen.me), element("span", full_name(screen.me), class_="who"))
    return element("details", summary, element("div", *links, note, class_="menu"), class_="switcher")


def _other(other: Person, channel: str) -> Html:
    label = join([_face(other), f"Open as {full_name(other)}", element("span", "↗", aria_hidden="true")])
    return element("a", label, href=address(other.id, channel), target="_blank")


def _face(person: Person) -> Html:
    return avatar(person.id, full_name(person))


def _main(screen: Screen, frame: Frame) -> list[Html]:
    head = element("header", heading(screen), id="head", class_="head")
    if screen.channel is None:
        return [head, element("div", home(screen), id="home", class_="home")]
    log = live_list("log", "log", f"Messages in {title_of(screen)}", conversation(screen))
    return [head, log, compose_box(screen, frame.commands)]


def _beside(screen: Screen, frame: Frame) -> Html:
    if screen.channel and screen.thread:
        return thread_pane(screen, screen.channel)
    return tools(screen, frame.lab, frame.texts, frame.notices)
