"""The payloads Slack sends to an app: commands, actions, submissions, events."""

from __future__ import annotations

from bot.sandbox import wire
from bot.sandbox.records import (
    APP_ID,
    BOT_USER,
    TEAM_DOMAIN,
    TEAM_ID,
    Channel,
    JsonObject,
    Message,
    Person,
    View,
)

VERIFICATION_TOKEN = "sandbox-verification-token"
_UNNAMED = {"im": "directmessage", "private": "privategroup"}


def slash_command(
    person: Person, channel: Channel, command: str, text: str, *, trigger_id: str, response_url: str
) -> JsonObject:
    """The form fields of a slash command."""
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM_ID,
        "team_domain": TEAM_DOMAIN,
        "channel_id": channel.id,
        "channel_name": channel_name(channel),
        "user_id": person.id,
        "user_name": person.name,
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": trigger_id,
    }


def message_actions(
    person: Person,
    channel: Channel,
    message: Message,
    state: JsonObject,
    actions: list[JsonObject],
    *,
    trigger_id: str,
    response_url: str,
) -> JsonObject:
    """Block actions on a message; a private answer is not repeated in the payload, as in Slack."""
    container: JsonObject = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": message.ephemeral_to is not None,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    body = _interaction("block_actions", person) | {
        "container": container,
        "trigger_id": trigger_id,
        "channel": {"id": channel.id, "name": channel_name(channel)},
        "state": {"values": state},
        "response_url": response_url,
        "actions": actions,
    }
    return body if message.ephemeral_to else body | {"message": wire.message(message)}


def view_actions(person: Person, view: View, actions: list[JsonObject], trigger_id: str) -> JsonObject:
    """Block actions in a modal or on the Home tab."""
    return _interaction("block_actions", person) | {
        "container": {"type": "view", "view_id": view.id},
        "trigger_id": trigger_id,
        "view": wire.view(view),
        "actions": actions,
    }


def view_submission(person: Person, view: View, trigger_id: str) -> JsonObject:
    """A modal was submitted; its state is that of the view."""
    return _interaction("view_submission", person) | {
        "trigger_id": trigger_id,
        "view": wire.view(view),
        "response_urls": [],
    }


def view_closed(person: Person, view: View, is_cleared: bool) -> JsonObject:
    """A modal was closed; `is_cleared` when the whole stack went with it."""
    return _interaction("view_closed", person) | {"view": wire.view(view), "is_cleared": is_cleared}


def event(kind: str, body: JsonObject, event_id: str, at: float) -> JsonObject:
    """The envelope of the Events API around one event."""
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM_ID,
        "api_app_id": APP_ID,
        "event": {"type": kind, **body},
        "type": "event_callback",
        "event_id": event_id,
        "event_time": int(at),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": TEAM_ID,
                "user_id": BOT_USER,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": f"4-{kind}-{TEAM_ID}-{APP_ID}",
    }


def message_event(message: Message, channel: Channel) -> JsonObject:
    """The body of a message or app_mention event."""
    kinds = {"public": "channel", "private": "group", "im": "im"}
    body = wire.message(message) | {
        "channel": channel.id,
        "channel_type": kinds[channel.kind],
        "event_ts": message.ts,
        "client_msg_id": message.ts,
    }
    del body["type"]
    return body


def home_opened(person: Person, direct_message: Channel, view: View | None, at: str) -> JsonObject:
    """The body of an app_home_opened event."""
    body: JsonObject = {"user": person.id, "channel": direct_message.id, "tab": "home", "event_ts": at}
    return body | {"view": wire.view(view)} if view else body


def channel_name(channel: Channel) -> str:
    """The name payloads give a channel: private ones and direct messages are not named."""
    return _UNNAMED.get(channel.kind, channel.name)


def _interaction(kind: str, person: Person) -> JsonObject:
    return {
        "type": kind,
        "user": wire.actor(person),
        "api_app_id": APP_ID,
        "token": VERIFICATION_TOKEN,
        "team": wire.team(),
        "enterprise": None,
        "is_enterprise_install": False,
    }
