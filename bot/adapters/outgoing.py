"""One request to somebody else's server: a total deadline, and what its failure proves about what was sent."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
from pydantic import JsonValue

from graphs.ports import NotAccepted, PortError

T = TypeVar("T")

Clock = Callable[[], datetime]
"""The present time, aware, in UTC."""

DEADLINE = 10.0
"""Seconds a request that lets something out may take in all, from name look-up to the last byte of the answer."""

TIMEOUT = httpx2.Timeout(DEADLINE, connect=4.0, pool=2.0)
LONGEST_WAIT = timedelta(days=1)

_NEVER_LEFT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_NEVER_BUILT = (httpx2.UnsupportedProtocol, httpx2.InvalidURL)


class Unanswered(PortError):
    """The request may have been carried out: the answer was lost, late or unreadable. Look before sending again."""


def utc_now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)


def plain(text: object, limit: int = 200) -> str:
    """Text from outside on one line, without control characters, at most `limit` characters long."""
    line = " ".join("".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in str(text)).split())
    kept = "".join(c for c in line if unicodedata.category(c) not in {"Cf", "Cs", "Co", "Cn"})
    return kept if len(kept) <= limit else kept[: limit - 3] + "..."


def retry_after(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When `Retry-After` (seconds or a date) says to come back, at most a day ahead; None without a readable one."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    wait = _seconds(value)
    when = now + min(timedelta(seconds=wait), LONGEST_WAIT) if wait is not None else _moment(value)
    return None if when is None else min(max(when, now + timedelta(seconds=1)), now + LONGEST_WAIT)


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    # NaN compares false with everything, so it ends up as None.
    return min(seconds, LONGEST_WAIT.total_seconds()) if seconds >= 0 else None


def _moment(value: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what `call` returns, or raise `TimeoutError` after `seconds` (the call goes on, unheard).

    A client's own time limits count per read, otherwise a server that answers byte by byte holds us for ever.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="outgoing", daemon=True).start()
    return outcome.result(timeout=seconds)


def post_once(
    client: httpx2.Client,
    path: str,
    body: Mapping[str, JsonValue],
    *,
    other: str,
    clock: Clock,
    deadline: float = DEADLINE,
) -> dict[str, JsonValue]:
    """POST `body` as JSON once and return the JSON object of the 2xx answer.

    `other` names the other side in messages. Raises `NotAccepted` when it surely did not take the request, otherwise
    `Unanswered`.
    """
    try:
        response = within(deadline, lambda: client.post(path, json=dict(body), timeout=TIMEOUT))
    except _NEVER_LEFT as error:
        until = clock() + timedelta(seconds=30)
        raise NotAccepted(f"{other} could not be reached ({plain(error)}); it will be tried again.", until) from error
    except _NEVER_BUILT as error:
        raise NotAccepted(f"The address of {other} is wrong ({plain(error)}); correct the setting.") from error
    except (httpx2.HTTPError, TimeoutError) as error:
        said = plain(error) or type(error).__name__
        raise Unanswered(f"{other} did not answer ({said}); look there before sending again.") from error
    return _answer(response, other, clock)


def _answer(response: httpx2.Response, other: str, clock: Clock) -> dict[str, JsonValue]:
    status = response.status_code
    said = f"{other} answered {status}: {plain(response.text)}"
    if status == 429:
        until = retry_after(response.headers, clock()) or clock() + timedelta(minutes=1)
        raise NotAccepted(f"{said}. It will be tried again.", until)
    # 408: the server gave up waiting for us, but does not say how much of the request it had.
    if 300 <= status < 500 and status != 408:
        raise NotAccepted(f"{said}. It was not accepted.")
    if not response.is_success:
        raise Unanswered(f"{said}. Look there before sending again.")
    try:
        answer = response.json()
    except ValueError as error:
        raise Unanswered(f"{said}, which is not JSON. Look there before sending again.") from error
    if not isinstance(answer, dict):
        raise Unanswered(f"{said}, which is not a JSON object. Look there before sending again.")
    return answer
