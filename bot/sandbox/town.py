"""The sandbox as a whole: the stand-in for Slack with its page, the practice API, and the bot as a child."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.adapters.practice import Practice
from bot.sandbox.mishaps import lab_of
from bot.sandbox.page import Page
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, StandIn
from bot.sandbox.supervisor import Supervisor

BOT = (sys.executable, "-m", "bot", "serve")


class Town:
    """Everything that `signoff sandbox` runs, from construction until `close`; also a context manager.

    `folder` keeps its files: the workspace, the practice record, the bot's database and log. `environment` goes to the
    bot on top of the process's own.
    """

    def __init__(
        self, folder: Path, manifest: Mapping[str, Any], port: int = 0, environment: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.practice = Practice(folder / "signoff.practice.db")
        self.slack = StandIn(folder / "slack.db", port, manifest=manifest)
        self.bot = Supervisor(BOT, self._environment(folder, environment or {}), folder / "bot.log", self._changed)
        lab = lab_of(self.slack.faults, self._status, self.bot.kill, self.bot.start)
        page = Page(
            self.slack.workspace,
            self.slack.people,
            dict(manifest),
            self._texts,
            lab,
            notices=("Simulated model", "Practice weather and texts"),
        )
        self.slack.mount("/practice", self.practice.wsgi)
        self.slack.mount("", page)

    @property
    def url(self) -> str:
        """The page's address."""
        return self.slack.url

    def start(self) -> None:
        """Start the bot."""
        self.bot.start()

    def close(self) -> None:
        """Stop the bot in order, then everything else."""
        self.bot.stop()
        self.slack.close()

    def __enter__(self) -> Town:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _environment(self, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "SIGNOFF_DATABASE_URL": f"sqlite:///{folder / 'signoff.db'}",
            "SIGNOFF_PRACTICE_URL": f"{self.slack.url}/practice",
            "SLACK_API_URL": self.slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SIGNOFF_SWEEP_SECONDS": "2",
            "SIGNOFF_REMIND_AFTER": "45s,90s",
            "SIGNOFF_MODEL": "simulated",
            "SIGNOFF_MODEL_SECONDS": "0.7",
            **more,
        }

    def _status(self) -> str:
        if not self.bot.is_running:
            return "stopped"
        return "running" if self.slack.sockets.connected else "starting"

    def _texts(self) -> list[dict[str, Any]]:
        return [entry for entry in self.practice.outbox() if entry["kind"] == "sms"]

    def _changed(self) -> None:
        self.slack.workspace.announce("connection")
