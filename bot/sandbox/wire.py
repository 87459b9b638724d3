"""People, channels, messages and views in the JSON Slack itself uses for them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.sandbox.records import (
    APP_ID,
    APP_NAME,
    BOT_ID,
    TEAM_DOMAIN,
    TEAM_ID,
    TEAM_NAME,
    Channel,
    JsonObject,
    Message,
    Person,
    View,
)

UNTITLED_TEXT = "This content can't be displayed."


def team() -> JsonObject:
    """The team as interaction payloads name it."""
    return {"id": TEAM_ID, "domain": TEAM_DOMAIN}


def team_details(url: str) -> JsonObject:
    """The team as team.info describes it."""
    return {"id": TEAM_ID, "name": TEAM_NAME, "domain": TEAM_DOMAIN, "url": url, "email_domain": "", "icon": {}}


def actor(person: Person) -> JsonObject:
    """The person as interaction payloads name them."""
    return {"id": person.id, "username": person.name, "name": person.name, "team_id": TEAM_ID}


def member(person: Person) -> JsonObject:
    """The person as users.info describes them."""
    label, offset = _zone(person.time_zone)
    profile = {
        "real_name": person.real_name,
        "real_name_normalized": person.real_name,
        "display_name": person.name,
        "display_name_normalized": person.name,
        "team": TEAM_ID,
    }
    if person.is_bot:
        profile["bot_id"] = BOT_ID
        profile["api_app_id"] = APP_ID
    return {
        "id": person.id,
        "team_id": TEAM_ID,
        "name": person.name,
        "deleted": person.deleted,
        "color": person.color,
        "real_name": person.real_name,
        "tz": person.time_zone,
        "tz_label": label,
        "tz_offset": offset,
        "profile": profile,
        "is_admin": False,
        "is_owner": False,
        "is_primary_owner": False,
        "is_restricted": person.is_restricted,
        "is_ultra_restricted": False,
        "is_bot": person.is_bot,
        "is_app_user": False,
        "updated": 0,
    }


def conversation(channel: Channel, viewer: str) -> JsonObject:
    """The channel as conversations.info describes it to `viewer`."""
    common = {
        "id": channel.id,
        "created": channel.created,
        "is_archived": channel.archived,
        "is_im": channel.kind == "im",
        "is_org_shared": False,
        "context_team_id": TEAM_ID,
    }
    if channel.kind == "im":
        other = next((one for one in channel.members if one != viewer), viewer)
        return {**common, "user": other, "is_open": True, "is_user_deleted": False, "priority": 0}
    return {
        **common,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": channel.kind == "public",
        "is_group": channel.kind == "private",
        "is_mpim": False,
        "is_private": channel.kind == "private",
        "is_general": channel.name == "general",
        "is_member": viewer in channel.members,
        "is_shared": False,
        "is_ext_shared": False,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        "num_members": len(channel.members),
    }


def message(one: Message, *, metadata: bool = False) -> JsonObject:
    """The message as histories and payloads show it; `metadata` adds what its app attached."""
    body: JsonObject = {"type": "message", "user": one.user, "ts": one.ts, "text": one.text, "team": TEAM_ID}
    if one.bot:
        body |= {"bot_id": one.bot, "app_id": APP_ID, "bot_profile": bot_profile()}
    if one.blocks:
        body["blocks"] = list(one.blocks)
    if one.thread_ts:
        body["thread_ts"] = one.thread_ts
    if one.edited:
        body["edited"] = {"user": one.bot or one.user, "ts": one.edited}
    if one.subtype:
        body["subtype"] = one.subtype
    if one.reactions:
        body["reactions"] = [{"name": name, "users": list(who), "count": len(who)} for name, who in one.reactions]
    if metadata and one.metadata:
        body["metadata"] = one.metadata
    return body


def bot_profile() -> JsonObject:
    """The app as its messages name it."""
    return {
        "id": BOT_ID,
        "app_id": APP_ID,
        "name": APP_NAME,
        "icons": {},
        "deleted": False,
        "updated": 0,
        "team_id": TEAM_ID,
    }


def view(one: View) -> JsonObject:
    """The view as payloads and the views methods show it."""
    body: JsonObject = {
        "id": one.id,
        "team_id": TEAM_ID,
        "app_id": APP_ID,
        "app_installed_team_id": TEAM_ID,
        "bot_id": BOT_ID,
        "type": one.kind,
        "blocks": one.blocks,
        "private_metadata": one.private_metadata,
        "callback_id": one.callback_id,
        "external_id": one.external_id,
        "state": {"values": one.state},
        "hash": one.hash,
        "root_view_id": one.root_view_id,
        "previous_view_id": one.previous_view_id,
        "clear_on_close": bool(one.view.get("clear_on_close")),
        "notify_on_close": bool(one.view.get("notify_on_close")),
    }
    for name in ("title", "submit", "close"):
        body[name] = one.view.get(name)
    return body


def _zone(name: str) -> tuple[str, int]:
    try:
        now = datetime.now(UTC).astimezone(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError):
        return name, 0
    offset = now.utcoffset()
    return now.tzname() or name, int(offset.total_seconds()) if offset else 0
