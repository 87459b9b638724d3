"""A scene on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.scene import Clock, Scene, fresh


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Storage with a clock moved by hand."""
    clock = Clock()
    database = fresh(database_url, clock)
    yield Scene(database, clock)
    database.close()
