"""The methods of the Web API about the team, its people, the app and its token."""

from __future__ import annotations

from bot.sandbox import wire
from bot.sandbox.records import (
    APP_ID,
    APP_NAME,
    BOT_ID,
    BOT_USER,
    TEAM_ID,
    TEAM_NAME,
    JsonObject,
    Person,
)
from bot.sandbox.refusal import Refusal
from bot.sandbox.site import Arguments, Site, page


def auth_test(site: Site, _arguments: Arguments) -> JsonObject:
    """auth.test."""
    return {
        "url": f"{site.url()}/",
        "team": TEAM_NAME,
        "user": "signoff",
        "team_id": TEAM_ID,
        "user_id": BOT_USER,
        "bot_id": BOT_ID,
        "is_enterprise_install": False,
    }


def open_connection(site: Site, _arguments: Arguments) -> JsonObject:
    """apps.connections.open."""
    return {"url": site.socket_url()}


def user_info(site: Site, arguments: Arguments) -> JsonObject:
    """users.info."""
    return {"user": wire.member(_person(site, arguments.required("user")))}


def user_list(site: Site, arguments: Arguments) -> JsonObject:
    """users.list."""
    shown, more = page(site.workspace.people(), arguments)
    return {"members": [wire.member(person) for person in shown], "cache_ts": int(site.workspace.clock())} | more


def presence(site: Site, arguments: Arguments) -> JsonObject:
    """users.getPresence: everyone who was not deactivated is there."""
    return {"presence": "away" if _person(site, arguments.required("user")).deleted else "active"}


def bot_info(_site: Site, arguments: Arguments) -> JsonObject:
    """bots.info."""
    if arguments.text("bot", BOT_ID) != BOT_ID:
        raise Refusal("bot_not_found")
    bot = {"id": BOT_ID, "deleted": False, "name": APP_NAME, "updated": 0, "app_id": APP_ID, "user_id": BOT_USER}
    return {"bot": {**bot, "icons": {}}}


def team_info(site: Site, _arguments: Arguments) -> JsonObject:
    """team.info."""
    return {"team": wire.team_details(f"{site.url()}/")}


def _person(site: Site, id: str) -> Person:
    person = site.workspace.person(id)
    if person is None:
        raise Refusal("user_not_found")
    return person
