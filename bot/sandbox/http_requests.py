"""Deliver envelopes as signed HTTP requests, for an app that serves a request url instead of Socket Mode."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bot.sandbox.courier import NOT_CONNECTED, Envelope, Receiver

_FORM = "application/x-www-form-urlencoded"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's v0 signature: HMAC-SHA256 over `v0:timestamp:body`."""
    signed = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


class HttpTransport:
    """Posts to one request url, signed with the app's signing secret."""

    def __init__(self, url: str, signing_secret: str, timeout: float = 10.0) -> None:
        self.url = url
        self._secret = signing_secret
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="sandbox-http")

    def send(self, envelope: Envelope, receiver: Receiver) -> bool:
        """Post in the background; a status of 200 is the ack."""
        self._pool.submit(self._post, envelope, receiver)
        return True

    def close(self) -> None:
        """Wait for the requests under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _post(self, envelope: Envelope, receiver: Receiver) -> None:
        request = self._request(envelope)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                response = _response(answer.headers.get_content_type(), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                receiver.refused(envelope.id, f"http_error {error.code}")
        except OSError:
            receiver.refused(envelope.id, NOT_CONNECTED)
        else:
            receiver.acked(envelope.id, response)

    def _request(self, envelope: Envelope) -> urllib.request.Request:
        content_type, body = _body(envelope)
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature(self._secret, timestamp, body),
        }
        if envelope.attempt:
            headers |= {"X-Slack-Retry-Num": str(envelope.attempt), "X-Slack-Retry-Reason": _reason(envelope)}
        return urllib.request.Request(self.url, data=body, headers=headers, method="POST")


def _reason(envelope: Envelope) -> str:
    return "http_timeout" if envelope.reason == "timeout" else envelope.reason


def _body(envelope: Envelope) -> tuple[str, bytes]:
    if envelope.kind == "slash_commands":
        return _FORM, urllib.parse.urlencode(envelope.payload).encode()
    payload = json.dumps(envelope.payload)
    if envelope.kind == "interactive":
        return _FORM, urllib.parse.urlencode({"payload": payload}).encode()
    return "application/json", payload.encode()


def _response(content_type: str, body: bytes) -> Any:
    text = body.decode()
    if not text.strip():
        return None
    if content_type == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return {"text": text}
    return {"text": text}
