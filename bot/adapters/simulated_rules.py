"""What the Messages API demands of a request, so that a wrong one is refused here as it would be there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Block = Mapping[str, Any]

_KNOWN = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "output_config", "thinking", "metadata",
    "stop_sequences", "stream", "service_tier", "cache_control", "diagnostics", "container", "inference_geo", "speed",
}  # fmt: skip
_SAMPLING = ("temperature", "top_p", "top_k")
_BLOCKS = {"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"}
_SCHEMA_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "allOf", "description",
    "title", "default", "$ref", "$defs", "format", "minItems",
}  # fmt: skip
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class Refused(Exception):
    """The API's refusal: an HTTP status, its error type and its message."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Turn:
    """One message with its content as blocks."""

    role: str
    blocks: Sequence[Block]

    @property
    def text(self) -> str:
        return "\n".join(str(b["text"]) for b in self.blocks if b["type"] == "text")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that keeps the rules. `seal` ties thinking to the model and the conversation, as the API does."""

    model: str
    system: str
    turns: Sequence[Turn]
    tools: Mapping[str, Mapping[str, Any]]
    schema: Mapping[str, Any] | None
    max_tokens: int
    id: str
    seal: str
    texts: str = field(repr=False)


def check(headers: Mapping[str, str], body: bytes) -> Ask:
    """Read a request to `/v1/messages`. Raises `Refused`."""
    _check_headers(headers)
    try:
        request = json.loads(body)
    except ValueError as error:
        raise Refused("The request body is not valid JSON.") from error
    _demand(isinstance(request, dict), "The request body must be an object.")
    _check_parameters(request)
    seal = _digest([request["model"], request["messages"][0]])
    turns = [_turn(message, at, seal) for at, message in enumerate(request["messages"])]
    _check_order(turns)
    _check_pairs(turns)
    system = _system(request.get("system", ""))
    texts = "\n".join([system, *(turn.text for turn in turns)])
    return Ask(
        model=request["model"],
        system=system,
        turns=turns,
        tools=_tools(request.get("tools") or []),
        schema=_schema(request.get("output_config") or {}),
        max_tokens=request["max_tokens"],
        id=_digest(request),
        seal=seal,
        texts=texts,
    )


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise Refused(message)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _check_headers(headers: Mapping[str, str]) -> None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if not (scheme.lower() == "bearer" and token.strip()) and not headers.get("x-api-key"):
        raise Refused("x-api-key header or bearer token is required", 401, "authentication_error")
    _demand(bool(headers.get("anthropic-version")), "anthropic-version: header is required")


def _check_parameters(request: Mapping[str, Any]) -> None:
    for name in ("model", "messages", "max_tokens"):
        _demand(name in request, f"{name}: Field required")
    for name in _SAMPLING:
        _demand(name not in request, f"{name}: not supported on this API version")
    for name in request:
        _demand(name in _KNOWN, f"{name}: Extra inputs are not permitted")
    _demand(isinstance(request["model"], str) and request["model"] != "", "model: Input should be a valid string")
    _demand(type(request["max_tokens"]) is int and request["max_tokens"] > 0, "max_tokens: must be a positive integer")
    messages = request["messages"]
    _demand(isinstance(messages, list) and len(messages) > 0, "messages: at least one message is required")
    _demand(not request.get("stream"), "stream: the simulated model does not stream")
    choice = (request.get("tool_choice") or {"type": "auto"}).get("type")
    _demand(choice in ("auto", "none"), f"tool_choice: forcing a tool with {choice!r} is not supported by this model")
    thinking = (request.get("thinking") or {"type": "adaptive"}).get("type")
    _demand(thinking in ("adaptive", "between_tools"), f"thinking: {thinking!r} is not supported by this model")


def _turn(message: Any, at: int, seal: str) -> Turn:
    where = f"messages.{at}"
    _demand(isinstance(message, dict) and set(message) == {"role", "content"}, f"{where}: needs role and content only")
    _demand(message["role"] in ("user", "assistant"), f"{where}.role: must be user or assistant")
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    _demand(isinstance(blocks, list) and len(blocks) > 0, f"{where}: all messages must have non-empty content")
    for number, block in enumerate(blocks):
        _check_block(block, message["role"], f"{where}.content.{number}", seal)
    return Turn(message["role"], blocks)


def _check_block(block: Any, role: str, where: str, seal: str) -> None:
    _demand(isinstance(block, dict) and block.get("type") in _BLOCKS, f"{where}: unknown content block type")
    kind = block["type"]
    if kind == "text":
        _demand(isinstance(block.get("text"), str), f"{where}.text: Field required")
        _demand(bool(block["text"].strip()), f"{where}: text content blocks must be non-empty")
    elif kind == "thinking":
        sealed = block.get("signature") == thinking_signature(seal, block.get("thinking", ""))
        _demand(role == "assistant" and sealed, f"{where}: thinking blocks of the latest turns cannot be modified")
    elif kind == "tool_use":
        whole = role == "assistant" and isinstance(block.get("input"), dict)
        _demand(whole and {"id", "name"} <= set(block), f"{where}: tool_use needs id, name and an input object")
    elif kind == "tool_result":
        _demand(role == "user" and "tool_use_id" in block, f"{where}.tool_use_id: Field required")


def thinking_signature(seal: str, thinking: str) -> str:
    """The signature of a thinking block in the conversation with this seal."""
    return "simulated-" + _digest([seal, thinking])


def _check_order(turns: Sequence[Turn]) -> None:
    _demand(turns[0].role == "user", "messages: the first message must have the role user")
    _demand(
        turns[-1].role == "user",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )


def _check_pairs(turns: Sequence[Turn]) -> None:
    seen: set[str] = set()
    asked: list[str] = []
    for at, turn in enumerate(turns):
        results = [b["tool_use_id"] for b in turn.blocks if b["type"] == "tool_result"]
        leading = [b["type"] for b in turn.blocks[: len(results)]]
        missing = [call for call in asked if call not in results]
        _demand(not missing, f"messages.{at}: `tool_use` ids were found without `tool_result` blocks: {missing}")
        _demand(set(results) <= set(asked), f"messages.{at}: unexpected `tool_use_id` in `tool_result` blocks")
        _demand(len(set(results)) == len(results), f"messages.{at}: each `tool_use` must have a single result")
        _demand(set(leading) <= {"tool_result"}, f"messages.{at}: `tool_result` blocks must come first")
        asked = [b["id"] for b in turn.blocks if b["type"] == "tool_use"]
        _demand(len(set(asked)) == len(asked) and not seen & set(asked), "messages: `tool_use` ids must be unique")
        seen |= set(asked)


def _system(system: Any) -> str:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    _demand(isinstance(blocks, list), "system: must be a string or a list of text blocks")
    _demand(all(isinstance(b, dict) and isinstance(b.get("text"), str) for b in blocks), "system: text blocks only")
    return "\n".join(block["text"] for block in blocks)


def _tools(tools: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    for at, tool in enumerate(tools):
        _demand(
            isinstance(tool, dict) and isinstance(tool.get("input_schema"), dict), f"tools.{at}: needs input_schema"
        )
        name = str(tool.get("name", ""))
        _demand(_TOOL_NAME.fullmatch(name) is not None, f"tools.{at}.name: must match ^[a-zA-Z0-9_-]{{1,128}}$")
        _demand(name not in known, "tools: Tool names must be unique.")
        _demand(tool["input_schema"].get("type") == "object", f"tools.{at}.input_schema.type: must be object")
        if tool.get("strict"):
            _check_schema(tool["input_schema"], f"tools.{at}.input_schema")
        known[name] = tool
    return known


def _schema(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    form = config.get("format")
    if form is None:
        return None
    whole = isinstance(form, dict) and form.get("type") == "json_schema" and isinstance(form.get("schema"), dict)
    _demand(whole, "output_config.format: needs type json_schema and a schema")
    schema: Mapping[str, Any] = form["schema"]
    _check_schema(schema, "output_config.format.schema")
    return schema


def _check_schema(schema: Any, where: str) -> None:
    _demand(isinstance(schema, dict), f"{where}: must be an object")
    for keyword in schema:
        _demand(keyword in _SCHEMA_KEYWORDS, f"{where}: For '{schema.get('type')}' type, '{keyword}' is not supported")
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        _demand(closed, f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    for name, child in _children(schema):
        _check_schema(child, f"{where}.{name}")


def _children(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key in ("properties", "$defs"):
        yield from (schema.get(key) or {}).items()
    for key in ("anyOf", "allOf"):
        yield from ((key, child) for child in schema.get(key) or [])
    if "items" in schema:
        yield "items", schema["items"]
