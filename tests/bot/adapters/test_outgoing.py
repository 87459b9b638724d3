"""What a failed request proves about what was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

import httpx2
import pytest

from bot.adapters.outgoing import Unanswered, plain, post_once, retry_after, within
from graphs.ports import NotAccepted
from tests.bot.adapters.clock import StillClock

Handler = Callable[[httpx2.Request], httpx2.Response]


def post(handler: Handler, clock: StillClock | None = None, deadline: float = 10.0) -> dict[str, object]:
    client = httpx2.Client(transport=httpx2.MockTransport(handler), base_url="http://there.invalid")
    answer = post_once(client, "/texts", {"a": 1}, other="The vendor", clock=clock or StillClock(), deadline=deadline)
    return dict(answer)


def answers(status: int, text: str = "{}", **headers: str) -> Handler:
    return lambda _: httpx2.Response(status, text=text, headers=headers)


def fails(error: Exception) -> Handler:
    def handler(request: httpx2.Request) -> httpx2.Response:
        raise error

    return handler


def test_the_json_object_of_an_accepted_request_is_returned() -> None:
    assert post(answers(201, '{"sid": "SM1"}')) == {"sid": "SM1"}


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
def test_a_refusal_is_not_accepted_and_never_will_be(status: int) -> None:
    with pytest.raises(NotAccepted, match=f"The vendor answered {status}") as caught:
        post(answers(status, "no such number"))
    assert caught.value.until is None


def test_a_rate_limit_is_not_accepted_and_says_when_to_come_back() -> None:
    clock = StillClock()
    with pytest.raises(NotAccepted) as caught:
        post(answers(429, **{"retry-after": "17"}), clock)
    assert caught.value.until == clock.after(seconds=17)
    with pytest.raises(NotAccepted) as caught:
        post(answers(429), clock)
    assert caught.value.until == clock.after(minutes=1)


@pytest.mark.parametrize("error", [httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError])
def test_a_connection_never_made_is_not_accepted_for_now(error: type[httpx2.TransportError]) -> None:
    clock = StillClock()
    with pytest.raises(NotAccepted, match="could not be reached") as caught:
        post(fails(error("nobody there")), clock)
    assert caught.value.until == clock.after(seconds=30)


def test_an_address_that_is_none_is_not_accepted() -> None:
    with pytest.raises(NotAccepted, match="correct the setting") as caught:
        post_once(httpx2.Client(), "there.invalid/texts", {}, other="The vendor", clock=StillClock())
    assert caught.value.until is None


@pytest.mark.parametrize("error", [httpx2.ReadTimeout, httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError])
def test_a_lost_answer_leaves_the_outcome_unknown(error: type[httpx2.TransportError]) -> None:
    with pytest.raises(Unanswered, match="look there before sending again"):
        post(fails(error("")))


@pytest.mark.parametrize("status", [408, 500, 502, 503])
def test_a_server_that_fails_leaves_the_outcome_unknown(status: int) -> None:
    with pytest.raises(Unanswered):
        post(answers(status))


@pytest.mark.parametrize("text", ["<html>hello</html>", "[1]", "", '{"sid"'])
def test_an_accepted_request_with_an_unreadable_answer_leaves_the_outcome_unknown(text: str) -> None:
    with pytest.raises(Unanswered):
        post(answers(200, text))


def test_the_deadline_is_for_the_whole_request() -> None:
    heard = threading.Event()

    def slow(request: httpx2.Request) -> httpx2.Response:
        heard.wait(30)
        return httpx2.Response(201, json={"sid": "late"})

    with pytest.raises(Unanswered, match="TimeoutError"):
        post(slow, deadline=0.05)
    heard.set()


def test_within_hands_on_results_and_errors() -> None:
    assert within(5, lambda: 7) == 7
    with pytest.raises(KeyError):
        within(5, lambda: {"there": 1}["missing"])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 1), ("2.5", 2.5), ("3600", 3600), ("1e300", 86400), ("inf", 86400),
     ("Thu, 03 Dec 2026 17:21:00 GMT", 30), ("Thu, 03 Dec 2026 17:21:00 -0000", 30),
     ("Thu, 03 Dec 2020 17:21:00 GMT", 1), ("Thu, 03 Dec 2099 17:21:00 GMT", 86400)],
)  # fmt: skip
def test_retry_after_is_a_moment_within_a_second_and_a_day(value: str, seconds: float) -> None:
    clock = StillClock()
    assert retry_after({"retry-after": value}, clock.now) == clock.after(seconds=seconds)


@pytest.mark.parametrize("value", ["", " ", "soon", "-5", "nan", "Thu, 99 Foo"])
def test_an_unreadable_retry_after_is_none(value: str) -> None:
    assert retry_after({"retry-after": value}, StillClock().now) is None
    assert retry_after({}, StillClock().now) is None


def test_text_from_outside_becomes_one_short_line() -> None:
    assert plain("a\x00b\r\n\tc\u202ed\ud800 e") == "a b cd e"
    assert plain("x" * 300) == "x" * 197 + "..."
    assert plain(datetime(2026, 1, 2)) == "2026-01-02 00:00:00"  # noqa: DTZ001
