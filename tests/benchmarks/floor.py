"""What the bare database takes for one row of 300 bytes and a commit: nothing durable can be faster alone."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from statistics import median

import psycopg

from tests.benchmarks.places import Places

ROW = "x" * 300


def sqlite(places: Places, rows: int, before: int = 0) -> float:
    """Milliseconds a row with Python's own sqlite3, in a fresh file or one that has had so many rows before."""
    connection = sqlite3.connect(places.file("floor"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, body TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO floor (body) VALUES (?)", (ROW,))
        connection.execute("COMMIT")

    if before:
        _time(insert, before)
    took = _time(insert, rows)
    connection.close()
    return took


def postgresql(places: Places, rows: int) -> float:
    """Milliseconds a row with psycopg on one connection."""
    with psycopg.connect(places.empty()) as connection:
        connection.execute("CREATE TABLE floor (id bigserial PRIMARY KEY, body text)")
        connection.commit()

        def insert() -> None:
            connection.execute("INSERT INTO floor (body) VALUES (%s)", (ROW,))
            connection.commit()

        return _time(insert, rows)


def sync(places: Places, times: int = 100) -> float:
    """Milliseconds the disk takes for 4 KiB: about 0.1 where nobody else wants it."""
    took, block = [], os.urandom(4096)
    with places.file("sync").open("wb", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(block)
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return median(took)


def _time(insert: Callable[[], None], rows: int) -> float:
    began = time.perf_counter()
    for _ in range(rows):
        insert()
    return (time.perf_counter() - began) * 1000 / rows


BY_VENDOR = {"sqlite": sqlite, "postgresql": postgresql}
