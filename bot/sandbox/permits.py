"""Permits that run out: trigger ids, which open one modal, and response urls, which take a few posts."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.sandbox.records import Timing


class PermitRefused(Exception):
    """The permit is unknown, expired or used up; `code` is Slack's word for it."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refuses this with {code!r}; ask the person to act once more.")
        self.code = code


@dataclass(frozen=True, slots=True)
class Trigger:
    """The right to open one modal for one person; `view_id` is the modal they acted in, if any."""

    id: str
    user: str
    expires: float
    view_id: str = ""
    used: bool = False


@dataclass(frozen=True, slots=True)
class ResponseUrl:
    """The right to answer an interaction; `message_ts` is the message acted on, empty for a slash command."""

    id: str
    user: str
    channel: str
    expires: float
    message_ts: str = ""
    thread_ts: str | None = None
    delivery: str = ""
    uses: int = 0


class Permits:
    """The permits handed out and not yet forgotten; safe to use from any thread."""

    def __init__(self, timing: Timing, clock: Callable[[], float]) -> None:
        self._timing = timing
        self._clock = clock
        self._lock = threading.Lock()
        self._triggers: dict[str, Trigger] = {}
        self._response_urls: dict[str, ResponseUrl] = {}

    def trigger(self, user: str, view_id: str = "") -> str:
        """A fresh trigger id."""
        with self._lock:
            now = self._clock()
            id = f"{int(now * 1000)}.{secrets.randbelow(10**10):010d}.{secrets.token_hex(16)}"
            self._triggers[id] = Trigger(id, user, now + self._timing.trigger_seconds, view_id)
            return id

    def exchange(self, id: str) -> Trigger:
        """Use up a trigger id; raises `PermitRefused`."""
        with self._lock:
            trigger = self._triggers.get(id)
            if trigger is None:
                raise PermitRefused("invalid_trigger_id")
            if trigger.used:
                raise PermitRefused("exchanged_trigger_id")
            if self._clock() > trigger.expires:
                raise PermitRefused("expired_trigger_id")
            self._triggers[id] = replace(trigger, used=True)
            return trigger

    def response_url(
        self, user: str, channel: str, delivery: str, message_ts: str = "", thread_ts: str | None = None
    ) -> str:
        """The id of a fresh response url."""
        with self._lock:
            id = secrets.token_urlsafe(18)
            expires = self._clock() + self._timing.response_url_seconds
            self._response_urls[id] = ResponseUrl(id, user, channel, expires, message_ts, thread_ts, delivery)
            return id

    def peek(self, id: str) -> ResponseUrl:
        """What a response url stands for, without using it."""
        with self._lock:
            return self._response_urls[id]

    def respond(self, id: str) -> ResponseUrl:
        """Take one use of a response url; raises `PermitRefused`."""
        with self._lock:
            url = self._response_urls.get(id)
            if url is None or self._clock() > url.expires:
                raise PermitRefused("expired_url")
            if url.uses >= self._timing.response_url_uses:
                raise PermitRefused("used_url")
            self._response_urls[id] = replace(url, uses=url.uses + 1)
            return url
