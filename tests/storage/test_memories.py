"""Long-term memory outside any run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage import memories
from storage.database import Database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


def test_the_last_write_wins(database: Database) -> None:
    memories.keep(database, "hikes", "last", {"where": "Fern Hollow"})
    memories.keep(database, "hikes", "last", [1, None, "nul \x00"])
    assert memories.recall(database, "hikes", "last") == [1, None, "nul \x00"]


def test_what_is_forgotten_is_gone(database: Database) -> None:
    memories.keep(database, "hikes", "last", 1)
    memories.forget(database, "hikes", "last")
    memories.forget(database, "hikes", "never was")
    assert memories.recall(database, "hikes", "last") is None


def test_a_listing_is_in_order_and_of_one_namespace(database: Database) -> None:
    for namespace, key in (("b", "1"), ("a", "2"), ("a", "1")):
        memories.keep(database, namespace, key, f"{namespace}{key}")
    assert [row.value for row in memories.listing(database)] == ["a1", "a2", "b1"]
    assert [row.key for row in memories.listing(database, "a")] == ["1", "2"]
