"""What the bot serves over HTTP: Slack's requests, its health, and answers from machines."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from slack_bolt import App
from slack_bolt.adapter.wsgi import SlackRequestHandler

from bot.callbacks import is_from_twilio, text_exists
from bot.machines import NotForMachines, answer_interrupt
from bot.parts import Parts
from graphs.engine.errors import EngineError

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
LONGEST_BODY = 64 * 1024


class Denied(Exception):
    """A request that is not answered: an HTTP status and a sentence."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def application(parts: Parts, bolt: App, health: Callable[[], dict[str, Any]]) -> Wsgi:
    """`/slack/events`, `/healthz` (503 with what is wrong), `POST /answer` with a bearer token, `/twilio` callbacks."""
    slack = SlackRequestHandler(bolt, path="/slack/events")
    answers = {"/answer": _answer, "/twilio": _twilio}

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        if path == "/healthz":
            found = health()
            return _json(start_response, "200 OK" if found["ok"] else "503 Service Unavailable", found)
        if path in answers:
            return answers[path](parts, environ, start_response)
        events: Iterable[bytes] = slack(environ, start_response)
        return events

    return serve


def _answer(parts: Parts, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        _admit(parts, environ)
        wish = _read(environ)
        answer_interrupt(parts, wish["thread"], wish["interrupt"], wish.get("value"), wish["as"])
    except Denied as error:
        return _json(start_response, error.status, {"error": str(error)})
    except (EngineError, NotForMachines) as error:
        return _json(start_response, "409 Conflict", {"error": str(error)})
    return _json(start_response, "202 Accepted", {"ok": True})


def _twilio(parts: Parts, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    form = dict(
        parse_qsl(environ["wsgi.input"].read(min(int(environ.get("CONTENT_LENGTH") or 0), LONGEST_BODY)).decode())
    )
    key = dict(parse_qsl(str(environ.get("QUERY_STRING", "")))).get("key", "")
    if not is_from_twilio(parts.settings, key, form, str(environ.get("HTTP_X_TWILIO_SIGNATURE", ""))):
        return _json(start_response, "403 Forbidden", {"error": "Not signed by Twilio for this address."})
    known = text_exists(parts, key, form.get("MessageSid", ""), form.get("MessageStatus", ""))
    return _json(start_response, "200 OK" if known else "404 Not Found", {"ok": known})


def _admit(parts: Parts, environ: dict[str, Any]) -> None:
    secret = parts.settings.answer_token
    if secret is None:
        raise Denied("404 Not Found", "Answers from machines are off: set SIGNOFF_ANSWER_TOKEN.")
    if environ.get("REQUEST_METHOD") != "POST":
        raise Denied("405 Method Not Allowed", "POST JSON here: thread, interrupt, value, as.")
    given = str(environ.get("HTTP_AUTHORIZATION", "")).removeprefix("Bearer ").strip()
    if not hmac.compare_digest(given.encode(), secret.get_secret_value().encode()):
        raise Denied("401 Unauthorized", "The bearer token is not SIGNOFF_ANSWER_TOKEN.")


def _read(environ: dict[str, Any]) -> dict[str, Any]:
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(min(length, LONGEST_BODY)))
    except ValueError as error:
        raise Denied("400 Bad Request", "The body is not JSON.") from error
    if not isinstance(body, dict) or not all(isinstance(body.get(key), str) for key in ("thread", "interrupt", "as")):
        raise Denied("400 Bad Request", "The body needs the strings thread, interrupt and as, and a value.")
    return body


def _json(start_response: Callable[..., Any], status: str, data: dict[str, Any]) -> Iterable[bytes]:
    body = json.dumps(data).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
