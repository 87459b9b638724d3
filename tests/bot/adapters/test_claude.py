"""Claude through the real client, with every way an answer can go wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2
import pytest

from bot.adapters.claude import Claude, claude
from graphs.ports import Busy, Misconfigured, ModelReply, ModelRequest, Nonsense, PortError, Tool, Turn, Usage
from tests.bot.adapters.clock import StillClock

ANSWER: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "stop_reason": "end_turn",
    "content": [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "Fern Hollow."}],
    "usage": {"input_tokens": 10, "output_tokens": 4},
}  # fmt: skip
REQUEST = ModelRequest(
    model="claude-sonnet-5-5",
    system="You plan hikes.",
    turns=[Turn(role="user", content=[{"type": "text", "text": "Hi"}])],
)


class Server:
    """Answers what it is told, or raises it, and remembers what was asked."""

    def __init__(self, answer: httpx2.Response | Exception) -> None:
        self.answer = answer
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.requests[-1].content)
        return body

    def claude(self, clock: StillClock | None = None) -> Claude:
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        client = anthropic.Anthropic(api_key="key", base_url="http://api.invalid", max_retries=0, http_client=http)
        return Claude(client, "anthropic", clock or StillClock())


def ask(
    answer: httpx2.Response | Exception, request: ModelRequest = REQUEST, clock: StillClock | None = None
) -> ModelReply:
    return Server(answer).claude(clock).complete(request)


def answered(**changes: Any) -> httpx2.Response:
    return httpx2.Response(200, json={**ANSWER, **changes}, headers={"request-id": "req_1"})


def refused(status: int, code: str = "", **headers: str) -> httpx2.Response:
    details = {"error_code": code} if code else None
    error = {"type": "some_error", "message": "because", "details": details}
    body = {"type": "error", "error": error}
    return httpx2.Response(status, json=body, headers={"request-id": "req_9", **headers})


def test_a_reply_keeps_its_blocks_its_costs_and_its_request_id() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 4,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
    }
    reply = ask(answered(usage=usage))
    assert reply.content == ANSWER["content"]
    assert (reply.text, reply.stop_reason, reply.request_id) == ("Fern Hollow.", "end_turn", "req_1")
    assert reply.usage == Usage(input_tokens=1110, output_tokens=4)


@pytest.mark.parametrize(
    "block",
    [{"type": "tool_use", "id": "toolu_1", "name": "forecast", "input": {"trailhead": "x", "deep": [{"a": None}]}},
     {"type": "something_new", "payload": {"a": [1, None]}},
     {"type": "text", "text": "", "citations": None}],
)  # fmt: skip
def test_a_block_goes_back_exactly_as_it_came(block: Mapping[str, Any]) -> None:
    reply = ask(answered(content=[block]))
    assert reply.content == [block]
    server = Server(answered())
    turns = [*REQUEST.turns, Turn(role="assistant", content=reply.content), *REQUEST.turns]
    server.claude().complete(REQUEST.model_copy(update={"turns": turns}))
    assert server.body["messages"][1]["content"] == [block]


def test_the_request_has_what_the_api_takes_and_nothing_else() -> None:
    server = Server(answered())
    tool = Tool(name="forecast", description="Weather", input_schema={"type": "object", "properties": {}})
    schema = {
        "type": "object",
        "properties": {"feedback": {"type": "string", "maxLength": 9}},
        "required": ["feedback"],
    }
    server.claude().complete(REQUEST.model_copy(update={"tools": [tool], "reply_schema": schema}))
    assert set(server.body) == {"model", "max_tokens", "messages", "system", "tools", "output_config"}
    assert server.body["tools"][0]["input_schema"]["additionalProperties"] is False
    assert server.body["output_config"]["format"]["schema"] == {
        "type": "object", "additionalProperties": False, "required": ["feedback"],
        "properties": {"feedback": {"type": "string", "description": "{maxLength: 9}"}},
    }  # fmt: skip
    assert server.requests[0].headers["authorization"] == "Bearer key"


def test_an_empty_system_prompt_is_left_out_and_many_tokens_need_no_stream() -> None:
    server = Server(answered())
    server.claude().complete(REQUEST.model_copy(update={"system": "", "max_tokens": 64000}))
    assert "system" not in server.body
    assert server.body["max_tokens"] == 64000


def test_characters_that_utf8_cannot_carry_do_not_stop_the_call() -> None:
    server = Server(answered())
    turn = Turn(role="user", content=[{"type": "text", "text": "a\ud800b\x00c\U0001f600"}])
    server.claude().complete(REQUEST.model_copy(update={"turns": [turn]}))
    assert server.body["messages"][0]["content"][0]["text"] == "a?b\x00c\U0001f600"


@pytest.mark.parametrize(
    ("status", "seconds"), [(408, 15), (409, 15), (429, 60), (500, 30), (503, 30), (504, 30), (529, 60)]
)
def test_a_busy_server_is_asked_again_later_and_only_once_now(status: int, seconds: int) -> None:
    server, clock = Server(refused(status)), StillClock()
    with pytest.raises(Busy, match=f"HTTP {status}: because; request req_9") as caught:
        server.claude(clock).complete(REQUEST)
    assert caught.value.until == clock.after(seconds=seconds)
    assert len(server.requests) == 1


def test_retry_after_is_kept_without_sleeping() -> None:
    clock = StillClock()
    with pytest.raises(Busy) as caught:
        ask(refused(429, **{"retry-after": "3600"}), clock=clock)
    assert caught.value.until == clock.after(hours=1)


@pytest.mark.parametrize("answer", [refused(402), refused(429, "enforced_spend_limit_reached", **{"retry-after": "1"})])
def test_a_used_up_budget_waits_for_somebody_to_raise_it(answer: httpx2.Response) -> None:
    clock = StillClock()
    with pytest.raises(Busy, match="spending limit; raise it") as caught:
        ask(answer, clock=clock)
    assert caught.value.until == clock.after(hours=1)


@pytest.mark.parametrize(
    "error", [httpx2.ConnectError, httpx2.ReadTimeout, httpx2.ReadError, httpx2.RemoteProtocolError]
)
def test_a_lost_connection_is_busy(error: type[httpx2.TransportError]) -> None:
    clock = StillClock()
    with pytest.raises(Busy, match="out of reach") as caught:
        ask(error("lost"), clock=clock)
    assert caught.value.until == clock.after(seconds=30)


@pytest.mark.parametrize(
    ("status", "what"), [(401, "API key"), (403, "API key"), (404, "no such model"), (302, "address")]
)
def test_a_wrong_setting_is_named(status: int, what: str) -> None:
    with pytest.raises(Misconfigured, match=what):
        ask(refused(status))


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_invalid_conversation_is_an_error_with_the_request_id(status: int) -> None:
    with pytest.raises(PortError, match="req_9") as caught:
        ask(refused(status))
    assert type(caught.value) is PortError


@pytest.mark.parametrize(
    "answer",
    [httpx2.Response(200, html="<html>Welcome to the hotel</html>"),
     httpx2.Response(200, text='{"id": "msg', headers={"content-type": "application/json"}),
     httpx2.Response(200, content=b"\xff\xfe", headers={"content-type": "application/json"}),
     httpx2.Response(200, json=[1]), httpx2.Response(200, json={}), httpx2.Response(200, json=None),
     answered(content=None), answered(content="text"), answered(content=[1]),
     answered(usage=None), answered(usage="much"), answered(usage={"input_tokens": "many"}),
     answered(stop_reason=7), answered(model=None)],
)  # fmt: skip
def test_an_answer_that_is_no_message_is_nonsense(answer: httpx2.Response) -> None:
    with pytest.raises(Nonsense):
        ask(answer)


def test_an_answer_cut_off_has_no_stop_reason() -> None:
    assert ask(answered(stop_reason=None)).stop_reason is None


def test_a_client_without_a_key_is_misconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(Misconfigured, match="could not be made"):
        Claude(anthropic.Anthropic(base_url="https://api.invalid", max_retries=0)).complete(REQUEST)


@pytest.mark.parametrize("key", ["", "  ", "kéy", "a\nb"])
def test_a_key_that_cannot_be_one_is_refused_at_once(key: str) -> None:
    with pytest.raises(Misconfigured, match="API key"):
        claude(key)


def test_the_real_client_takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere.invalid")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    real = claude(" key ")
    assert real.provider == "anthropic"
    assert str(real._client.base_url).startswith("https://api.anthropic.com")
    assert real._client.auth_headers == {"Authorization": "Bearer key"}
    assert real._client.max_retries == 0
