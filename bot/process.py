"""What a process needs of its surroundings: signals, a browser, the manifest beside the packages."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM or a closed terminal sets; the handlers before are put back."""
    stop = threading.Event()
    numbers = [signal.SIGINT, signal.SIGTERM]
    # `nohup` ignores SIGHUP for good reason, and Windows has none.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def has_browser() -> bool:
    """Whether opening a page would show it to somebody: on a terminal, with a desktop."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def read_manifest() -> dict[str, Any]:
    """The app's manifest: inside an installed package, or at the root of a checkout."""
    inside = files("bot") / "manifest.yml"
    text = (
        inside.read_text("utf-8")
        if inside.is_file()
        else (Path(__file__).parent.parent / "manifest.yml").read_text("utf-8")
    )
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def with_request_urls(manifest: dict[str, Any], address: str) -> dict[str, Any]:
    """The manifest for requests over HTTP to a server of yours instead of Socket Mode."""
    url = f"{address.rstrip('/')}/slack/events"
    changed: dict[str, Any] = yaml.safe_load(yaml.safe_dump(manifest))
    for command in changed["features"]["slash_commands"]:
        command["url"] = url
    changed["settings"]["interactivity"]["request_url"] = url
    changed["settings"]["event_subscriptions"]["request_url"] = url
    changed["settings"]["socket_mode_enabled"] = False
    return changed
