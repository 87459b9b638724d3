"""Posts to Slack channels as effects: requested once, found again by the key in the message's metadata."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import JsonValue
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.adapters.outgoing import DEADLINE, within
from graphs.ports import Busy, NotAccepted, Sent

EVENT = "signoff_effect"
_LATER = {"ratelimited", "rate_limited", "service_unavailable"}
_UNSURE = {"fatal_error", "internal_error", "request_timeout"}


class SlackPost:
    """Implements `graphs.ports.Sender` for the kind `post`; the client must not retry by itself."""

    kind = "post"
    absence_proves = True

    def __init__(self, client: WebClient) -> None:
        self._client = client

    def send(self, key: str, address: str, content: str, payload: Mapping[str, JsonValue]) -> Sent:
        """See `Sender.send`."""
        text = content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        metadata = {"event_type": EVENT, "event_payload": {"key": key}}

        def post() -> Any:
            return self._client.chat_postMessage(
                channel=address, text=text, metadata=metadata, mrkdwn=False, unfurl_links=False, unfurl_media=False
            )

        try:
            reply = within(DEADLINE, post)
        except SlackApiError as error:
            raise _read(error) from error
        return Sent(ref=str(reply["ts"]), detail={"channel": str(reply["channel"])})

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None:
        """See `Sender.look_up`."""
        try:
            found = find_by_key(self._client, address, EVENT, key, since.timestamp() - 60)
        except SlackApiError as error:
            until = datetime.now(UTC) + timedelta(seconds=30)
            raise Busy(f"Slack could not be asked: {error.response.get('error', 'no answer')}.", until) from error
        return Sent(ref=found, detail={"channel": address}) if found else None


def find_by_key(client: WebClient, channel: str, event: str, key: str, since: float) -> str:
    """The ts of the message that carries `key` in its metadata, or ""; `since` in seconds since the epoch.

    Source: conversations.history returns metadata with `include_all_metadata`.
    """
    cursor = ""
    while True:
        page: Any = client.conversations_history(
            channel=channel, oldest=f"{since:.6f}", include_all_metadata=True, limit=200, cursor=cursor
        )
        for message in page["messages"]:
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == event and (metadata.get("event_payload") or {}).get("key") == key:
                return str(message["ts"])
        cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
        if not cursor:
            return ""


def _read(error: SlackApiError) -> Exception:
    """A refusal proves that nothing was posted; a server's own trouble proves nothing."""
    code = str(error.response.get("error", ""))
    if error.response.status_code == 429 or code in _LATER:
        wait = float(error.response.headers.get("Retry-After") or 5)
        return NotAccepted(f"Slack asked to wait: {code}.", datetime.fromtimestamp(time.time() + wait, UTC))
    if error.response.status_code >= 500 or code in _UNSURE:
        return error
    return NotAccepted(f"Slack refused the message: {code}.")
