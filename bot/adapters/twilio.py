"""Text messages through Twilio, which has no way to refuse a message sent twice: an unknown outcome is for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlencode

from pydantic import JsonValue

from bot.adapters.outgoing import DEADLINE, Clock, Unanswered, plain, utc_now, within
from graphs.ports import Busy, Misconfigured, NotAccepted, Sent

READ_SECONDS = 8.0
LOOK_BACK = timedelta(minutes=1)
MOST_LISTED = 200
TRIAL_PREFIX = "Sent from your Twilio trial account - "

_BUSY_CODES = {20429: "Twilio has too many requests", 21611: "the queue of the sending number is full"}
_WORDS = {
    20003: "the account SID or token is wrong; correct the settings",
    21211: "the number is not a valid phone number; correct it",
    21212: "the sending number is not valid; correct the setting",
    21408: "the account may not text that country; allow it in Twilio's console",
    21606: "the sending number is not a number of this account that can text; correct the setting",
    21608: "a trial account texts only numbers verified with Twilio; verify it or upgrade",
    21610: "the recipient has opted out of texts from this number; they can text START to come back",
    21614: "the number is not a mobile number; give another one",
    21617: "the text is longer than 1600 characters; shorten it",
}


class TwilioSms:
    """The `sms` sender over a `twilio.rest.Client` whose HTTP client has a timeout and no retries.

    `sender` is a phone number, or the SID of a messaging service (MG...). `status_url`, where given, is told how each
    text fares, with the effect's key in its query. `look_up` matches recipient, body and time; as Twilio keeps no key
    of ours and lists a message late at times, its absence proves nothing.
    """

    kind = "sms"
    absence_proves = False

    def __init__(self, client: Any, sender: str, status_url: str = "", clock: Clock = utc_now) -> None:
        self._client = client
        self._sender = sender
        self._status_url = status_url
        self._clock = clock

    def send(self, key: str, address: str, content: str, payload: Mapping[str, JsonValue]) -> Sent:
        """Ask once. Raises `NotAccepted`, or `Unanswered` when the outcome is unknown."""
        arguments = {"to": address, "body": content, **self._from(), **self._callback(key)}
        try:
            message = within(DEADLINE, lambda: self._client.messages.create(**arguments))
        except Exception as error:
            self._explain(error)
        if not message.sid:
            raise Unanswered("Twilio gave no reference for the text; look in its log before sending again.")
        return _sent(message)

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None:
        """The first text like this one created since then (less a minute, for clocks differ). Raises `Busy`."""
        earliest = since.astimezone(UTC) - LOOK_BACK
        try:
            messages = within(
                2 * DEADLINE,
                # Twilio compares days, and formats the time it is given without converting it.
                lambda: self._client.messages.list(to=address, date_sent_after=earliest, limit=MOST_LISTED),
            )
        except Exception as error:
            raise Busy(
                f"Twilio's log could not be read: {_said(error)}", self._clock() + timedelta(minutes=1)
            ) from error
        alike = [m for m in messages if _is_body(m.body, content) and (m.date_created or earliest) >= earliest]
        alike.sort(key=lambda m: m.date_created or earliest)
        return _sent(alike[0]) if alike else None

    def _from(self) -> dict[str, str]:
        name = "messaging_service_sid" if self._sender.startswith("MG") else "from_"
        return {name: self._sender}

    def _callback(self, key: str) -> dict[str, str]:
        if not self._status_url:
            return {}
        joint = "&" if "?" in self._status_url else "?"
        return {"status_callback": f"{self._status_url}{joint}{urlencode({'key': key})}"}

    def _explain(self, error: Exception) -> NoReturn:
        status, code = getattr(error, "status", None), getattr(error, "code", None)
        if status == 429 or code in _BUSY_CODES:
            until = self._clock() + timedelta(minutes=1)
            raise NotAccepted(
                f"Twilio did not take the text: {_BUSY_CODES.get(code or 0, _said(error))}.", until
            ) from error
        if isinstance(status, int) and 400 <= status < 500 and status != 408:
            words = _WORDS.get(code or 0) or _said(error)
            raise NotAccepted(f"Twilio did not take the text ({code or status}): {words}.") from error
        if _never_left(error):
            until = self._clock() + timedelta(seconds=30)
            raise NotAccepted(f"Twilio could not be reached: {_said(error)}; it will be tried again.", until) from error
        raise Unanswered(f"Twilio did not answer ({_said(error)}); look in its log before sending again.") from error


def twilio_sms(
    account_sid: str,
    auth_token: str,
    sender: str,
    status_url: str = "",
    *,
    clock: Clock = utc_now,
    http_client: Any = None,
) -> TwilioSms:
    """The sender for this account. Raises `Misconfigured` if a setting is empty or the extra is not installed."""
    if not (account_sid and auth_token and sender):
        raise Misconfigured("Twilio needs an account SID, a token, and a number or messaging service to send from.")
    try:
        rest, http = import_module("twilio.rest"), import_module("twilio.http.http_client")
    except ImportError as error:
        raise Misconfigured("Twilio's client is not installed; install signoff[twilio].") from error
    # Without a timeout its client waits for ever; with `max_retries` it would send a text again by itself.
    client = rest.Client(
        account_sid, auth_token, http_client=http_client or http.TwilioHttpClient(timeout=READ_SECONDS)
    )
    return TwilioSms(client, sender, status_url, clock)


def _is_body(listed: str | None, content: str) -> bool:
    return (listed or "").removeprefix(TRIAL_PREFIX).strip() == content.strip()


def _sent(message: Any) -> Sent:
    detail: dict[str, JsonValue] = {
        "status": str(message.status or ""),
        "segments": str(message.num_segments or ""),
        "error_code": message.error_code,
    }
    return Sent(ref=str(message.sid), detail=detail)


def _said(error: Exception) -> str:
    """What went wrong, from the fields: the text of Twilio's own errors is coloured for a terminal."""
    return plain(getattr(error, "msg", None) or getattr(error, "title", None) or error or "") or type(error).__name__


def _never_left(error: BaseException) -> bool:
    """Whether the connection was never made: refused, too slow, or a name nobody knows."""
    names = {type(cause).__name__ for cause in _causes(error)}
    return bool(names & {"ConnectTimeout", "ConnectTimeoutError", "NewConnectionError", "NameResolutionError"})


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it wraps (requests keeps that in its arguments, urllib3 in `reason`), and so on."""
    while isinstance(error, BaseException):
        yield error
        wrapped = getattr(error, "reason", None) or (error.args[0] if error.args else None)
        error = wrapped if isinstance(wrapped, BaseException) else None
