"""Texts and posts that go to the practice API instead of a phone company or Slack."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx2
from pydantic import JsonValue

from bot.adapters.outgoing import Clock, Unanswered, plain, post_once, utc_now
from graphs.ports import Busy, Nonsense, Sent


class _PracticeSender:
    """The practice API can be asked for a key, so an absent key proves that nothing went out.

    `send` raises `NotAccepted`, or `Unanswered` when the outcome is unknown; `look_up` raises `Busy` or `Nonsense`.
    """

    kind = ""
    absence_proves = True
    _path = ""

    def __init__(self, client: httpx2.Client, clock: Clock = utc_now) -> None:
        self._client = client
        self._clock = clock

    def send(self, key: str, address: str, content: str, payload: Mapping[str, JsonValue]) -> Sent:
        body = {"to": address, "body": content, "key": key}
        entry = post_once(self._client, self._path, body, other="The practice API", clock=self._clock)
        if not entry.get("sid"):
            raise Unanswered("The practice API gave no reference; look there before sending again.")
        return Sent(ref=str(entry["sid"]), detail=entry)

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None:
        entries = self._find(key)
        return Sent(ref=str(entries[0]["sid"]), detail=entries[0]) if entries else None

    def _find(self, key: str) -> list[dict[str, Any]]:
        try:
            response = self._client.get(self._path, params={"key": key}).raise_for_status()
        except httpx2.HTTPError as error:
            until = self._clock() + timedelta(seconds=30)
            raise Busy(f"The practice API could not be asked: {plain(error)}", until) from error
        try:
            entries: list[dict[str, Any]] = response.json()[self._path.lstrip("/")]
        except (ValueError, KeyError, TypeError) as error:
            raise Nonsense("The practice API answered something that is no list; check its address.") from error
        return entries


class PracticeSms(_PracticeSender):
    """Text messages of the practice API."""

    kind = "sms"
    _path = "/messages"


class PracticePost(_PracticeSender):
    """Posts to a channel, kept by the practice API where there is no Slack."""

    kind = "post"
    _path = "/posts"
