"""Slack's Web API over WSGI: tokens, scopes, arguments, faults, and the table of methods."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from wsgiref.types import StartResponse
from wsgiref.types import WSGIEnvironment as Environ

from bot.sandbox import answers, chat, conversations, directory, views
from bot.sandbox.faults import Faults
from bot.sandbox.permits import PermitRefused
from bot.sandbox.records import JsonObject
from bot.sandbox.refusal import Refusal
from bot.sandbox.site import HISTORY_SCOPES, READ_SCOPES, Arguments, Site

BOT_TOKEN = "xoxb-sandbox"
APP_TOKEN = "xapp-sandbox"
RESPONSE_URL = "response_url"

WsgiApp: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Method:
    """One method: what it does, and the scopes of which it needs one."""

    call: Callable[[Site, Arguments], JsonObject]
    scopes: tuple[str, ...] = ()
    token: str = BOT_TOKEN


_WRITE = ("chat:write",)
_USERS = ("users:read",)
_READ = tuple(READ_SCOPES.values())
_HISTORY = tuple(HISTORY_SCOPES.values())
METHODS: Mapping[str, Method] = {
    "apps.connections.open": Method(directory.open_connection, token=APP_TOKEN),
    "auth.test": Method(directory.auth_test),
    "blocks.validate": Method(chat.validate_blocks),
    "bots.info": Method(directory.bot_info, _USERS),
    "chat.delete": Method(chat.delete, _WRITE),
    "chat.getPermalink": Method(chat.get_permalink),
    "chat.postEphemeral": Method(chat.post_ephemeral, _WRITE),
    "chat.postMessage": Method(chat.post_message, _WRITE),
    "chat.update": Method(chat.update, _WRITE),
    "conversations.history": Method(conversations.history, _HISTORY),
    "conversations.info": Method(conversations.info, _READ),
    "conversations.join": Method(conversations.join, ("channels:join",)),
    "conversations.list": Method(conversations.list_conversations, _READ),
    "conversations.members": Method(conversations.members, _READ),
    "conversations.open": Method(conversations.open_conversation, ("im:write",)),
    "conversations.replies": Method(conversations.replies, _HISTORY),
    "reactions.add": Method(chat.add_reaction, ("reactions:write",)),
    "team.info": Method(directory.team_info, ("team:read",)),
    "users.getPresence": Method(directory.presence, _USERS),
    "users.info": Method(directory.user_info, _USERS),
    "users.list": Method(directory.user_list, _USERS),
    "views.open": Method(views.open_view),
    "views.publish": Method(views.publish_view),
    "views.push": Method(views.push_view),
    "views.update": Method(views.update_view),
}


class WebApi:
    """Answers `/api/<method>` and `/response/<id>`. `hang_up` breaks the connection of a request."""

    def __init__(self, site: Site, faults: Faults, hang_up: Callable[[Environ], None]) -> None:
        self._site = site
        self._faults = faults
        self._hang_up = hang_up

    def api(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application under `/api`."""
        name = environ["PATH_INFO"].strip("/")
        return self._serve(environ, start_response, name, lambda: {"ok": True, **self._call(name, environ)})

    def response(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application under `/response`."""
        id = environ["PATH_INFO"].strip("/")
        return self._serve(environ, start_response, RESPONSE_URL, lambda: self._respond(id, environ))

    def _serve(
        self, environ: Environ, start_response: StartResponse, name: str, work: Callable[[], JsonObject]
    ) -> Iterable[bytes]:
        self._faults.delay(name)
        try:
            self._interfere(name)
            answer, status, retry_after = work(), 200, None
        except Refusal as refusal:
            answer, status, retry_after = refusal.answer(), refusal.status, refusal.retry_after
        if status == 200 and self._faults.hits("dropped", name):
            self._hang_up(environ)
        return _write(start_response, status, answer, retry_after)

    def _interfere(self, name: str) -> None:
        if self._faults.hits("server_error", name):
            raise Refusal("internal_error", status=500)
        if self._faults.hits("ratelimited", name):
            raise Refusal("ratelimited", status=429, retry_after=self._faults.retry_after)

    def _call(self, name: str, environ: Environ) -> JsonObject:
        method = METHODS.get(name)
        if method is None:
            raise Refusal("unknown_method", req_method=name)
        values = _values(environ)
        _authenticate(environ, values, method)
        self._site.need(*method.scopes)
        return method.call(self._site, Arguments(values))

    def _respond(self, id: str, environ: Environ) -> JsonObject:
        try:
            url = self._site.permits.respond(id)
        except PermitRefused as refused:
            raise Refusal(refused.code, status=404) from refused
        try:
            answers.respond(self._site.workspace, url, _values(environ))
        except Refusal as refusal:
            refusal.status = 400
            raise
        return {"ok": True}


def _authenticate(environ: Environ, values: Mapping[str, Any], method: Method) -> None:
    header = environ.get("HTTP_AUTHORIZATION", "")
    token = header.removeprefix("Bearer ").strip() or str(values.get("token") or "")
    if not token:
        raise Refusal("not_authed")
    if token not in (BOT_TOKEN, APP_TOKEN):
        raise Refusal("invalid_auth")
    if token != method.token:
        raise Refusal("not_allowed_token_type")


def _values(environ: Environ) -> dict[str, Any]:
    values: dict[str, Any] = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if environ.get("CONTENT_TYPE", "").startswith("application/json"):
        return values | _json(body)
    return values | dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        raise Refusal("invalid_json") from None
    if not isinstance(value, dict):
        raise Refusal("json_not_object")
    return value


def _write(start_response: StartResponse, status: int, answer: JsonObject, retry_after: int | None) -> Iterable[bytes]:
    words = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
    body = json.dumps(answer).encode()
    headers = [("Content-Type", "application/json; charset=utf-8"), ("Content-Length", str(len(body)))]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    start_response(f"{status} {words[status]}", headers)
    return [body]
