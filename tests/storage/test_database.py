"""Opening a database, reading in snapshots, and the errors people can act upon."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, select

from graphs.engine.errors import StoreFailed
from graphs.engine.values import dump
from storage.database import Database, DatabaseError, open_database
from storage.statements import prepare
from storage.tables import MemoryRow, from_micros, insert_into

_INSERT = prepare(insert_into(MemoryRow))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


def put(database: Database, key: str, value: Any = 1) -> None:
    text = dump(value)
    database.write("", lambda tx: tx.run(_INSERT, namespace="n", key=key, value=text, at=tx.now))


def test_reading_sees_one_moment(database: Database) -> None:
    put(database, "first")
    with database.read() as session:
        before = session.exec(select(MemoryRow.key)).all()
        put(database, "second")
        assert session.exec(select(MemoryRow.key)).all() == before == ["first"]
    with database.look() as tx:
        assert len(tx.run(prepare("SELECT key FROM memories")).fetchall()) == 2


def test_writing_where_one_reads_is_refused(database: Database) -> None:
    with pytest.raises(StoreFailed), database.read() as session:
        session.add(MemoryRow(namespace="n", key="k", value=1, at=from_micros(0)))
        session.flush()
    put(database, "k")


@pytest.mark.parametrize("text", ["nul \x00 in it", "half a pair \ud83d", "caf\u00e9 \U0001f3d4"])
def test_any_text_survives_in_json(database: Database, text: str) -> None:
    put(database, "k", {"text": text, text: 1})
    with database.read() as session:
        assert session.exec(select(MemoryRow)).one().value == {"text": text, text: 1}


def test_times_are_aware(database: Database) -> None:
    put(database, "k")
    with database.read() as session:
        at = session.exec(select(MemoryRow)).one().at
    assert at.utcoffset() is not None
    assert abs((at - from_micros(database.now())).total_seconds()) < 60


def test_the_engine_does_not_lose_updates(database: Database) -> None:
    put(database, "count", 0)

    def add() -> None:
        for _ in range(10):
            with Session(database.engine) as session:
                row = session.exec(select(MemoryRow).with_for_update()).one()
                row.value += 1
                session.commit()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        assert session.exec(select(MemoryRow)).one().value == 40


def test_the_directory_is_made(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path}/not/there/yet/signoff.db").close()
    assert (tmp_path / "not/there/yet/signoff.db").exists()


def test_sqlite_is_set_up_to_keep_what_it_says(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/signoff.db")
    with database.engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("nonsense", "no database address"),
        ("mysql://host/name", "SQLite or PostgreSQL"),
        ("sqlite://", "needs a file"),
        ("sqlite:////proc/nowhere/signoff.db", "cannot be made"),
        ("sqlite:////proc/signoff.db", "cannot be opened"),
        ("postgresql://postgres@/x?host=/nowhere", "cannot be reached"),
    ],
)
def test_what_cannot_be_opened_says_what_to_do(url: str, advice: str) -> None:
    with pytest.raises(DatabaseError, match=advice):
        open_database(url)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Rae, " * 500)
    with pytest.raises(DatabaseError, match="no SQLite database"):
        open_database(f"sqlite:///{path}")
    assert path.read_text() == "Dear Rae, " * 500


def test_a_missing_postgresql_database_is_named(postgres: Any) -> None:
    with pytest.raises(DatabaseError, match="does not exist"):
        open_database(postgres.url("nowhere"))


def test_a_full_disk_fails_the_save_and_not_the_next(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/signoff.db")
    pages = database.write("", lambda tx: tx.connection.execute("PRAGMA page_count").fetchone()[0])
    database.write("", lambda tx: tx.connection.execute(f"PRAGMA max_page_count={pages + 2}").fetchone())
    with pytest.raises(StoreFailed, match="make room"):
        put(database, "big", "x" * 100_000)
    put(database, "small")
    database.close()


OPEN = """
import os, sys
from storage.database import open_database

reading, writing = os.pipe()
children = []
for _ in range(6):
    if not (child := os.fork()):
        os.close(writing)
        os.read(reading, 1)  # returns when the parent lets all of them go at once
        open_database(sys.argv[1]).close()
        os._exit(0)
    children.append(child)
os.close(writing)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def test_many_processes_open_a_fresh_database_at_once(empty_database_url: str) -> None:
    command = [sys.executable, "-c", OPEN, empty_database_url]
    opened = subprocess.run(command, check=False, capture_output=True)
    assert (opened.returncode, opened.stderr) == (0, b"")


ADD = """
import os, sys
from storage.database import Database
from storage.statements import prepare

read = prepare("SELECT value FROM memories WHERE key = 'count' FOR UPDATE")
change = prepare("UPDATE memories SET value = :text WHERE key = 'count'")

def add(tx):
    value = int(tx.run(read).fetchone()[0])
    tx.run(change, text=str(value + 1))

children = []
for _ in range(6):
    if not (child := os.fork()):
        database = Database(sys.argv[1])
        for _ in range(20):
            database.write("count", add)
        database.close()
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def test_no_update_of_many_processes_is_lost(database: Database, database_url: str) -> None:
    put(database, "count", 0)
    added = subprocess.run([sys.executable, "-c", ADD, database_url], check=False, capture_output=True)
    assert (added.returncode, added.stderr) == (0, b"")
    with database.read() as session:
        assert session.exec(select(MemoryRow)).one().value == 120
