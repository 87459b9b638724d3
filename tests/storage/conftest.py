"""A scene on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage.database import Database
from tests.storage.scene import Clock, Scene


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Storage with a clock moved by hand."""
    clock = Clock()
    database = Database(database_url, clock=clock)
    yield Scene(database, clock)
    database.close()


@pytest.fixture
def living(database_url: str) -> Iterator[Scene]:
    """Storage with the database's own clock."""
    database = Database(database_url)
    yield Scene(database)
    database.close()
