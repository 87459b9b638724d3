"""The chat and reactions methods of the Web API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot import limits
from bot.sandbox import answers, block_kit, wire
from bot.sandbox.records import BOT_ID, BOT_USER, Channel, JsonObject, Message
from bot.sandbox.refusal import Refusal
from bot.sandbox.site import Arguments, Site

TRUNCATED = "message_truncated"


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    blocks: tuple[JsonObject, ...]
    truncated: bool = False


def post_message(site: Site, arguments: Arguments) -> JsonObject:
    """chat.postMessage."""
    channel = _writable(site, _destination(site, arguments.required("channel")))
    draft = _draft(arguments)
    metadata = _metadata(arguments)
    message = site.workspace.post(
        channel.id,
        BOT_USER,
        draft.text,
        bot=BOT_ID,
        blocks=draft.blocks,
        thread_ts=arguments.text("thread_ts") or None,
        metadata=metadata or None,
    )
    return {"channel": channel.id, "ts": message.ts, "message": wire.message(message, metadata=True)} | _warning(draft)


def post_ephemeral(site: Site, arguments: Arguments) -> JsonObject:
    """chat.postEphemeral."""
    channel = _writable(site, _destination(site, arguments.required("channel")))
    person = arguments.required("user")
    if person not in channel.members:
        raise Refusal("user_not_in_channel")
    if len(arguments.text("text")) > limits.MESSAGE_TEXT_TRUNCATED:
        raise Refusal("msg_too_long")
    draft = _draft(arguments)
    thread = arguments.text("thread_ts") or None
    message = site.workspace.post(
        channel.id, BOT_USER, draft.text, bot=BOT_ID, blocks=draft.blocks, thread_ts=thread, ephemeral_to=person
    )
    return {"message_ts": message.ts}


def update(site: Site, arguments: Arguments) -> JsonObject:
    """chat.update: text without blocks removes the blocks; metadata stays unless sent."""
    channel = site.visible(arguments.required("channel"))
    if channel.archived:
        raise Refusal("is_inactive")
    if len(arguments.text("text")) > limits.UPDATE_TEXT:
        raise Refusal("msg_too_long")
    draft = _draft(arguments)
    metadata = _metadata(arguments)
    with site.workspace.lock:
        message = _own(site, channel, arguments.required("ts"), "cant_update_message")
        changed = replace(
            message,
            text=draft.text,
            blocks=draft.blocks,
            metadata=message.metadata if metadata is None else metadata or None,
            edited=message.edited if draft.blocks else site.workspace.next_ts(),
        )
        site.workspace.put_message(changed)
    body = wire.message(changed, metadata=True)
    return {"channel": channel.id, "ts": changed.ts, "text": changed.text, "message": body}


def delete(site: Site, arguments: Arguments) -> JsonObject:
    """chat.delete."""
    channel = site.visible(arguments.required("channel"))
    with site.workspace.lock:
        message = _own(site, channel, arguments.required("ts"), "cant_delete_message")
        site.workspace.delete_message(channel.id, message.ts)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(site: Site, arguments: Arguments) -> JsonObject:
    """chat.getPermalink."""
    channel = site.visible(arguments.required("channel"))
    message = _shown(site, channel, arguments.required("message_ts"))
    link = f"{site.url()}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.is_reply:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


def add_reaction(site: Site, arguments: Arguments) -> JsonObject:
    """reactions.add."""
    channel, name = site.visible(arguments.required("channel")), arguments.required("name").strip(":")
    with site.workspace.lock:
        message = _shown(site, channel, arguments.required("timestamp"))
        by_name = dict(message.reactions)
        if BOT_USER in by_name.get(name, ()):
            raise Refusal("already_reacted")
        by_name[name] = (*by_name.get(name, ()), BOT_USER)
        site.workspace.put_message(replace(message, reactions=tuple(by_name.items())))
    return {}


def validate_blocks(_site: Site, arguments: Arguments) -> JsonObject:
    """blocks.validate, for blocks only."""
    problems = block_kit.check_message(arguments.json("blocks", "invalid_blocks_format"))
    if problems:
        errors = [{"code": "failed_constraint", "message": one.message, "pointer": one.pointer} for one in problems]
        raise Refusal("invalid_blocks", errors=errors)
    return {}


def _destination(site: Site, name: str) -> Channel:
    """The conversation a message is addressed to: by id, by name, or a person's direct messages."""
    person = site.workspace.person(name)
    if person is not None:
        if person.deleted or person.is_bot:
            raise Refusal("channel_not_found")
        return site.workspace.direct_message(BOT_USER, person.id)
    named = (one.id for one in site.workspace.channels() if one.name and one.name == name.removeprefix("#"))
    return site.visible(next(named, name))


def _writable(site: Site, channel: Channel) -> Channel:
    if channel.archived:
        raise Refusal("is_archived")
    if BOT_USER not in channel.members and not site.allowed.has_scope("chat:write.public"):
        raise Refusal("not_in_channel")
    return channel


def _draft(arguments: Arguments) -> _Draft:
    blocks = arguments.json("blocks", "invalid_blocks_format") or []
    markdown, text = arguments.text("markdown_text"), arguments.text("text")
    if markdown and (blocks or text):
        raise Refusal("markdown_text_conflict")
    if len(markdown) > limits.MARKDOWN_TEXT:
        raise Refusal("msg_too_long")
    if not isinstance(blocks, list):
        raise Refusal("invalid_blocks_format")
    written, checked = answers.content({"text": text or markdown, "blocks": blocks})
    if block_kit.text_length(checked) > limits.MESSAGE_BLOCKS_TEXT:
        raise Refusal("msg_blocks_too_long")
    return _Draft(written, checked, len(text) > limits.MESSAGE_TEXT_TRUNCATED)


def _warning(draft: _Draft) -> JsonObject:
    if not draft.truncated:
        return {}
    return {"warning": TRUNCATED, "response_metadata": {"warnings": [TRUNCATED]}}


def _metadata(arguments: Arguments) -> JsonObject | None:
    """None when not sent, empty when sent to be removed."""
    metadata: Any = arguments.json("metadata", "invalid_metadata_format")
    if metadata is None or metadata == {}:
        return metadata  # type: ignore[no-any-return]
    known = isinstance(metadata, Mapping) and isinstance(metadata.get("event_type"), str)
    if not known or not isinstance(metadata.get("event_payload"), Mapping):
        raise Refusal("invalid_metadata_format")
    if len(json.dumps(metadata)) > limits.METADATA_BYTES:
        raise Refusal("metadata_too_large")
    return {"event_type": metadata["event_type"], "event_payload": dict(metadata["event_payload"])}


def _shown(site: Site, channel: Channel, ts: str) -> Message:
    message = site.workspace.message(channel.id, ts)
    if message is None or message.ephemeral_to is not None:
        raise Refusal("message_not_found")
    return message


def _own(site: Site, channel: Channel, ts: str, otherwise: str) -> Message:
    message = _shown(site, channel, ts)
    if message.bot != BOT_ID:
        raise Refusal(otherwise)
    return message
