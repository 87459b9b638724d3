"""What stands above the open conversation."""

from __future__ import annotations

from bot.sandbox.markup import Html, element, join, stamped
from bot.sandbox.records import APP_NAME, BOT_USER, Channel
from bot.sandbox.screen import HOME, Screen, address, avatar, counterpart, full_name, title_of

_SIGNS = {"public": "# ", "private": "🔒 ", "im": ""}


def heading(screen: Screen) -> Html:
    """The channel with its topic and people, the other person, or the app with its tabs."""
    channel = screen.channel
    if channel is None or counterpart(channel, screen.me.id) == BOT_USER:
        return stamped("div", _app(screen), id="head-text")
    if channel.kind == "im":
        return stamped("div", _person(screen, channel), id="head-text")
    sign = element("span", _SIGNS[channel.kind], class_="sign", aria_hidden="true")
    topic = element("span", channel.topic, class_="topic")
    return stamped("div", element("h1", sign, title_of(screen)), topic, _people(screen, channel), id="head-text")


def _people(screen: Screen, channel: Channel) -> Html:
    members = (screen.workspace.person(one) for one in channel.members)
    names = [full_name(one) for one in members if one and not one.is_bot]
    return element("span", f"👥 {len(names)}", title=", ".join(names), aria_label=f"Members: {', '.join(names)}")


def _person(screen: Screen, channel: Channel) -> Html:
    person = screen.workspace.person(counterpart(channel, screen.me.id))
    name = full_name(person) if person else title_of(screen)
    return element("h1", avatar(person.id if person else channel.id, name), name)


def _app(screen: Screen) -> Html:
    at_home = screen.channel is None
    tabs = (
        element("a", "Home", href=address(screen.me.id, HOME), aria_current="page" if at_home else None),
        element("a", "Messages", href=address(screen.me.id, BOT_USER), aria_current=None if at_home else "page"),
    )
    title = element("h1", avatar(BOT_USER, APP_NAME), APP_NAME, element("span", "APP", class_="badge"))
    return join([title, element("nav", *tabs, class_="tabs", aria_label=APP_NAME)])
