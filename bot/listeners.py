"""Bolt's listeners: each takes the payload in, acks within its budget and never raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import structlog
from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot import windows
from bot.blocks import actions
from bot.blocks.notes import CLICK_AGAIN, NOT_COUNTED
from bot.clicks import click_of
from bot.deliveries import not_counted, take_in, whisper
from bot.desk import Desk
from bot.home import publish
from bot.slack import Refused
from bot.submissions import submitted

log = structlog.get_logger(__name__)
THREADS = 32  # Bolt's own five would be used up by five slow acks
OURS = re.compile(r"signoff\.")


def build_bolt(desk: Desk, client: WebClient, signing_secret: str = "") -> App:
    """Bolt's app with every listener registered. `signing_secret` is needed for requests over HTTP only."""
    app = App(
        name="Signoff",  # otherwise Bolt reads the whole call stack to find one
        client=client,
        signing_secret=signing_secret or "socket-mode-signs-nothing",
        listener_executor=ThreadPoolExecutor(THREADS, thread_name_prefix="bolt"),
        raise_error_for_unhandled_request=False,
    )
    for flow in desk.parts.catalog.newest:
        app.command(flow.command)(_safely(_on_command(desk)))
    app.action(OURS)(_safely(_on_action(desk)))
    app.view(OURS)(_safely(_on_submission(desk)))
    app.event("app_home_opened")(_safely(_on_home(desk)))
    return app


def _safely(listener: Callable[..., None]) -> Callable[..., None]:
    """Let nothing out: an exception right after the ack would take the ack back."""

    @wraps(listener)
    def safe(ack: Ack, body: dict[str, Any]) -> None:
        try:
            listener(ack, body)
        except Exception:
            log.exception("listener failed", type=body.get("type"), command=body.get("command"))
            ack()

    return safe


def _on_command(desk: Desk) -> Callable[..., None]:
    def on_command(ack: Ack, body: dict[str, Any]) -> None:
        if not str(body.get("text") or "").strip():
            ack()
            desk.later(_open_form, desk, body)
        elif take_in(desk, "command", str(body["trigger_id"]), body):
            ack()
        else:
            ack(NOT_COUNTED.replace("click", "command"))

    return on_command


def _open_form(desk: Desk, body: dict[str, Any]) -> None:
    flow = desk.parts.catalog.by_command(str(body["command"]))
    try:
        desk.slack.open_view(str(body["trigger_id"]), windows.start_form(flow, f"{flow.command}|{body['channel_id']}"))
    except Refused:
        whisper(desk, body, CLICK_AGAIN)


def _on_action(desk: Desk) -> Callable[..., None]:
    def on_action(ack: Ack, body: dict[str, Any]) -> None:
        click = click_of(body)
        if click.name in windows.TITLES:
            ack()
            desk.later(windows.open_window, desk, click)
        elif click.name in windows.TURNS:
            ack()
            desk.later(windows.turn_page, desk, click)
        elif click.name in windows.HOME_TURNS:
            ack()
            desk.later(windows.turn_home, desk, click)
        elif click.name == actions.FIELD or take_in(desk, "click", f"click:{click.trigger_id}", click.to_json()):
            ack()
        else:
            ack()
            desk.later(not_counted, desk, click)

    return on_action


def _on_submission(desk: Desk) -> Callable[..., None]:
    def on_submission(ack: Ack, body: dict[str, Any]) -> None:
        ack(**submitted(desk, body))

    return on_submission


def _on_home(desk: Desk) -> Callable[..., None]:
    def on_home(ack: Ack, body: dict[str, Any]) -> None:
        ack()
        if body["event"].get("tab", "home") == "home":
            desk.later(publish, desk.parts, desk.slack, str(body["event"]["user"]))

    return on_home
