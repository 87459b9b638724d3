"""Points a process passes, put around its database drivers and its clients from outside; at some of them it is hit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import httpx2
import psycopg
import sqlalchemy as sa
from sqlalchemy import event

from bot.adapters.simulated import SimulatedApi
from graphs.ports import Model, ModelReply, ModelRequest

ENDS = ("COMMIT",)
Blow = Callable[[Any], None]
"""What happens at a point; it is given the driver's connection, or None beside an outside call."""


class Points:
    """Counts the points that are passed, from 1, once it was armed; at each one in `plan` the blow falls.

    Threads of the names in `without` count for nothing: what a clock makes a thread do would shift all other points.
    """

    def __init__(self, plan: Mapping[int, Blow], without: Sequence[str] = ()) -> None:
        self._plan = plan
        self._without = without
        self._lock = threading.Lock()
        self._armed = False
        self.labels: list[str] = []

    def arm(self) -> None:
        """Count from here on; what went before was starting up."""
        self._armed = True

    def disarm(self) -> None:
        """Count no more."""
        self._armed = False

    def passed(self, label: str, connection: Any = None) -> None:
        """Tell that a point has been reached."""
        if not self._armed or threading.current_thread().name in self._without:
            return
        with self._lock:
            self.labels.append(label)
            blow = self._plan.get(len(self.labels))
        if blow is not None:
            blow(connection)


_watching: list[Points] = []


def watch_drivers(points: Points) -> None:
    """Put points around every statement and COMMIT of every connection made in this process from now on."""
    if not _watching:
        event.listen(sa.Engine, "do_connect", _connect)
    _watching[:] = [points]


def _connect(dialect: Any, _record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Any:
    if dialect.name == "sqlite":
        parameters["factory"] = _sqlite_connection(_watching[0])
        return None
    return _postgres_connection(_watching[0]).connect(*arguments, **parameters)


def _name(query: Any) -> str:
    text = query.decode() if isinstance(query, bytes) else str(query)
    words = text.split()
    if words[0] == "SELECT" and "FROM" in words:
        return f"SELECT {words[words.index('FROM') + 1]}"
    return " ".join(words[:3] if words[0] in ("INSERT", "DELETE") else words[:2])


def _around(points: Points, what: str, connection: Any, do: Callable[[], Any]) -> Any:
    points.passed(f"before {what}", connection)
    result = do()
    if what in ENDS:  # after any other statement is before the next one
        points.passed(f"after {what}", connection)
    return result


@lru_cache
def _sqlite_connection(points: Points) -> type[sqlite3.Connection]:
    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = ()) -> Any:
            run = super().execute
            return _around(points, _name(sql), self.connection, lambda: run(sql, parameters))

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, parameters: Any = ()) -> Any:
            return self.cursor().execute(sql, parameters)

        def commit(self) -> None:
            _around(points, "COMMIT", self, super().commit)

    return Connection


@lru_cache
def _postgres_connection(points: Points) -> type[psycopg.Connection[Any]]:
    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            run = super().execute
            return _around(points, _name(query), self.connection, lambda: run(query, params, **options))

    class Connection(psycopg.Connection[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.cursor_factory = Cursor

        def commit(self) -> None:
            _around(points, "COMMIT", self, super().commit)

    return Connection


class WatchedTransport(httpx2.BaseTransport):
    """A transport with a point before the request leaves and one after the other side has taken it."""

    def __init__(self, inner: httpx2.BaseTransport, points: Points) -> None:
        self._inner = inner
        self._points = points

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        name = f"{request.method} {request.url.path}"
        self._points.passed(f"before {name}")
        response = self._inner.handle_request(request)
        self._points.passed(f"taken {name}")
        return response


def watched_client(inner: httpx2.BaseTransport, base_url: str, points: Points) -> httpx2.Client:
    """A client with three points for every call; the third follows the response."""

    def answered(response: httpx2.Response) -> None:
        points.passed(f"answered {response.request.method} {response.request.url.path}")

    hooks = {"response": [answered]}
    return httpx2.Client(transport=WatchedTransport(inner, points), base_url=base_url, event_hooks=hooks)


class WatchedApi(SimulatedApi):
    """The simulated model with a point before a request and one after it was answered, and written into the journal."""

    points: Points

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.points.passed("before model")
        response = super().__call__(request)
        self.points.passed("taken model")
        return response


class WatchedModel:
    """A model with a point after its response."""

    def __init__(self, inner: Model, points: Points) -> None:
        self._inner = inner
        self._points = points

    @property
    def provider(self) -> str:
        return self._inner.provider

    def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._inner.complete(request)
        self._points.passed("answered model")
        return reply
