"""Fork servers, and plans with a database and a folder each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.forks import Forks
from tests.crash.plans import Plans, Seen
from tests.databases import VENDORS, Server, make_directory

SEEN = "seen in a crash test"


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A folder where files cost little: these tests end processes, not machines."""
    folder = make_directory()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def forks(memory: Path) -> Iterator[Forks]:
    """A server that has imported everything."""
    server = Forks(memory / "log")
    yield server
    server.close()


@pytest.fixture(scope="session")
def second_forks(memory: Path) -> Iterator[Forks]:
    """Another one, for the long runs."""
    server = Forks(memory / "second-log")
    yield server
    server.close()


@pytest.fixture(scope="session")
def plans_on(memory: Path, request: pytest.FixtureRequest) -> Callable[[str], Plans]:
    """Makes plans on a vendor's databases."""
    made: dict[str, Plans] = {}

    def plans(vendor: str) -> Plans:
        if vendor not in made:
            if vendor == "sqlite":
                made[vendor] = Plans(memory, request.getfixturevalue("sqlite_template"))
            else:
                server: Server = request.getfixturevalue("postgres")
                made[vendor] = Plans(memory, request.getfixturevalue("postgres_template"), server)
        return made[vendor]

    return plans


@pytest.fixture
def seen(request: pytest.FixtureRequest) -> Seen:
    """Keep numbers that say how much a test has seen; they stand at the end of what pytest prints."""
    return lambda vendor, what: request.node.user_properties.append((SEEN, f"{request.node.name}: {what}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what `seen` kept."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    for report in reports:
        for name, what in getattr(report, "user_properties", ()):
            if name == SEEN and report.when == "call":
                terminalreporter.write_line(what)


@pytest.fixture(params=VENDORS)
def plans(request: pytest.FixtureRequest, plans_on: Callable[[str], Plans]) -> Plans:
    """Plans on each vendor in turn."""
    return plans_on(request.param)
