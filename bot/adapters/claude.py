"""Claude behind the `Model` port: one Messages API call, its errors in our words."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from bot.adapters.outgoing import Clock, plain, retry_after, utc_now
from graphs.ports import Busy, Misconfigured, ModelReply, ModelRequest, Nonsense, PortError, Usage

if TYPE_CHECKING:
    from anthropic import Anthropic, APIStatusError
PUBLIC_URL = "https://api.anthropic.com"
CALL_SECONDS = 120.0

_WAITS = {408: 15, 409: 15, 429: 60, 529: 60}
_WAIT_OTHERWISE = 30
_WAIT_FOR_BUDGET = timedelta(hours=1)


class Claude:
    """The `Model` port over an `anthropic` client, which must not retry or sleep by itself (`max_retries=0`).

    `complete` raises `Busy`, `Misconfigured` or `Nonsense`; and a plain `PortError` with the request id where the API
    calls the conversation itself invalid (400, 413, 422), for then asking again cannot help.
    """

    def __init__(self, client: Anthropic, provider: str = "anthropic", clock: Clock = utc_now) -> None:
        self._client = client
        self._provider = provider
        self._clock = clock

    @property
    def provider(self) -> str:
        return self._provider

    def complete(self, request: ModelRequest) -> ModelReply:
        import anthropic
        import httpx2

        try:
            reply = self._client.messages.create(**_arguments(request))
        except anthropic.APIStatusError as error:
            self._explain(error)
        except anthropic.APIConnectionError as error:
            raise Busy(f"Claude is out of reach: {plain(error)}", self._after(_WAIT_OTHERWISE)) from error
        except (anthropic.CredentialsError, TypeError, ValueError) as error:
            # A broken body comes out as a JSONDecodeError, which is a ValueError too.
            if isinstance(error, json.JSONDecodeError):
                raise Nonsense("Claude's answer is not JSON; if it happens again, check the base URL.") from error
            raise Misconfigured(f"The call to Claude could not be made: {plain(error)}") from error
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            raise Nonsense(f"Claude's answer could not be read: {plain(error)}") from error
        return _read(reply)

    def _after(self, seconds: float) -> datetime:
        return self._clock() + timedelta(seconds=seconds)

    def _explain(self, error: APIStatusError) -> NoReturn:
        status, said = error.status_code, _said(error)
        if status == 402 or "spend_limit" in (error.error_code or ""):
            until = self._clock() + _WAIT_FOR_BUDGET
            raise Busy(
                f"The Claude account has reached its spending limit; raise it in the console. {said}", until
            ) from error
        if status in (401, 403):
            raise Misconfigured(f"Claude refused the API key; set one that may use this model. {said}") from error
        if status == 404 or status < 400:
            raise Misconfigured(f"Claude knows no such model or address; check both settings. {said}") from error
        if status in _WAITS or status >= 500:
            until = retry_after(error.response.headers, self._clock()) or self._after(
                _WAITS.get(status, _WAIT_OTHERWISE)
            )
            raise Busy(f"Claude is busy. {said}", until) from error
        raise PortError(f"Claude refuses this conversation; start the run anew or report it. {said}") from error


def claude(api_key: str, base_url: str = "", *, clock: Clock = utc_now) -> Claude:
    """Claude over the network. Raises `Misconfigured` for a key that cannot be one."""
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise Misconfigured("The API key for Claude is empty or has characters no key has; set it again.")
    import anthropic

    # Both are given, otherwise the SDK takes what it finds in the environment or in a profile on disk.
    client = anthropic.Anthropic(api_key=key, base_url=base_url or PUBLIC_URL, max_retries=0, timeout=CALL_SECONDS)
    return Claude(client, "anthropic", clock)


def _arguments(request: ModelRequest) -> dict[str, Any]:
    import anthropic

    arguments: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": [{"role": turn.role, "content": _sendable(turn.content)} for turn in request.turns],
        # Given because the SDK otherwise refuses large `max_tokens`.
        "timeout": CALL_SECONDS,
    }
    if request.system:
        arguments["system"] = _sendable(request.system)
    if request.tools:
        arguments["tools"] = [
            {
                "name": tool.name,
                "description": _sendable(tool.description),
                "input_schema": anthropic.transform_schema(_sendable(tool.input_schema)),
                "strict": True,
            }
            for tool in request.tools
        ]
    if request.reply_schema is not None:
        schema = anthropic.transform_schema(_sendable(request.reply_schema))
        arguments["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return arguments


def _sendable(value: Any) -> Any:
    """`value` in plain lists and dicts; lone surrogates, which UTF-8 cannot carry, become question marks."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _said(error: APIStatusError) -> str:
    what = plain(error.api_message or error.type or "no reason given")
    return f"(HTTP {error.status_code}: {what}; request {plain(error.request_id or 'without id')})"


def _read(reply: object) -> ModelReply:
    """The reply as our value. The SDK checks nothing: a page of HTML arrives as a string, missing parts as None."""
    from anthropic.types import Message

    if not isinstance(reply, Message) or not isinstance(reply.content, list):
        raise Nonsense("Claude's answer is no message; check the base URL.")
    request_id = reply._request_id or ""
    try:
        # As the API sent them: fields it left out stay out, otherwise it refuses the blocks when they come back.
        content: list[Any] = [block.to_dict(mode="json") for block in reply.content]
        return ModelReply(
            content=content,
            stop_reason=reply.stop_reason,
            usage=_usage(reply.usage),
            model=reply.model,
            request_id=request_id,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise Nonsense(
            f"Claude's answer lacks a part or has a wrong one (request {request_id}): {plain(error)}"
        ) from error


def _usage(usage: Any) -> Usage:
    parts = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    return Usage(input_tokens=sum(part or 0 for part in parts), output_tokens=usage.output_tokens or 0)
