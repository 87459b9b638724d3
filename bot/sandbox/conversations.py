"""The conversations methods of the Web API."""

from __future__ import annotations

from collections.abc import Sequence

from bot.sandbox import wire
from bot.sandbox.records import BOT_USER, Channel, ChannelKind, JsonObject, Message
from bot.sandbox.refusal import Refusal
from bot.sandbox.site import HISTORY_SCOPES, READ_SCOPES, Arguments, Site, page

_TYPES: dict[str, ChannelKind | None] = {
    "public_channel": "public",
    "private_channel": "private",
    "im": "im",
    "mpim": None,
}


def open_conversation(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.open, for a direct message with one person."""
    site.need("im:write")
    if arguments.text("channel"):
        return {"channel": _opened(site.visible(arguments.text("channel")), arguments)}
    ids = [id for id in arguments.text("users").split(",") if id]
    if not ids:
        raise Refusal("users_list_not_supplied")
    if len(ids) > 1:
        site.need("mpim:write")
        raise Refusal("too_many_users")
    person = site.workspace.person(ids[0])
    if person is None:
        raise Refusal("user_not_found")
    if person.deleted:
        raise Refusal("user_disabled")
    if person.is_bot:
        raise Refusal("cannot_dm_bot")
    return {"channel": _opened(site.workspace.direct_message(BOT_USER, person.id), arguments)}


def info(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.info."""
    return {"channel": wire.conversation(_readable(site, arguments), BOT_USER)}


def members(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.members."""
    ids, more = page(_readable(site, arguments).members, arguments)
    return {"members": ids} | more


def list_conversations(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.list, of the types asked for (public channels without)."""
    names = arguments.text("types", "public_channel").replace(" ", "").split(",")
    if not set(names) <= set(_TYPES):
        raise Refusal("invalid_types")
    kinds = {_TYPES[name] for name in names}
    for kind in kinds & set(READ_SCOPES):
        site.need(READ_SCOPES[kind])  # type: ignore[index]
    known = [one for one in site.workspace.channels_of(BOT_USER) if one.kind in kinds]
    kept = [one for one in known if not (one.archived and arguments.flag("exclude_archived"))]
    shown, more = page(kept, arguments)
    return {"channels": [wire.conversation(one, BOT_USER) for one in shown]} | more


def history(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.history, newest first."""
    channel = _member_of(site, arguments)
    found = _between(site.workspace.messages(channel.id), arguments)
    return _told(list(reversed(found)), arguments)


def replies(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.replies, oldest first, beginning with the message the thread hangs on."""
    channel = _member_of(site, arguments)
    thread = site.workspace.messages(channel.id, thread_ts=arguments.required("ts"))
    if not thread:
        raise Refusal("thread_not_found")
    return _told(_between(thread, arguments), arguments)


def join(site: Site, arguments: Arguments) -> JsonObject:
    """conversations.join, for public channels."""
    channel = site.visible(arguments.required("channel"))
    if channel.kind != "public":
        raise Refusal("method_not_supported_for_channel_type")
    if channel.archived:
        raise Refusal("is_archived")
    return {"channel": wire.conversation(site.workspace.join(channel.id, BOT_USER), BOT_USER)}


def _opened(channel: Channel, arguments: Arguments) -> JsonObject:
    return wire.conversation(channel, BOT_USER) if arguments.flag("return_im") else {"id": channel.id}


def _readable(site: Site, arguments: Arguments) -> Channel:
    channel = site.visible(arguments.required("channel"))
    site.need(READ_SCOPES[channel.kind])
    return channel


def _member_of(site: Site, arguments: Arguments) -> Channel:
    channel = site.visible(arguments.required("channel"))
    site.need(HISTORY_SCOPES[channel.kind])
    if BOT_USER not in channel.members:
        raise Refusal("not_in_channel")
    return channel


def _between(messages: Sequence[Message], arguments: Arguments) -> list[Message]:
    oldest, latest = arguments.text("oldest", "0"), arguments.text("latest")
    inclusive = arguments.flag("inclusive")
    return [
        one
        for one in messages
        if (one.ts > oldest or (inclusive and one.ts == oldest))
        and (not latest or one.ts < latest or (inclusive and one.ts == latest))
    ]


def _told(messages: Sequence[Message], arguments: Arguments) -> JsonObject:
    shown, more = page(messages, arguments)
    with_metadata = arguments.flag("include_all_metadata")
    has_more = bool(more["response_metadata"]["next_cursor"])
    return {"messages": [wire.message(one, metadata=with_metadata) for one in shown], "has_more": has_more} | more
