"""The WebSocket side of Slack: hello, envelopes, acks on any connection, disconnects."""

from __future__ import annotations

import json
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from bot import limits
from bot.sandbox.courier import Envelope, Receiver
from bot.sandbox.records import APP_ID, JsonObject

_HOST = "127.0.0.1"


@dataclass(eq=False, slots=True)
class _Socket:
    connection: ServerConnection
    leaving: bool = False


class SocketMode:
    """Serves the app's connections on a port of its own and hands each envelope to one of them, in turn."""

    def __init__(self, port: int = 0, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._tickets: set[str] = set()
        self._sockets: list[_Socket] = []
        self._turn = 0
        self._receiver: Receiver | None = None
        self._server = serve(
            self._talk, _HOST, port, process_request=self._admit, compression=None, close_timeout=1, ping_timeout=None
        )
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="sandbox-sockets")
        self._thread.start()

    @property
    def connected(self) -> int:
        """How many connections the app holds."""
        with self._lock:
            return len(self._sockets)

    def listen(self, receiver: Receiver) -> None:
        """Report acks to this receiver."""
        self._receiver = receiver

    def issue_url(self) -> str:
        """A url that opens one connection."""
        ticket = secrets.token_urlsafe(16)
        with self._lock:
            self._tickets.add(ticket)
        return f"ws://{_HOST}:{self.port}/link/?ticket={ticket}&app_id={APP_ID}"

    def send(self, envelope: Envelope, receiver: Receiver) -> bool:
        """Send an envelope on one connection; False when there is none."""
        self._receiver = receiver
        message = json.dumps(_envelope(envelope))
        return any(_sent(one, message) for one in self._in_turn())

    def refresh(self, reason: str = "refresh_requested") -> int:
        """Tell every connection to be replaced; each stays open and takes envelopes until a new one is there."""
        with self._lock:
            leaving = list(self._sockets)
            for one in leaving:
                one.leaving = True
        return sum(_sent(one, json.dumps(_disconnect(reason, len(leaving)))) for one in leaving)

    def cut(self) -> int:
        """Break every connection without a goodbye; how many there were."""
        with self._lock:
            cut, self._sockets = self._sockets, []
        for one in cut:
            _break(one.connection)
        return len(cut)

    def close(self) -> None:
        """Say goodbye on every connection and stop serving; may be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        ticket = request.path.partition("ticket=")[2].partition("&")[0]
        with self._lock:
            known = ticket in self._tickets
            self._tickets.discard(ticket)
        return None if known else connection.respond(403, "This url was used before or is unknown; ask for a new one.")

    def _talk(self, connection: ServerConnection) -> None:
        one = _Socket(connection)
        with self._lock:
            self._sockets.append(one)
            number = len(self._sockets)
        self._changed()
        try:
            if number > limits.SOCKETS:
                connection.send(json.dumps(_disconnect("too_many_websockets", number)))
                return
            connection.send(json.dumps(_hello(number)))
            self._see_off()
            for message in connection:
                self._hear(message)
        except ConnectionClosed:
            return
        finally:
            with self._lock:
                self._sockets = [other for other in self._sockets if other is not one]
            self._changed()

    def _see_off(self) -> None:
        """Close one connection that was asked to leave, now that another has taken its place."""
        with self._lock:
            gone = next((one for one in self._sockets if one.leaving), None)
        if gone is not None:
            gone.connection.close()

    def _hear(self, message: str | bytes) -> None:
        try:
            heard: Any = json.loads(message)
        except ValueError:
            return
        if self._receiver is not None and isinstance(heard, dict) and "envelope_id" in heard:
            self._receiver.acked(str(heard["envelope_id"]), heard.get("payload"))

    def _in_turn(self) -> list[_Socket]:
        with self._lock:
            self._turn += 1
            staying = [one for one in self._sockets if not one.leaving]
            leaving = [one for one in self._sockets if one.leaving]
            first = self._turn % len(staying) if staying else 0
            return staying[first:] + staying[:first] + leaving


def _sent(one: _Socket, message: str) -> bool:
    try:
        one.connection.send(message)
    except (ConnectionClosed, OSError):
        return False
    return True


def _break(connection: ServerConnection) -> None:
    """Reset the connection, as a lost network does; a mere end of the stream takes the SDK a minute to notice."""
    try:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        # It broke by itself in the meantime, which is what was wanted.
        return
    # Closed here first: close_socket() alone lets the reading thread end the stream politely before the reset.
    connection.socket.close()
    connection.close_socket()


def _envelope(envelope: Envelope) -> JsonObject:
    body: JsonObject = {
        "envelope_id": envelope.id,
        "type": envelope.kind,
        "payload": envelope.payload,
        "accepts_response_payload": _takes_response(envelope),
    }
    if envelope.kind == "events_api":
        body |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
    return body


def _takes_response(envelope: Envelope) -> bool:
    return envelope.kind == "slash_commands" or envelope.payload.get("type") == "view_submission"


def _hello(number: int) -> JsonObject:
    info = {"host": "applink-sandbox", "build_number": 1, "approximate_connection_time": 18060}
    return {"type": "hello", "num_connections": number, "debug_info": info, "connection_info": {"app_id": APP_ID}}


def _disconnect(reason: str, number: int) -> JsonObject:
    return {
        "type": "disconnect",
        "reason": reason,
        "num_connections": number,
        "debug_info": {"host": "applink-sandbox"},
        "connection_info": {"app_id": APP_ID},
    }
