"""A bot that cannot serve says in one sentence why, before it has begun anything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, StandIn
from bot.serving import Bot, serve_http
from bot.settings import Settings, SettingsError, load_settings
from tests.bot.scene import Scene


def settings_for(tmp_path: Path, url: str, bot_token: str = BOT_TOKEN, app_token: str | None = APP_TOKEN) -> Settings:
    return load_settings(
        database_url=f"sqlite:///{tmp_path / 'signoff.db'}",
        slack_bot_token=bot_token,
        slack_app_token=app_token,
        slack_signing_secret=SIGNING_SECRET,
        slack_api_url=url,
    )


def test_a_wrong_bot_token_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    with StandIn(None) as slack, pytest.raises(SettingsError, match=r"SLACK_BOT_TOKEN \(invalid_auth\)"):
        Bot(settings_for(tmp_path, slack.api_url, bot_token="xoxb-wrong"))
    assert not (tmp_path / "signoff.db").exists()


def test_a_slack_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be reached at http://127"):
        Bot(settings_for(tmp_path, "http://127.0.0.1:1/api/"))


def test_a_wrong_app_token_is_refused_with_the_scope_it_needs(tmp_path: Path) -> None:
    with StandIn(None) as slack:
        bot = Bot(settings_for(tmp_path, slack.api_url, app_token="xapp-wrong"))
        with pytest.raises(SettingsError, match="connections:write"):
            bot.start()
        bot.stop()


def test_a_port_in_use_is_named(new_scene: Callable[..., Scene]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        scene = new_scene(http=True, http_port=port)
        with pytest.raises(SettingsError, match=f"Port {port} cannot be used"):
            serve_http(scene.bot, threading.Event())
