"""The practice API: trailheads, a forecast, text messages and posts on one's own machine, with a record of them."""

from __future__ import annotations

import io
import json
import re
import secrets
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

import httpx2

from bot.adapters import practice_weather
from bot.adapters.outgoing import Clock, utc_now
from bot.adapters.practice_record import Record
from bot.adapters.trailheads import made_up_trailheads
from graphs.ports import Trailhead

ATTRIBUTION = "Made-up practice weather"
LONGEST_TEXT = 1600
FAULTS = ("429", "500", "503", "html", "drop", "take_then_drop")
Fault = Literal["429", "500", "503", "html", "drop", "take_then_drop"]

_PHONE = re.compile(r"\+[1-9]\d{6,14}")
_KINDS = {"/messages": "sms", "/posts": "post"}
_BUSY = {
    "429": "Minutely API request limit exceeded. Please try again in one minute.",
    "500": "Internal server error (practice).",
    "503": "The service is overloaded",
}


class Practice:
    """One handler for the command line, the tests (`client()`, in-process) and the sandbox (`wsgi`, on loopback).

    `path` is the file of its record, shared by any number of processes; None keeps the record in memory.
    """

    def __init__(
        self, path: Path | None = None, clock: Clock = utc_now, trailheads: Sequence[Trailhead] | None = None
    ) -> None:
        self._record = Record(path)
        self._clock = clock
        self._trailheads = made_up_trailheads() if trailheads is None else list(trailheads)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._lock = threading.Lock()

    def outbox(self) -> list[dict[str, Any]]:
        """What really went out, oldest first: `kind` (sms or post), `to`, `body`, `at` (ISO, UTC), `key`, `sid`."""
        return self._record.entries()

    def inject(self, *faults: Fault, path: str = "/messages") -> None:
        """Spend these on the next requests that send or ask there (`/messages`, `/posts`, `/v1/forecast`), in order.

        Only a POST counts on `/messages` and `/posts`. `take_then_drop` records the text and drops the connection.
        """
        for fault in faults:
            if fault not in FAULTS:
                raise ValueError(f"There is no practice fault {fault!r}; choose from {', '.join(FAULTS)}.")
        with self._lock:
            self._faults[path].extend(faults)

    def client(self) -> httpx2.Client:
        """A client whose requests stay in this process."""
        return httpx2.Client(transport=httpx2.MockTransport(self.handle), base_url="http://practice.invalid")

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request; a dropped connection is an `httpx2.ReadError`."""
        try:
            return self._handle(request)
        except _Dropped as dropped:
            raise httpx2.ReadError("practice: the connection was dropped", request=request) from dropped

    def wsgi(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The same over WSGI; a dropped connection is an answer shorter than it says."""
        try:
            response = self._handle(_request(environ))
        except _Dropped:
            start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "1000")])
            return [b"{"]
        status = f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
        start_response(status, [(key.title(), value) for key, value in response.headers.items()])
        return [response.content]

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        path, query = request.url.path, dict(request.url.params)
        fault = self._take(path) if request.method == "POST" or path not in _KINDS else None
        if fault in _BUSY:
            return _error(int(fault), _BUSY[fault])
        if fault == "html":
            return httpx2.Response(200, html="<html><body>A captive portal (practice)</body></html>")
        if fault == "drop":
            raise _Dropped
        response = self._route(request.method, path, query, request)
        if fault == "take_then_drop":
            raise _Dropped
        return response

    def _take(self, path: str) -> Fault | None:
        with self._lock:
            waiting = self._faults[path]
            return waiting.popleft() if waiting else None

    def _route(self, method: str, path: str, query: Mapping[str, str], request: httpx2.Request) -> httpx2.Response:
        if (method, path) == ("GET", "/v1/forecast"):
            return self._forecast(query)
        if (method, path) == ("GET", "/trailheads.geojson"):
            return httpx2.Response(200, json=_geojson(self._trailheads))
        if path in _KINDS and method == "GET":
            return httpx2.Response(200, json={_plural(path): self._find(_KINDS[path], query)})
        if path in _KINDS and method == "POST":
            return self._send(_KINDS[path], request.read())
        return _error(404, f"The practice API has no {method} {path}")

    def _forecast(self, query: Mapping[str, str]) -> httpx2.Response:
        try:
            return httpx2.Response(200, json=practice_weather.forecast(query, self._trailheads, self._clock()))
        except practice_weather.Refused as refused:
            return _error(400, str(refused))

    def _find(self, kind: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        wanted = {name: query[name] for name in ("key", "to", "body") if name in query}
        since = datetime.fromisoformat(query["since"]) if "since" in query else None
        return [
            entry
            for entry in self.outbox()
            if entry["kind"] == kind
            and all(entry[name] == value for name, value in wanted.items())
            and (since is None or datetime.fromisoformat(entry["at"]) >= since)
        ]

    def _send(self, kind: str, content: bytes) -> httpx2.Response:
        try:
            given = json.loads(content)
            to, body, key = (given.get(name, "") for name in ("to", "body", "key"))
        except (ValueError, AttributeError):
            return _error(400, "The body is not a JSON object.")
        if not all(isinstance(text, str) for text in (to, body, key)) or not body:
            return _error(400, "to, body and key are texts, and body is not empty.", code=21602)
        if kind == "sms" and not _PHONE.fullmatch(to):
            return _error(400, f"The 'To' number {to} is not a valid phone number.", code=21211)
        if kind == "sms" and len(body) > LONGEST_TEXT:
            return _error(400, f"The message body exceeds the {LONGEST_TEXT} character limit.", code=21617)
        sid = ("SM" if kind == "sms" else "PO") + secrets.token_hex(16)
        entry = self._record.add(kind=kind, to=to, body=body, at=self._clock(), key=key, sid=sid)
        return httpx2.Response(201, json=entry)


class _Dropped(Exception):
    """The connection is to be dropped without an answer."""


def _request(environ: Mapping[str, Any]) -> httpx2.Request:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    content = environ.get("wsgi.input", io.BytesIO()).read(length) if length else b""
    params = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    url = httpx2.URL("http://practice.invalid" + environ["PATH_INFO"], params=params)
    return httpx2.Request(environ["REQUEST_METHOD"], url, content=content)


def _error(status: int, reason: str, **more: int) -> httpx2.Response:
    return httpx2.Response(status, json={"error": True, "reason": reason, **more})


def _plural(path: str) -> str:
    return path.lstrip("/")


def _geojson(trailheads: Sequence[Trailhead]) -> dict[str, Any]:
    features = []
    for trailhead in trailheads:
        properties = trailhead.to_json()
        longitude, latitude = properties.pop("longitude"), properties.pop("latitude")
        point = {"type": "Point", "coordinates": [longitude, latitude]}
        features.append({"type": "Feature", "properties": properties, "geometry": point})
    return {"type": "FeatureCollection", "features": features}
