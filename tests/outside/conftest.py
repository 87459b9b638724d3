"""The programs from outside, each started once for a test run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from llmock.testing import LLMockServer

from tests.bot.scene import Scene
from tests.outside.aimock import Aimock
from tests.outside.npm import installed
from tests.outside.programs import free_port, running

# aimock does not start strictly with no fixture at all; this one fits no request.
NOTHING = {"fixtures": [{"match": {"systemMessage": "~nobody~"}, "response": {"content": ""}}]}


@pytest.fixture(scope="session")
def packages() -> Path:
    """The npm packages, installed."""
    return installed()


@pytest.fixture(scope="session")
def aimock_server(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """aimock, which answers what it has a fixture for and refuses everything else."""
    folder, port = tmp_path_factory.mktemp("aimock"), free_port()
    (folder / "none.json").write_text(json.dumps(NOTHING), "utf-8")
    script = packages / "@copilotkit/aimock/dist/cli.js"
    given = ("--port", str(port), "--fixtures", str(folder / "none.json"), "--strict")
    with running(script, *given, port=port, log=folder / "aimock.log") as url:
        yield url


@pytest.fixture
def aimock(aimock_server: str) -> Iterator[Aimock]:
    """aimock with nothing to say yet."""
    with Aimock(aimock_server) as aimock:
        aimock.reset()
        yield aimock


@pytest.fixture(scope="session")
def llmock_server() -> Iterator[LLMockServer]:
    """llmock, started by hand, for its pytest plugin would be loaded for every other test too."""
    with LLMockServer() as server:
        yield server


@pytest.fixture
def llmock(llmock_server: LLMockServer) -> LLMock:
    """llmock with nothing to say yet."""
    return LLMock(llmock_server).reset()


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
