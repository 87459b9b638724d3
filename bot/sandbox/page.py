"""The page of the sandbox as a WSGI application: one window a person, kept up to date by the stand-in behind it."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIEnvironment

from bot.sandbox.guard import SAFE_HEADERS, Forbidden, check_host, check_same_origin
from bot.sandbox.lab import Lab, Text
from bot.sandbox.messages import trouble_of
from bot.sandbox.people import NotPossible
from bot.sandbox.place import named
from bot.sandbox.records import Channel, Delivery, JsonObject, Message
from bot.sandbox.screen import HOME, Screen, address, is_human, reader_of
from bot.sandbox.shell import Frame, document
from bot.sandbox.stream import events
from bot.sandbox.workspace import Workspace

_LONGEST_BODY = 1_000_000
_PHRASES = {200: "OK", 302: "Found", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Response: TypeAlias = tuple[int, list[tuple[str, str]], Iterable[bytes]]
Deed: TypeAlias = Callable[[str, JsonObject], str]


class Acting(Protocol):
    """What people can do here; `bot.sandbox.people.People` does it. Every method may raise `NotPossible`."""

    def command(self, person: str, channel: str, typed: str) -> Delivery | None: ...

    def post(self, person: str, channel: str, text: str, thread_ts: str | None = None) -> Message: ...

    def click(
        self,
        person: str,
        channel: str,
        message_ts: str,
        block_id: str,
        action_id: str,
        *,
        value: Any = None,
        state: Mapping[str, Any] | None = None,
    ) -> Delivery: ...

    def click_in_view(
        self,
        person: str,
        view_id: str,
        block_id: str,
        action_id: str,
        *,
        value: Any = None,
        state: Mapping[str, Any] | None = None,
    ) -> Delivery: ...

    def submit(self, person: str, view_id: str, state: Mapping[str, Any] | None = None) -> Delivery | None: ...

    def close(self, person: str, view_id: str, clear: bool = False) -> list[Delivery]: ...

    def open_home(self, person: str) -> Delivery | None: ...

    def read(self, person: str, channel: str) -> None: ...

    def join(self, person: str, channel: str) -> Channel: ...

    def direct_message(self, person: str, other: str) -> Channel: ...


class NotFound(Exception):
    """There is nothing at this address, or nothing with this name."""


class Page:
    """The WSGI application.

    `manifest` is the app's manifest as a dict, `outbox` gives the texts that went out (`{"to", "body", "at"}`, oldest
    first), `notices` are short labels shown at the top and in the lab, such as "Simulated model".
    """

    def __init__(
        self,
        workspace: Workspace,
        people: Acting,
        manifest: JsonObject,
        outbox: Callable[[], Sequence[Text]],
        lab: Lab,
        *,
        notices: Sequence[str] = (),
    ) -> None:
        self._workspace = workspace
        self._people = people
        self._commands: list[JsonObject] = manifest.get("features", {}).get("slash_commands", [])
        self._outbox = outbox
        self._lab = lab
        self._notices = tuple(notices)
        self._deeds: dict[str, Deed] = {
            "/do/command": self._command,
            "/do/post": self._post,
            "/do/click": self._click,
            "/do/submit": self._submit,
            "/do/close": self._close,
            "/do/read": self._read,
            "/do/join": self._join,
            "/do/home": self._open_home,
            "/do/lab/kill": lambda person, body: self._act(self._lab.kill),
            "/do/lab/start": lambda person, body: self._act(self._lab.start),
            "/do/lab/clear": lambda person, body: self._act(self._lab.clear),
            "/do/lab/fault": self._fault,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        start_response(f"{status} {_PHRASES[status]}", [*headers, *SAFE_HEADERS])
        return body

    # --- routes -----------------------------------------------------------------------------------------------------

    def _answer(self, environ: WSGIEnvironment) -> Response:
        try:
            check_host(environ)
            return self._route(environ, environ.get("PATH_INFO") or "/")
        except Forbidden as refusal:
            return _text(403, str(refusal))
        except NotFound as missing:
            return _text(404, str(missing))
        except (ValueError, KeyError, TypeError) as error:
            return _text(400, f"This request cannot be read: {error}.")

    def _route(self, environ: WSGIEnvironment, path: str) -> Response:
        if path.startswith("/do/"):
            return self._do(environ, path)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _text(405, "Nothing can be changed here.")
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        match path:
            case "/":
                return self._window(query)
            case "/events":
                return self._events(query)
        return _static(path)

    def _window(self, query: Mapping[str, str]) -> Response:
        if "as" not in query:
            first = next((one for one in self._workspace.people() if is_human(one)), None)
            if first is None:
                raise NotFound("Nobody is in this workspace.")
            return 302, [("Location", address(first.id, query.get("channel", "")))], [b""]
        screen = self._screen(query)
        whole = document(screen, Frame(self._commands, self._lab, self._outbox(), self._notices))
        return 200, [("Content-Type", "text/html; charset=utf-8")], [whole.encode()]

    def _events(self, query: Mapping[str, str]) -> Response:
        screen = self._screen(query)

        def again() -> Screen | None:
            try:
                return self._screen(query)
            except NotFound:
                return None

        stream = events(again, self._lab, self._outbox, screen.me.id)
        return 200, [("Content-Type", "text/event-stream; charset=utf-8")], stream

    def _do(self, environ: WSGIEnvironment, path: str) -> Response:
        if environ["REQUEST_METHOD"] != "POST":
            return _text(405, "This takes POST.")
        check_same_origin(environ)
        deed = self._deeds.get(path)
        if deed is None:
            raise NotFound(f"There is nothing to do at {path}.")
        body = _body(environ)
        try:
            trouble = deed(str(body.get("as", "")), body)
        except NotPossible as refusal:
            trouble = str(refusal)
        return 200, [("Content-Type", "application/json")], [json.dumps({"trouble": trouble}).encode()]

    # --- what is looked at ------------------------------------------------------------------------------------------

    def _screen(self, query: Mapping[str, str]) -> Screen:
        me = self._workspace.person(query.get("as", ""))
        if me is None or not is_human(me):
            raise NotFound("There is no such person in this workspace. Open the page without “?as=”.")
        channel = self._channel(me.id, query.get("channel", ""))
        since = query.get("since") or (self._workspace.last_read(me.id, channel.id) if channel else "")
        thread = query.get("thread", "") if channel else ""
        return Screen(self._workspace, me, reader_of(self._workspace, me), channel, thread, since)

    def _channel(self, me: str, wanted: str) -> Channel | None:
        if wanted == HOME:
            return None
        mine = {one.id: one for one in self._workspace.channels_of(me)}
        if wanted in mine:
            return mine[wanted]
        if self._workspace.person(wanted):
            return self._people.direct_message(me, wanted)
        if wanted or not mine:
            raise NotFound("There is no such conversation for this person.")
        return self._first(list(mine.values()))

    def _first(self, mine: list[Channel]) -> Channel:
        """Where a newcomer starts: the channel with the latest message."""

        def latest(channel: Channel) -> str:
            found = self._workspace.messages(channel.id)
            return found[-1].ts if found else ""

        return max((one for one in mine if one.kind != "im"), key=latest, default=mine[0])

    # --- what is done: each gives the sentence to show when it went wrong, or nothing -------------------------------

    def _command(self, person: str, body: JsonObject) -> str:
        # What goes wrong with a command is told in the conversation, so there is nothing to add here.
        self._people.command(person, str(body["channel"]), str(body["text"]))
        return ""

    def _post(self, person: str, body: JsonObject) -> str:
        self._people.post(person, str(body["channel"]), str(body["text"]), body.get("thread") or None)
        return ""

    def _click(self, person: str, body: JsonObject) -> str:
        block_id, action_id = named(str(body["name"]))
        value, state = body.get("value"), entered(body.get("fields", []))
        if view := body.get("view"):
            return trouble_of(
                self._people.click_in_view(person, str(view), block_id, action_id, value=value, state=state)
            )
        channel, ts = str(body["channel"]), str(body["ts"])
        return trouble_of(self._people.click(person, channel, ts, block_id, action_id, value=value, state=state))

    def _submit(self, person: str, body: JsonObject) -> str:
        self._people.submit(person, str(body["view"]), entered(body.get("fields", [])))
        return ""

    def _close(self, person: str, body: JsonObject) -> str:
        self._people.close(person, str(body["view"]))
        return ""

    def _read(self, person: str, body: JsonObject) -> str:
        self._people.read(person, str(body["channel"]))
        return ""

    def _join(self, person: str, body: JsonObject) -> str:
        self._people.join(person, str(body["channel"]))
        return ""

    def _open_home(self, person: str, body: JsonObject) -> str:
        return trouble_of(self._people.open_home(person))

    def _fault(self, person: str, body: JsonObject) -> str:
        return self._act(lambda: self._lab.inject(str(body["name"])))

    def _act(self, deed: Callable[[], None]) -> str:
        deed()
        return ""


def entered(fields: Iterable[Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """A form's fields, `[[name, value], …]`, as `{block_id: {action_id: value}}`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in fields:
        block_id, action_id = named(name)
        found.setdefault(block_id, {})[action_id] = value
    return found


def _body(environ: WSGIEnvironment) -> JsonObject:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > _LONGEST_BODY:
        raise ValueError("it is too long")
    body = json.loads(environ["wsgi.input"].read(length))
    if not isinstance(body, dict):
        raise TypeError("it is not a JSON object")
    return body


def _static(path: str) -> Response:
    name = path.removeprefix("/static/")
    found = files("bot.sandbox") / "static" / name
    if not path.startswith("/static/") or "/" in name or "\\" in name or name.startswith(".") or not found.is_file():
        raise NotFound("There is nothing at this address.")
    kind = _TYPES.get("." + name.rpartition(".")[2]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return 200, [("Content-Type", f"{kind}; charset=utf-8")], [found.read_bytes()]


def _text(status: int, sentence: str) -> Response:
    return status, [("Content-Type", "text/plain; charset=utf-8")], [sentence.encode()]
