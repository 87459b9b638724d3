"""The simulated API refuses what the real one refuses."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from bot.adapters.simulated import SimulatedApi

HEADERS = {"authorization": "Bearer simulated", "anthropic-version": "2026-10-21"}
USER = {"role": "user", "content": "Hello"}
USE = {"type": "tool_use", "id": "t1", "name": "forecast", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
TEXT = {"type": "text", "text": "so"}
CALL, ANSWER = {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}
TOOL = {"name": "forecast", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
CLOSED = {"type": "object", "properties": {}, "additionalProperties": False}


def post(headers: dict[str, str] | None = None, content: bytes | None = None, **changes: Any) -> httpx2.Response:
    body = {"model": "m", "max_tokens": 100, "messages": [USER], **changes}
    body = {key: value for key, value in body.items() if value is not ...}
    client = httpx2.Client(transport=httpx2.MockTransport(SimulatedApi()))
    raw = json.dumps(body).encode() if content is None else content
    return client.post(
        "http://simulated.invalid/v1/messages", content=raw, headers=HEADERS if headers is None else headers
    )


def schema(value: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": value}}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"system": "S"},
        {"system": [{"type": "text", "text": "S"}]},
        {"tool_choice": {"type": "auto"}},
        {"thinking": {"type": "adaptive"}},
        {"messages": [USER, USER]},
        {"tools": [TOOL]},
        {"tools": [{**TOOL, "strict": True}]},
        {"messages": [USER, CALL, {"role": "user", "content": [RESULT, TEXT]}]},
        schema(CLOSED),
        schema({**CLOSED, "properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "string"}, CLOSED]}}}}),
    ],
)
def test_a_proper_request_is_answered(changes: dict[str, Any]) -> None:
    response = post(**changes)
    assert response.status_code == 200
    assert response.json()["type"] == "message"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ...}, "model: Field required"),
        ({"max_tokens": ...}, "max_tokens: Field required"),
        ({"messages": ...}, "messages: Field required"),
        ({"model": ""}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"messages": []}, "at least one message"),
        ({"temperature": 0}, "temperature: not supported"),
        ({"top_p": 1}, "top_p"),
        ({"top_k": 1}, "top_k"),
        ({"stream": True}, "stream"),
        ({"wishes": 1}, "wishes: Extra inputs"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
        ({"thinking": {"type": "disabled"}}, "thinking"),
        ({"system": 7}, "system"),
        ({"system": [{"type": "image"}]}, "system"),
    ],
)
def test_a_wrong_parameter_is_named(changes: dict[str, Any], message: str) -> None:
    response = post(**changes)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert message in response.json()["error"]["message"]
    assert response.headers["request-id"]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{"role": "assistant", "content": "Hi"}, USER], "first message"),
        ([USER, {"role": "assistant", "content": "The plan is"}], "prefill"),
        ([{"role": "system", "content": "x"}], "role"),
        ([{"role": "user"}], "role and content"),
        (["x"], "role and content"),
        ([{"role": "user", "content": []}], "non-empty content"),
        ([{"role": "user", "content": " "}], "non-empty"),
        ([{"role": "user", "content": [{"type": "text"}]}], "text: Field required"),
        ([{"role": "user", "content": [{"type": "odd"}]}], "unknown content block"),
        ([{"role": "user", "content": [USE]}], "tool_use needs"),
        ([USER, {"role": "assistant", "content": [{**USE, "input": "x"}]}, ANSWER], "tool_use needs"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], "tool_use_id"),
        (
            [USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "x"}]}, USER],
            "modified",
        ),
        ([USER, CALL, USER], "without `tool_result` blocks"),
        ([USER, ANSWER], "unexpected `tool_use_id`"),
        ([USER, CALL, {"role": "user", "content": [RESULT, RESULT]}], "single result"),
        ([USER, CALL, {"role": "user", "content": [TEXT, RESULT]}], "must come first"),
        ([USER, {"role": "assistant", "content": [USE, USE]}, ANSWER], "must be unique"),
        ([USER, CALL, ANSWER, CALL, ANSWER], "must be unique"),
    ],
)
def test_a_broken_conversation_is_refused(messages: list[Any], message: str) -> None:
    response = post(messages=messages)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "a b", "input_schema": CLOSED}],
        [TOOL, TOOL],
        [{"name": "a"}],
        [{"name": "a", "input_schema": {"type": "string"}}],
        [{"name": "a", "strict": True, "input_schema": {"type": "object", "properties": {}}}],
        ["a"],
    ],
)
def test_a_wrong_tool_is_refused(tools: list[Any]) -> None:
    assert post(tools=tools).status_code == 400


@pytest.mark.parametrize(
    "changes",
    [
        schema({"type": "object", "properties": {}}),
        schema({**CLOSED, "properties": {"a": {"type": "string", "maxLength": 3}}}),
        schema({**CLOSED, "properties": {"a": "string"}}),
        schema([]),
        {"output_config": {"format": {"type": "json"}}},
        schema({**CLOSED, "$defs": {"A": {"type": "object"}}}),
        schema({"anyOf": [{"type": "object"}]}),
    ],
)
def test_a_schema_the_api_does_not_support_is_refused(changes: dict[str, Any]) -> None:
    assert post(**changes).status_code == 400


def test_a_request_needs_a_key_a_version_and_json() -> None:
    assert post(headers={}).status_code == 401
    assert post(headers={"authorization": "Bearer "}).json()["error"]["type"] == "authentication_error"
    assert post(headers={"x-api-key": "k", "anthropic-version": "1"}).status_code == 200
    assert post(headers={"authorization": "Bearer k"}).status_code == 400
    assert post(content=b"{").status_code == 400
    assert post(content=b"[]").status_code == 400
