"""The sandbox as a whole: the stand-in for Slack with its page, the practice API, and the bot as a child."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.adapters.practice import Practice
from bot.sandbox.mishaps import lab_of
from bot.sandbox.page import Page
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, StandIn
from bot.sandbox.supervisor import Supervisor

BOT = (sys.executable, "-m", "bot.sandbox.child")
_KEPT = ("slack.db", "signoff.db", "signoff.practice.db", "bot.log")
_LOCK = "running.db"
_LOOK = 0.1  # seconds between two looks at a bot that starts
# How fast things go here, so that waiting is no part of trying it; a variable of the same name wins.
_PACE = {
    "SIGNOFF_SWEEP_SECONDS": "2",
    "SIGNOFF_REMIND_AFTER": "45s,90s",
    "SIGNOFF_MODEL_SECONDS": "0.7",
}
# What the page says is simulated must be, whatever a .env file beside it says.
_MADE_UP = {
    "SIGNOFF_MODEL": "simulated",
    "SIGNOFF_TRAILS": "practice",
    "SIGNOFF_SMS": "practice",
    "SIGNOFF_HIKES_CHANNEL": "C0HIKES01",
}


class TownError(Exception):
    """The sandbox cannot run; the message says what to do."""


class Town:
    """Everything that `signoff sandbox` runs, from construction until `close`; also a context manager.

    `folder` keeps its files: the workspace, the practice record, the bot's database and log; `fresh` forgets them
    first. `environment` goes to the bot on top of the process's own. Raises `TownError`.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = _occupy(folder)
        if fresh:
            _forget(folder)
        self.practice = Practice(folder / "signoff.practice.db")
        self.slack = self._serve(port, manifest)
        self.bot = Supervisor(BOT, self._environment(environment or {}), folder / "bot.log", self._changed)
        lab = lab_of(self.slack.faults, self._status, self.bot.kill, self.bot.start)
        notices = ("Simulated model", "Practice weather and texts")
        page = Page(self.slack.workspace, self.slack.people, dict(manifest), self._texts, lab, notices=notices)
        self.slack.mount("/practice", self.practice.wsgi)
        self.slack.mount("", page)

    @property
    def url(self) -> str:
        """The page's address."""
        return self.slack.url

    def start(self) -> None:
        """Start the bot."""
        self.bot.start()

    def connected(self, timeout: float, stop: threading.Event | None = None) -> bool:
        """Wait until the bot is connected; False once `stop` is set. Raises `TownError` if it ends or takes longer."""
        until = time.monotonic() + timeout
        while not (stop and stop.is_set()):
            if self.slack.connected(_LOOK):
                return True
            if not self.bot.is_running:
                raise TownError(f"The bot did not start: {self._last_words()} Its log is {self._folder}/bot.log.")
            if time.monotonic() > until:
                raise TownError(f"The bot did not connect within {timeout:g} s; its log is {self._folder}/bot.log.")
        return False

    def close(self) -> None:
        """Stop the bot in order, then everything else."""
        self.bot.stop()
        self.slack.close()
        self._lock.close()

    def __enter__(self) -> Town:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _serve(self, port: int, manifest: Mapping[str, Any]) -> StandIn:
        try:
            return StandIn(self._folder / "slack.db", port, manifest=manifest)
        except OSError as error:
            self._lock.close()
            why = error.strerror or error
            raise TownError(f"Port {port} cannot be used ({why}); choose another one, such as --port 0.") from error

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            **{name: os.environ.get(name) or value for name, value in _PACE.items()},
            **_MADE_UP,
            "SIGNOFF_DATABASE_URL": f"sqlite:///{self._folder / 'signoff.db'}",
            "SIGNOFF_PRACTICE_URL": f"{self.slack.url}/practice",
            "SLACK_API_URL": self.slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            **more,
        }

    def _last_words(self) -> str:
        log = (self._folder / "bot.log").read_text("utf-8", "replace").strip()
        _, ours, sentence = log.rpartition("signoff: ")
        told = sentence if ours else sentence.rpartition("\n")[2]
        return " ".join(told.split())[:400] or "it said nothing."

    def _status(self) -> str:
        if not self.bot.is_running:
            return "stopped"
        return "running" if self.slack.sockets.connected else "starting"

    def _texts(self) -> list[dict[str, Any]]:
        return [entry for entry in self.practice.outbox() if entry["kind"] == "sms"]

    def _changed(self) -> None:
        self.slack.workspace.announce("connection")


def _occupy(folder: Path) -> sqlite3.Connection:
    """Keep other sandboxes out of a folder; the lock goes with the process, even when that is killed."""
    lock = sqlite3.connect(folder / _LOCK, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        raise TownError(
            f"A sandbox is running from {folder} already; stop it, or start this one with --folder and --port 0."
        ) from error
    return lock


def _forget(folder: Path) -> None:
    """Delete what a sandbox keeps, and nothing else that may be in the folder."""
    for name in _KEPT:
        for path in folder.glob(f"{name}*"):
            path.unlink()
