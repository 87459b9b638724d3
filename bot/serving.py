"""The bot as a whole: parts, Slack, cards, listeners and sweeps, started together and stopped in order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from slack_bolt import App
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from waitress.server import create_server
from waitress.wasyncore import close_all

from bot.adapters.deferred import Deferred
from bot.app import build, slack_client
from bot.cards import Cards
from bot.deliveries import deal_with, drain, tell_stuck
from bot.desk import Desk
from bot.listeners import build_bolt
from bot.parts import Parts
from bot.reminders import Sweeper
from bot.settings import Settings, SettingsError
from bot.slack import Slack
from bot.web import Wsgi, application
from graphs.engine.events import Chunk, Event
from storage import switches
from storage.deadlines import Reminder

log = structlog.get_logger(__name__)
HTTP_THREADS = 16
LATE = 3.0  # sweeps that may be missed before the bot counts as ill


class Bot:
    """One bot process. `start` connects and returns; `stop` lets every run stop at its next checkpoint."""

    def __init__(
        self,
        settings: Settings,
        client: WebClient | None = None,
        parts: Parts | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        found = client or slack_client(settings)
        if found is None:
            raise SettingsError("The bot needs SLACK_BOT_TOKEN; `signoff sandbox` needs nothing.")
        check_token(found, settings)
        self.settings = settings
        self.parts = parts or build(settings, client=found, clock=clock, after=self._after, emit=self._emit)
        self.slack = Slack(found)
        self.cards = Cards(self.parts, self.slack)
        self.desk = Desk(self.parts, self.slack, self.cards)
        secret = settings.slack_signing_secret
        self.bolt: App = build_bolt(self.desk, found, secret.get_secret_value() if secret else "")
        self.sweeper = Sweeper(
            self.parts,
            self._remind,
            (partial(drain, self.desk), partial(tell_stuck, self.desk), self.cards.check_open, self.cards.nudge),
        )
        self._socket: SocketModeHandler | None = None

    def _after(self, thread_id: str) -> None:
        self.cards.nudge(thread_id)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Chunk) and isinstance(event.data, str):
            self.cards.show_live(event.thread_id.partition("/")[0], event.data)

    def _remind(self, reminder: Reminder) -> None:
        payload = {"approval": reminder.approval_id, "stage": reminder.stage}
        self.desk.later(deal_with, self.desk, "reminder", reminder.delivery, payload)

    def start(self) -> None:
        """Begin to work, and to listen where Socket Mode is set."""
        self.parts.executor.start()
        self.cards.start()
        self.sweeper.start()
        if self.settings.slack == "socket":
            assert self.settings.slack_app_token is not None
            self._socket = SocketModeHandler(self.bolt, self.settings.slack_app_token.get_secret_value())
            try:
                self._socket.connect()  # type: ignore[no-untyped-call]
            except SlackApiError as error:
                why = error.response.get("error")
                raise SettingsError(f"Slack refused SLACK_APP_TOKEN ({why}): it needs connections:write.") from error
        if self.settings.model == "simulated" and self.settings.anthropic_api_key is not None:
            log.warning("ANTHROPIC_API_KEY is set but the model is simulated: SIGNOFF_MODEL=claude uses it")
        if isinstance(self.parts.deps.model, Deferred):
            self.desk.later(self.parts.deps.model.warm)
        log.info("ready", slack=self.settings.slack, model=self.parts.deps.model.provider)

    def stop(self) -> None:
        """Listen no more, finish what is at hand, leave the rest to the next process."""
        if self._socket is not None:
            hang_up(self._socket)
        self.sweeper.stop()
        self.desk.close()
        self.parts.executor.stop()
        self.cards.stop()
        self.bolt._listener_runner.listener_executor.shutdown(wait=True)
        self.parts.close()

    def health(self) -> dict[str, Any]:
        """How the bot is: `ok`, and what is wrong if it is not."""
        wrong = []
        swept = switches.last_sweep(self.parts.database)
        age = (self.parts.database.now() / 1_000_000 - swept.timestamp()) if swept else None
        if age is None or age > LATE * max(self.settings.sweep_seconds, 1.0):
            wrong.append("no sweep has been made lately")
        if self._socket is not None and not self._socket.client.is_connected():
            wrong.append("not connected to Slack")
        if hold := switches.held(self.parts.database):
            wrong.append(f"effects are held by {hold.by}")
        return {"ok": not wrong, "wrong": wrong, "model": self.parts.deps.model.provider, "slack": self.settings.slack}

    def wsgi(self) -> Wsgi:
        """Slack's requests at `/slack/events`, health at `/healthz`, machines' answers at `/answer`."""
        return application(self.parts, self.bolt, self.health)


def check_token(client: WebClient, settings: Settings) -> None:
    """Ask Slack who we are; raises `SettingsError` with what to do where it does not say."""
    try:
        client.auth_test()
    except SlackApiError as error:
        why = str(error.response.get("error"))[:80]
        raise SettingsError(f"Slack refused SLACK_BOT_TOKEN ({why}): `signoff doctor` says more.") from error
    except OSError as error:
        raise SettingsError(f"Slack cannot be reached at {settings.slack_api_url}: {error}.") from error


def hang_up(handler: SocketModeHandler) -> None:
    """Close the connection to Slack at once: by itself the client first waits for its next message, up to 4 seconds."""
    client = handler.client
    client.auto_reconnect_enabled = False
    runner = client.current_session_runner
    runner.event.set()
    session = client.current_session
    if session is not None and session.sock is not None:
        with suppress(OSError):  # it is broken already
            session.sock.shutdown(socket.SHUT_RDWR)
    while runner.is_alive():  # it takes `terminated` back when it begins to listen, and would then listen for ever
        client.current_session_state.terminated = True
        runner.thread.join(0.05)
    client.message_queue.put(None)
    handler.close()  # type: ignore[no-untyped-call]


def serve_http(bot: Bot, stop: threading.Event) -> None:
    """Serve Slack's requests until `stop` is set."""
    settings = bot.settings
    try:
        place = socket.create_server((settings.http_host, settings.http_port))
    except OSError as error:
        raise SettingsError(f"Port {settings.http_port} cannot be used ({error.strerror}): name another.") from error
    server = create_server(bot.wsgi(), sockets=[place], threads=HTTP_THREADS)
    thread = threading.Thread(target=server.run, name="http", daemon=True)
    thread.start()
    log.info("serving", host=settings.http_host, port=server.effective_port)
    stop.wait()
    server.task_dispatcher.shutdown()
    # The loop closes its own sockets: closed by another thread, it would poll descriptors that are gone.
    server.trigger.pull_trigger(lambda: close_all(server._map))
    thread.join()
