"""A simulated model behind the real `anthropic` client, so that everything works with no key; it says so everywhere."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import httpx2

from bot.adapters import simulated_hike as hike
from bot.adapters import simulated_verdict as verdict
from bot.adapters.claude import Claude
from bot.adapters.outgoing import Clock, utc_now
from bot.adapters.simulated_hike import Reply, Script
from bot.adapters.simulated_rules import Ask, Block, Refused, check, thinking_signature
from graphs.ports import Misconfigured

Role = tuple[Callable[[Ask], bool], Callable[[Ask, Script], Reply]]
"""How to recognise a request, and how to answer it."""

_CHARACTERS_PER_TOKEN = 4
_STATUS = {
    "400": "invalid_request_error", "401": "authentication_error", "402": "billing_error", "403": "permission_error",
    "404": "not_found_error", "429": "rate_limit_error", "500": "api_error", "503": "api_error",
    "529": "overloaded_error",
}  # fmt: skip
_DROPPED: dict[str, type[httpx2.TransportError]] = {
    "timeout": httpx2.ReadTimeout,
    "reset": httpx2.ReadError,
    "refused": httpx2.ConnectError,
}
_SPOILT = ("ok", "html", "bad_json", "no_usage", "empty", "max_tokens", "refusal")


class SimulatedApi:
    """The Messages API as a handler for `httpx2.MockTransport`: it decides from the request alone.

    `calls` holds the body of every request that reached it. `faults` are spent one per request, in order: an HTTP
    status (`429` or `429:30` with a Retry-After), `timeout`, `reset`, `refused`, `html`, `bad_json`, `no_usage`,
    `empty`, `max_tokens`, `refusal`, or `ok`. `journal` gets a line of JSON for each finished call, so that calls can
    be counted across processes. `seconds` is how long it thinks.
    """

    def __init__(
        self,
        script: Script = "default",
        faults: str = "",
        journal: Path | None = None,
        seconds: float = 0.0,
        roles: Sequence[Role] = (),
    ) -> None:
        self._script = script
        self._faults = deque(_read_faults(faults))
        self._journal = journal
        self._seconds = seconds
        self._roles = (*roles, *ROLES)
        self._lock = threading.Lock()
        self.calls: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        fault = self._take(request)
        if self._seconds:
            time.sleep(self._seconds)
        if fault in _DROPPED:
            raise _DROPPED[fault](f"simulated: {fault}", request=request)
        response = self._answer(request, fault)
        self._note(request, response)
        return response

    def _take(self, request: httpx2.Request) -> str:
        try:
            body = json.loads(request.read() or b"{}")
        except ValueError:
            body = {}
        with self._lock:
            self.calls.append(body)
            return self._faults.popleft() if self._faults else "ok"

    def _answer(self, request: httpx2.Request, fault: str) -> httpx2.Response:
        status, _, wait = fault.partition(":")
        if status in _STATUS:
            headers = {"retry-after": wait} if wait else {}
            return _refusal(int(status), _STATUS[status], f"simulated fault {status}", headers)
        if (request.method, request.url.path) != ("POST", "/v1/messages"):
            return _refusal(404, "not_found_error", f"simulated: there is no {request.url.path}")
        try:
            ask = check(request.headers, request.content)
        except Refused as refused:
            return _refusal(refused.status, refused.kind, str(refused))
        return _spoil(_message(ask, self._play(ask), len(request.content)), fault)

    def _play(self, ask: Ask) -> Reply:
        script = hike.script_of(ask, self._script)
        answer = next(answer for recognises, answer in self._roles if recognises(ask))
        return answer(ask, script)

    def _note(self, request: httpx2.Request, response: httpx2.Response) -> None:
        if self._journal is None:
            return
        line = {
            "request_id": response.headers.get("request-id", ""),
            "status": response.status_code,
            "pid": os.getpid(),
        }
        # One write of an append-only file, so that lines of several processes do not mix.
        with self._journal.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


def simulated(
    script: Script = "default",
    faults: str = "",
    journal: Path | None = None,
    *,
    seconds: float = 0.0,
    clock: Clock = utc_now,
    api: SimulatedApi | None = None,
) -> Claude:
    """The simulated model behind the `Model` port; give `api` to look at the calls afterwards."""
    import anthropic

    handler = api or SimulatedApi(script, faults, journal, seconds)
    client = anthropic.Anthropic(
        api_key="simulated",
        base_url="http://simulated.invalid",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(handler)),
    )
    return Claude(client, "simulated", clock)


def _anything(ask: Ask, _script: Script) -> Reply:
    """For requests no role knows: a value the schema allows, or a sentence."""
    if ask.schema is not None:
        return [{"type": "text", "text": json.dumps(_example(ask.schema, ask.schema))}], "end_turn"
    return [{"type": "text", "text": "Simulated reply: I play the hike planner and know nothing else."}], "end_turn"


def _example(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The smallest value that follows the schema."""
    if "$ref" in schema:
        return _example(root["$defs"][str(schema["$ref"]).rpartition("/")[2]], root)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema.get("type") == "object":
        return {key: _example(child, root) for key, child in schema.get("properties", {}).items()}
    empty = {"string": "simulated", "integer": 0, "number": 0, "boolean": False, "array": []}
    return empty.get(str(schema.get("type")))


ROLES: tuple[Role, ...] = (
    (verdict.judges, verdict.judge),
    (verdict.writes, verdict.write),
    (hike.plans, hike.plan),
    (lambda _: True, _anything),
)


def _message(ask: Ask, reply: Reply, length: int) -> dict[str, Any]:
    blocks, stop_reason = _shorten(*reply, ask.max_tokens * _CHARACTERS_PER_TOKEN)
    thinking = [{"type": "thinking", "thinking": "", "signature": thinking_signature(ask.seal, "")}] if blocks else []
    content = [*thinking, *(_numbered(block, ask.id, at) for at, block in enumerate(blocks))]
    return {
        "id": f"msg_simulated_{ask.id}",
        "type": "message",
        "role": "assistant",
        "model": f"simulated/{ask.model}",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": length // _CHARACTERS_PER_TOKEN,
            "output_tokens": 1 + len(json.dumps(content)) // _CHARACTERS_PER_TOKEN,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _shorten(blocks: list[Block], stop_reason: str, room: int) -> Reply:
    """Cut the reply where `max_tokens` would: a text in the middle, a tool call not begun."""
    kept: list[Block] = []
    for block in blocks:
        size = len(str(block.get("text") or block.get("input")))
        if size > room:
            return ([*kept, {**block, "text": block["text"][:room]}] if "text" in block else kept), "max_tokens"
        kept.append(block)
        room -= size
    return kept, stop_reason


def _numbered(block: Block, request: str, at: int) -> Block:
    return {**block, "id": f"toolu_simulated_{request}_{at}"} if block["type"] == "tool_use" else block


def _spoil(message: dict[str, Any], fault: str) -> httpx2.Response:
    headers = {"request-id": message["id"].replace("msg_", "req_", 1)}
    if fault == "html":
        page = "<html><body>502 Bad Gateway (simulated)</body></html>"
        return httpx2.Response(200, html=page, headers=headers)
    if fault == "bad_json":
        text = json.dumps(message)[:-20]
        return httpx2.Response(200, text=text, headers={**headers, "content-type": "application/json"})
    changes: dict[str, dict[str, Any]] = {
        "no_usage": {"usage": None},
        "empty": {"content": [], "stop_reason": "end_turn"},
        "max_tokens": {"content": message["content"][:1], "stop_reason": "max_tokens"},
        "refusal": {"content": [], "stop_reason": "refusal"},
    }
    changed = {**message, **changes.get(fault, {})}
    if changed["stop_reason"] == "refusal":
        changed["stop_details"] = {"type": "refusal", "category": None, "explanation": "simulated refusal"}
    return httpx2.Response(200, json=changed, headers=headers)


def _refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    request_id = f"req_simulated_{status}"
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
    return httpx2.Response(status, json=body, headers={"request-id": request_id, **(headers or {})})


def _read_faults(faults: str) -> list[str]:
    names = [name.strip() for name in faults.split(",") if name.strip()]
    for name in names:
        status, _, wait = name.partition(":")
        if name not in _SPOILT and name not in _DROPPED and not (status in _STATUS and (not wait or wait.isdigit())):
            known = ", ".join([*_SPOILT, *_DROPPED, *_STATUS, "429:30"])
            raise Misconfigured(f"There is no simulated fault {name!r}; choose from {known}.")
    return names


def read_script(name: str) -> Script:
    """The script of that name. Raises `Misconfigured` naming those there are."""
    for script in get_args(Script):
        if script == name:
            known: Script = script
            return known
    raise Misconfigured(f"There is no simulated script {name!r}; choose from {', '.join(get_args(Script))}.")
