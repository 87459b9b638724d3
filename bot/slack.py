"""How we speak to Slack: post, redraw, whisper, open and update windows, each refusal read for what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient

from bot.adapters.slack_post import find_by_key
from bot.blocks.elements import QUIET
from bot.blocks.notes import note

log = structlog.get_logger(__name__)
EVENT = "signoff_card"
UNREACHABLE = {"channel_not_found", "not_in_channel", "is_archived", "restricted_action"}
GONE = {"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive"}


@dataclass(frozen=True, slots=True)
class Posted:
    """Where a message stands."""

    channel: str
    ts: str


class Refused(Exception):
    """Slack did not do it. `code` is its own word, `wait` the seconds after which to try again."""

    def __init__(self, code: str, wait: float) -> None:
        super().__init__(f"Slack refused: {code}")
        self.code = code
        self.wait = wait


class Slack:
    """One bot's way to one workspace. Raises `Refused` for what Slack did not do."""

    def __init__(self, client: WebClient) -> None:
        self.client = client

    def post(self, channel: str, message: dict[str, Any], key: str) -> Posted:
        """Post a message that can be found again by its key."""
        metadata = {"event_type": EVENT, "event_payload": {"key": key}}
        reply = self._call("chat_postMessage", channel=channel, metadata=metadata, **message, **QUIET)
        return Posted(str(reply["channel"]), str(reply["ts"]))

    def find(self, channel: str, key: str, since: float) -> Posted | None:
        """A message posted earlier whose answer was lost; `since` in seconds since the epoch."""
        try:
            ts = find_by_key(self.client, channel, EVENT, key, since)
        except SlackApiError as error:
            if error.response.get("error") in UNREACHABLE:
                return None
            raise _refused(error) from error
        return Posted(channel, ts) if ts else None

    def update(self, place: Posted, message: dict[str, Any]) -> None:
        """Draw a message anew."""
        shown = {name: value for name, value in message.items() if name in ("text", "blocks")}
        self._call("chat_update", channel=place.channel, ts=place.ts, **shown)

    def direct(self, user: str) -> str:
        """The channel of direct messages with a person."""
        return str(self._call("conversations_open", users=[user])["channel"]["id"])

    def permalink(self, place: Posted) -> str:
        """The address of a message, or "" where there is none."""
        try:
            return self._permalink(place)
        except Refused:
            return ""

    def stands(self, place: Posted) -> bool:
        """Whether a message is still there; True as long as Slack does not say that it is gone."""
        try:
            return bool(self._permalink(place))
        except Refused as error:
            return error.code not in GONE

    def _permalink(self, place: Posted) -> str:
        return str(self._call("chat_getPermalink", channel=place.channel, message_ts=place.ts)["permalink"])

    def open_view(self, trigger_id: str, view: dict[str, Any]) -> str:
        """Open a window; its id."""
        return str(self._call("views_open", trigger_id=trigger_id, view=view)["view"]["id"])

    def push_view(self, trigger_id: str, view: dict[str, Any]) -> str:
        """Open a window on top of another; its id."""
        return str(self._call("views_push", trigger_id=trigger_id, view=view)["view"]["id"])

    def update_view(self, view_id: str, view: dict[str, Any]) -> None:
        """Show something else in an open window."""
        self._call("views_update", view_id=view_id, view=view)

    def publish_home(self, user: str, view: dict[str, Any]) -> None:
        """Show a person's Home tab."""
        self._call("views_publish", user_id=user, view=view)

    def whisper(self, text: str, *, user: str, channel: str = "", response_url: str = "") -> bool:
        """Tell one person something, in the way that works: where they clicked, in the channel, or directly."""
        message = note(text)
        return (
            (bool(response_url) and self._respond(response_url, message))
            or (bool(channel) and self._tried("chat_postEphemeral", channel=channel, user=user, **message))
            or self._direct_note(user, message)
        )

    def _respond(self, url: str, message: dict[str, Any]) -> bool:
        try:
            reply = WebhookClient(url, timeout=5, retry_handlers=[]).send(
                text=message["text"], blocks=message["blocks"], response_type="ephemeral", replace_original=False
            )
        except Exception as error:
            log.info("response_url failed", error=type(error).__name__)
            return False
        return reply.status_code == 200

    def _direct_note(self, user: str, message: dict[str, Any]) -> bool:
        try:
            return self._tried("chat_postMessage", channel=self.direct(user), **message, **QUIET)
        except Refused:
            return False

    def _tried(self, method: str, **arguments: Any) -> bool:
        try:
            self._call(method, **arguments)
        except Refused as error:
            log.info("whisper refused", method=method, code=error.code)
            return False
        return True

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return getattr(self.client, method)(**arguments)
        except SlackApiError as error:
            raise _refused(error) from error
        except OSError as error:
            raise Refused(f"no answer ({type(error).__name__})", 5.0) from error


def _refused(error: SlackApiError) -> Refused:
    code = str(error.response.get("error") or f"HTTP {error.response.status_code}")
    wait = error.response.headers.get("Retry-After")
    return Refused(code, float(wait) if wait else 5.0)
