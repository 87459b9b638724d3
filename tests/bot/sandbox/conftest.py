"""A stand-in for Slack and a small Bolt app that connects to it, for every test of the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from slack_bolt import App
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient

from bot.sandbox.records import Timing
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, StandIn

PATIENT = Timing(ack_seconds=10.0, trigger_seconds=10.0, retry_seconds=(0.0, 0.0, 0.0))


def client_of(stand_in: StandIn, token: str = BOT_TOKEN) -> WebClient:
    """A client that asks once and never again."""
    return WebClient(token, base_url=stand_in.api_url, retry_handlers=[], timeout=10)


@pytest.fixture
def timing() -> Timing:
    """Slack's time limits; a test about lateness parametrizes it with short ones."""
    return PATIENT


@pytest.fixture
def stand_in(timing: Timing) -> Iterator[StandIn]:
    """A stand-in in memory that allows everything."""
    with StandIn(timing=timing) as running:
        yield running


@pytest.fixture
def client(stand_in: StandIn) -> WebClient:
    """Slack's own client with the bot's token."""
    return client_of(stand_in)


@pytest.fixture
def connect(stand_in: StandIn) -> Iterator[Callable[[App], SocketModeHandler]]:
    """Connect a Bolt app over Socket Mode; it is disconnected after the test."""
    with ExitStack() as stack:

        def connected(app: App) -> SocketModeHandler:
            handler = SocketModeHandler(app, APP_TOKEN)
            stack.callback(_disconnect, stand_in, handler)
            handler.connect()
            assert stand_in.connected()
            return handler

        yield connected


def _disconnect(stand_in: StandIn, handler: SocketModeHandler) -> None:
    """Let the server say goodbye first: the client would sit out its receive timeout of three seconds."""
    handler.client.auto_reconnect_enabled = False
    stand_in.sockets.close()
    with handler.client.connect_operation_lock:
        # Whoever was reconnecting is done now; a connection made after the close would stay open for ever.
        handler.client.auto_reconnect_enabled = False
    # The thread that waits for messages looks up once a second, or when there is one.
    handler.client.closed = True
    handler.client.enqueue_message("")
    handler.close()


@pytest.fixture
def app(client: WebClient) -> App:
    """A Bolt app without listeners."""
    return App(client=client, signing_secret=SIGNING_SECRET)
