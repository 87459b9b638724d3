"""The list of channels, direct messages and apps, with what is unread."""

from __future__ import annotations

from collections.abc import Iterable

from bot.sandbox.markup import Html, element, stamped
from bot.sandbox.records import APP_NAME, BOT_USER, Channel, Unread
from bot.sandbox.screen import HOME, Screen, address, avatar, counterpart, full_name, is_human


def sidebar(screen: Screen) -> Html:
    """All conversations of this person; the open one is marked."""
    workspace, me = screen.workspace, screen.me.id
    mine, news = workspace.channels_of(me), workspace.unread(me)
    named = [_channel(one, screen, news.get(one.id)) for one in mine if one.kind != "im"]
    direct = {counterpart(one, me): one for one in mine if one.kind == "im"}
    people = [one for one in workspace.people() if is_human(one)]
    people.sort(key=lambda one: one.id == me)
    talks = [_person(screen, one.id, direct.get(one.id), news) for one in people]
    app = _person(screen, BOT_USER, direct.get(BOT_USER), news)
    return stamped(
        "div", _group("Channels", named), _group("Direct messages", talks), _group("Apps", [app]), id="sidebar-list"
    )


def _group(title: str, entries: Iterable[Html]) -> Html:
    return element("section", element("h2", title), element("ul", *(element("li", one) for one in entries)))


def _channel(channel: Channel, screen: Screen, news: Unread | None) -> Html:
    sign = "📦" if channel.archived else "#" if channel.kind == "public" else "🔒"
    label = [element("span", sign, class_="sign", aria_hidden="true"), element("span", channel.name, class_="name")]
    here = screen.channel is not None and screen.channel.id == channel.id
    # Slack counts only what names you in a channel; here every message counts, for a newcomer should see the traffic.
    return _entry(label, address(screen.me.id, channel.id), here, news.count if news else 0)


def _person(screen: Screen, person: str, channel: Channel | None, news: dict[str, Unread]) -> Html:
    found = screen.workspace.person(person)
    name = full_name(found) if found else APP_NAME
    you = [element("small", " you")] if person == screen.me.id else []
    label = [avatar(person, name), element("span", name, *you, class_="name")]
    unread = news.get(channel.id) if channel else None
    is_app, at = person == BOT_USER, screen.channel
    here = (at is None and is_app) or (at is not None and channel is not None and at.id == channel.id)
    count = unread.count if unread else 0
    # What the app wrote to someone is in its messages, so a badge leads there and not to its Home tab.
    target = HOME if is_app and not count else person
    return _entry(label, address(screen.me.id, target), here, count)


def _entry(label: list[Html], href: str, here: bool, count: int) -> Html:
    badge = [element("span", str(count), element("span", " unread", class_="unseen"), class_="count")] if count else []
    classes = "unread" if count else None
    return element("a", *label, *badge, href=href, class_=classes, aria_current="page" if here else None)
