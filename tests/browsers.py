"""A real Chromium for the tests: the machine's, or Debian's package where we may install it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
MISSING = "Chromium is not installed: apt-get install chromium"


@cache
def chromium() -> str | None:
    """Its path; as root on Debian or Ubuntu it is installed first. None where it cannot be had."""
    return _found() or _installed()


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _installed() -> str | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
        subprocess.run(command, env=environment, capture_output=True, check=False)
    return _found()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of a module: a longer life would leave its event loop running under other tests."""
    path = chromium()
    if path is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield browser
        browser.close()


@contextmanager
def watched(browser: Browser, width: int = 1400, height: int = 900) -> Iterator[BrowserContext]:
    """Windows whose pages must stay free of errors of their own, which is told when they are closed.

    Not where it happens: an exception in a handler of Playwright's ends the connection to the browser. Whatever serves
    the pages must outlive them: a page that loses its server complains too.
    """
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(f"{message.text} ({message.location['url']})")

    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("console", hear)
    yield context
    context.close()
    assert complaints == []
