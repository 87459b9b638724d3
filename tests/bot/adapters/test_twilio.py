"""Twilio through its own client, over an HTTP client that remembers."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.adapters.outgoing import Unanswered
from bot.adapters.twilio import TwilioSms, twilio_sms
from graphs.ports import Busy, Misconfigured, NotAccepted
from tests.bot.adapters.clock import StillClock

NUMBER, TO, TEXT = "+15005550006", "+15035550134", "Fern Hollow at 8"
installed = importlib.util.find_spec("twilio") is not None


class Response:
    """What Twilio's client expects back."""

    def __init__(self, status: int, body: Any) -> None:
        self.status_code = status
        self.text = self.content = body if isinstance(body, str) else json.dumps(body)
        self.headers: dict[str, str] = {}
        self.ok = status < 400


class Exchange:
    """Keeps texts as Twilio does, or answers what it is told, or raises it; remembers what was asked."""

    def __init__(self, answer: Response | Exception | None = None) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []
        self.texts: list[dict[str, Any]] = []

    def request(self, method: str, uri: str, **given: Any) -> Response:
        self.asked.append({"method": method, "uri": uri, **given})
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or (self._take(given["data"]) if method == "POST" else self._list(given["params"]))

    def add(self, body: str, created: str = "Thu, 03 Dec 2026 17:20:30 +0000", to: str = TO) -> str:
        sid = f"SM{len(self.texts):032d}"
        text = {"sid": sid, "to": to, "body": body, "status": "queued", "num_segments": "1", "error_code": None}
        self.texts.append({**text, "date_created": created, "account_sid": "AC1"})
        return sid

    def _take(self, data: Mapping[str, Any]) -> Response:
        self.add(data["Body"], to=data["To"])
        return Response(201, self.texts[-1])

    def _list(self, params: Mapping[str, Any]) -> Response:
        found = [text for text in reversed(self.texts) if text["to"] == params["To"]]
        return Response(200, {"messages": found, "next_page_uri": None})


def sender(exchange: Exchange, name: str = NUMBER, status_url: str = "") -> TwilioSms:
    if not installed:
        pytest.skip("the extra signoff[twilio] is not installed")
    return twilio_sms("AC" + "0" * 32, "token", name, status_url, clock=StillClock(), http_client=exchange)


def send(answer: Response | Exception | None = None) -> Any:
    return sender(Exchange(answer)).send("run/1", TO, TEXT, {})


def refusal(status: int, code: int | None = None, message: str = "because") -> Response:
    return Response(status, {"code": code, "message": message, "status": status})


def test_a_text_is_sent_once_from_the_number() -> None:
    exchange = Exchange()
    sent = sender(exchange).send("run/1", TO, TEXT, {})
    assert sent.ref == exchange.texts[0]["sid"]
    assert sent.detail == {"status": "queued", "segments": "1", "error_code": None}
    (asked,) = exchange.asked
    assert asked["method"] == "POST"
    assert {k: v for k, v in asked["data"].items() if isinstance(v, str)} == {"To": TO, "From": NUMBER, "Body": TEXT}


def test_a_messaging_service_and_a_status_address_are_passed_on() -> None:
    for url, expected in (
        ("https://a.invalid/s", "https://a.invalid/s?key=run%2F1+x"),
        ("https://a.invalid/s?a=1", "https://a.invalid/s?a=1&key=run%2F1+x"),
    ):
        exchange = Exchange()
        sender(exchange, "MG1", url).send("run/1 x", TO, TEXT, {})
        data = {k: v for k, v in exchange.asked[0]["data"].items() if isinstance(v, str)}
        assert data == {"To": TO, "MessagingServiceSid": "MG1", "Body": TEXT, "StatusCallback": expected}


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, 21211, "not a valid phone number"),
        (400, 21610, "opted out"),
        (400, 21614, "not a mobile"),
        (401, 20003, "token is wrong"),
        (400, 99999, "because"),
        (404, None, "404.*because"),
        (403, 21408, "may not text that country"),
    ],
)
def test_a_refusal_is_put_into_words(status: int, code: int | None, words: str) -> None:
    with pytest.raises(NotAccepted, match=words) as caught:
        send(refusal(status, code))
    assert caught.value.until is None
    assert "\033" not in str(caught.value)


@pytest.mark.parametrize(("status", "code"), [(429, 20429), (429, None), (400, 21611)])
def test_a_limit_is_not_accepted_for_now(status: int, code: int | None) -> None:
    with pytest.raises(NotAccepted) as caught:
        send(refusal(status, code))
    assert caught.value.until == StillClock().after(minutes=1)


@pytest.mark.parametrize(
    "answer",
    [
        refusal(500, 20500),
        refusal(503),
        refusal(408),
        Response(502, "<html>"),
        Response(201, "<html>"),
        Response(201, {}),
        OSError("reset"),
        TimeoutError(),
        ValueError("x"),
    ],
)
def test_a_lost_answer_leaves_the_outcome_unknown(answer: Response | Exception) -> None:
    with pytest.raises(Unanswered, match="look in its log before sending again"):
        send(answer)


def test_only_a_connection_never_made_is_not_accepted() -> None:
    sms = sender(Exchange())
    requests = pytest.importorskip("requests")
    urllib3 = pytest.importorskip("urllib3")
    refused = urllib3.exceptions.NewConnectionError(None, "refused")
    never = [
        requests.ConnectTimeout(urllib3.exceptions.MaxRetryError(None, "/", urllib3.exceptions.ConnectTimeoutError())),
        requests.ConnectionError(urllib3.exceptions.MaxRetryError(None, "/", refused)),
    ]
    for error in never:
        with pytest.raises(NotAccepted, match="could not be reached") as caught:
            send(error)
        assert caught.value.until == StillClock().after(seconds=30)
    reset = urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))
    for error in (requests.ReadTimeout("slow"), requests.ConnectionError(reset)):
        with pytest.raises(Unanswered):
            send(error)
    assert not sms.absence_proves


def test_nobody_listening_is_not_accepted_by_the_real_http_client() -> None:
    sender(Exchange())
    http = importlib.import_module("twilio.http.http_client")

    class Nearby(http.TwilioHttpClient):  # type: ignore[name-defined,misc]
        def request(self, method: str, url: str, *args: Any, **given: Any) -> Any:
            return super().request(method, "http://127.0.0.1:1/", *args, **given)

    sms = twilio_sms("AC1", "token", NUMBER, clock=StillClock(), http_client=Nearby(timeout=2))
    with pytest.raises(NotAccepted, match="could not be reached"):
        sms.send("run/1", TO, TEXT, {})


def test_a_text_that_went_out_is_found_by_recipient_body_and_time() -> None:
    exchange = Exchange()
    sms, since = sender(exchange), StillClock()()
    assert sms.look_up("run/1", TO, TEXT, since) is None
    exchange.add(TEXT, "Thu, 03 Dec 2026 17:00:00 +0000")
    exchange.add(TEXT, to="+15035550199")
    exchange.add(TEXT + "!")
    assert sms.look_up("run/1", TO, TEXT, since) is None
    expected = exchange.add(f"Sent from your Twilio trial account - {TEXT} ", "Thu, 03 Dec 2026 17:20:10 +0000")
    exchange.add(TEXT, "Thu, 03 Dec 2026 17:25:00 +0000")
    found = sms.look_up("run/1", TO, TEXT, since)
    assert found is not None
    assert found.ref == expected


def test_the_log_is_asked_from_a_minute_earlier_in_utc() -> None:
    exchange = Exchange()
    since = datetime.fromisoformat("2026-12-03T09:20:30-08:00")
    sender(exchange).look_up("run/1", TO, TEXT, since)
    assert exchange.asked[0]["params"]["DateSent>"] == "2026-12-03T17:19:30Z"
    assert since.astimezone(UTC) == StillClock()()


@pytest.mark.parametrize("answer", [OSError("down"), refusal(500), Response(200, "<html>")])
def test_a_log_that_cannot_be_read_is_asked_again(answer: Response | Exception) -> None:
    with pytest.raises(Busy, match="log could not be read") as caught:
        sender(Exchange(answer)).look_up("run/1", TO, TEXT, StillClock()())
    assert caught.value.until == StillClock().after(minutes=1)


def test_missing_settings_are_told() -> None:
    with pytest.raises(Misconfigured, match="account SID, a token"):
        twilio_sms("AC1", "", NUMBER)
    if installed:
        client = twilio_sms("AC1", "token", NUMBER)._client
        assert client.http_client.timeout == 8
    else:
        with pytest.raises(Misconfigured, match=r"signoff\[twilio\]"):
            twilio_sms("AC1", "token", NUMBER)
