"""A scene for each test: the whole bot on a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bot.scene import Scene


@pytest.fixture
def new_scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Make scenes with settings of one's own; all are closed at the end."""
    made: list[Scene] = []

    def make(**settings: Any) -> Scene:
        made.append(Scene(tmp_path, **settings))
        return made[-1]

    yield make
    for scene in reversed(made):
        scene.close()


@pytest.fixture
def scene(new_scene: Callable[..., Scene]) -> Scene:
    """The bot with a model that passes at once."""
    return new_scene()
