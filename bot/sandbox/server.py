"""The stand-in as one thing to start and stop: workspace, people, faults, Web API, Socket Mode."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from wsgiref.types import StartResponse
from wsgiref.types import WSGIEnvironment as Environ

from waitress.server import create_server
from waitress.wasyncore import close_all

from bot.sandbox.courier import Courier, Transport
from bot.sandbox.faults import Faults
from bot.sandbox.manifest import allowed
from bot.sandbox.people import People
from bot.sandbox.permits import Permits
from bot.sandbox.records import Timing
from bot.sandbox.site import Site
from bot.sandbox.socket_mode import SocketMode
from bot.sandbox.web_api import APP_TOKEN, BOT_TOKEN, WebApi, WsgiApp
from bot.sandbox.workspace import Workspace

__all__ = ["APP_TOKEN", "BOT_TOKEN", "SIGNING_SECRET", "StandIn"]

SIGNING_SECRET = "sandbox-signing-secret"
_HOST = "127.0.0.1"
_THREADS = 32


class StandIn:
    """Slack for one workspace on loopback, from construction until `close()`; also a context manager.

    `path` keeps the workspace over a restart, `port` 0 takes a free one. The app connects with
    `WebClient(BOT_TOKEN, base_url=stand_in.api_url)` and `APP_TOKEN`, or is called with
    `stand_in.use(HttpTransport(url, SIGNING_SECRET))`. `manifest` restricts it to the scopes, commands and events it
    asked for; without one everything is allowed. Raises `OSError` where the port cannot be served.
    """

    def __init__(
        self,
        path: Path | None = None,
        port: int = 0,
        *,
        timing: Timing | None = None,
        manifest: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = Workspace(path, timing=timing, clock=clock)
        self.faults = Faults(self.workspace)
        self.courier = Courier(self.workspace, self.faults)
        self.permits = Permits(self.workspace.timing, clock)
        self.allowed = allowed(manifest)
        self.sockets = SocketMode(changed=lambda: self.workspace.announce("connection"))
        self.sockets.listen(self.courier)
        self.courier.transport = self.sockets
        self.faults.sockets = self.sockets
        self.people = People(self.workspace, self.courier, self.permits, self.allowed, lambda: self.url)
        self._mounts: dict[str, WsgiApp] = {"/healthz": _healthz}
        self._serve_api()
        try:
            self._http = _Http(self._route, port)
        except OSError:
            self._close_inside()
            raise

    @property
    def url(self) -> str:
        """Where it serves, without a slash at the end."""
        return f"http://{_HOST}:{self._http.port}"

    @property
    def api_url(self) -> str:
        """The `base_url` for a `WebClient`."""
        return f"{self.url}/api/"

    def mount(self, prefix: str, app: WsgiApp) -> None:
        """Serve a WSGI application below a prefix such as `/page`; "" takes whatever nobody else does."""
        self._mounts = {**self._mounts, prefix.rstrip("/"): app}

    def use(self, transport: Transport) -> None:
        """Reach the app in another way from now on; closed together with the stand-in."""
        self.courier.transport = transport

    def connected(self, timeout: float = 10.0) -> bool:
        """Wait until the app has opened a socket; False when it did not in time."""
        return self.workspace.wait(lambda: self.sockets.connected > 0, timeout)

    def close(self) -> None:
        """Stop everything and wait for it; may be called twice."""
        self._close_inside()
        self._http.close()

    def _close_inside(self) -> None:
        self.faults.close()
        self.courier.close()
        if self.courier.transport is not None:
            self.courier.transport.close()
        self.sockets.close()
        self.workspace.close()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _serve_api(self) -> None:
        site = Site(self.workspace, self.permits, self.allowed, lambda: self.url, self.sockets.issue_url)
        api = WebApi(site, self.faults, _hang_up)
        self._mounts |= {"/api": api.api, "/response": api.response}

    def _route(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        for prefix in sorted(self._mounts, key=len, reverse=True):
            if path == prefix or path.startswith(f"{prefix}/"):
                moved = {"SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + prefix, "PATH_INFO": path[len(prefix) :]}
                return self._mounts[prefix](environ | moved, start_response)
        return _plain(start_response, "404 Not Found", b"Nothing is served here.\n")


class _Http:
    """Waitress in a thread of its own, which can be stopped."""

    def __init__(self, app: WsgiApp, port: int) -> None:
        # Bound here, because Waitress starts its threads before it finds out that a port is taken.
        listening = socket.create_server((_HOST, port))
        self.port: int = int(listening.getsockname()[1])
        self._server = create_server(app, sockets=[listening], threads=_THREADS, ident=None, asyncore_use_poll=True)
        self._thread = threading.Thread(target=self._server.run, name="sandbox-http")
        self._thread.start()

    def close(self) -> None:
        if not self._thread.is_alive():
            return
        self._server.task_dispatcher.shutdown()
        # The loop must close its own sockets: closed by another thread, it would poll descriptors that are gone.
        self._server.trigger.pull_trigger(lambda: close_all(self._server._map))
        self._thread.join()


def _hang_up(environ: Environ) -> None:
    """Break the connection of a request; Waitress shows its channel only through this callable."""
    channel = environ["waitress.client_disconnected"].__self__
    channel.socket.shutdown(socket.SHUT_RDWR)


def _healthz(_environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    return _plain(start_response, "200 OK", b"ok\n")


def _plain(start_response: StartResponse, status: str, body: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]
