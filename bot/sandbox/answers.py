"""What an app says back to a command or a click: in its ack or through a response url."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot import limits
from bot.sandbox import block_kit, wire
from bot.sandbox.permits import ResponseUrl
from bot.sandbox.records import BOT_ID, BOT_USER, JsonObject, Message
from bot.sandbox.refusal import Refusal, invalid
from bot.sandbox.workspace import Workspace


def respond(workspace: Workspace, url: ResponseUrl, body: JsonObject) -> Message | None:
    """Post, replace or delete as `body` says, without any membership; returns the message shown.

    Raises `Refusal`. A command's answers cannot be replaced: there, replacing posts anew, as in Slack.
    """
    with workspace.lock:
        original = workspace.message(url.channel, url.message_ts) if url.message_ts else None
        if body.get("delete_original"):
            if original is not None:
                workspace.delete_message(original.channel, original.ts)
            return None
        text, blocks = content(body)
        if body.get("replace_original") and original is not None:
            return workspace.put_message(_replaced(original, text, blocks))
        private = body.get("response_type", "ephemeral") != "in_channel"
        return workspace.post(
            url.channel,
            BOT_USER,
            text,
            bot=BOT_ID,
            blocks=blocks,
            thread_ts=body.get("thread_ts") or url.thread_ts,
            ephemeral_to=url.user if private else None,
            response_of=url.delivery,
        )


def answer_command(workspace: Workspace, url: ResponseUrl, response: Any) -> str:
    """Show what the ack of a command carries; returns what is wrong with it, or the empty string."""
    if response in (None, "", {}):
        return ""
    body = response if isinstance(response, dict) else {"text": str(response)}
    try:
        respond(workspace, url, body)
    except Refusal as refusal:
        return refusal.code
    return ""


def content(body: JsonObject) -> tuple[str, tuple[JsonObject, ...]]:
    """The text and blocks of a message, checked but for the sum of their text; raises `Refusal`."""
    blocks = body.get("blocks") or []
    text = body.get("text") or ""
    if not blocks and not text:
        raise Refusal("no_text")
    if problems := block_kit.check_message(blocks):
        raise invalid("invalid_blocks", [problem.sentence() for problem in problems])
    return (str(text) or wire.UNTITLED_TEXT)[: limits.MESSAGE_TEXT_TRUNCATED], tuple(block_kit.with_ids(blocks))


def _replaced(original: Message, text: str, blocks: tuple[JsonObject, ...]) -> Message:
    return replace(original, text=text, blocks=blocks)
