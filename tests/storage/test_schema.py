"""Migrations: complete, locked, harmless when killed, and never backwards."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from graphs.engine.checkpoint import Row, RunRecord
from graphs.flow import Policy
from storage import schema
from storage.checkpoints import SqlCheckpointer
from storage.database import Database, DatabaseError, open_database
from storage.engines import make_engine


def tables(url: str) -> set[str]:
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            return set(sa.inspect(connection).get_table_names())
    finally:
        engine.dispose()


def steps_by_run(url: str) -> list[tuple[str, int]]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT thread_id, steps FROM runs ORDER BY thread_id").all()
    engine.dispose()
    return [(thread, steps) for thread, steps in found]


def execute(url: str, *statements: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_migrations_make_exactly_the_tables_of_the_code(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    engine = make_engine(empty_database_url)
    with engine.connect() as connection:
        assert schema.drift(connection) == []
    engine.dispose()


def test_a_drift_would_be_seen(database_url: str) -> None:
    execute(database_url, "ALTER TABLE runs ADD COLUMN colour TEXT", "DROP INDEX ix_runs_root")
    engine = make_engine(database_url)
    with engine.connect() as connection:
        assert len(schema.drift(connection)) == 2
    engine.dispose()


def test_migrating_twice_does_nothing(empty_database_url: str) -> None:
    assert schema.migrate(empty_database_url).behind
    assert not schema.migrate(empty_database_url).behind


def test_tables_of_others_are_not_ours(database_url: str) -> None:
    execute(database_url, "CREATE TABLE procrastinate_jobs (id INTEGER)")
    engine = make_engine(database_url)
    with engine.connect() as connection:
        assert schema.drift(connection) == []
    engine.dispose()


def test_a_newer_database_is_refused(database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")
    for migrate in (True, False):
        with pytest.raises(DatabaseError, match="9999"):
            open_database(database_url, migrate=migrate)
    with pytest.raises(DatabaseError, match="install the newer version"):
        schema.migrate(database_url)


def test_an_older_database_is_refused_when_it_may_not_be_migrated(empty_database_url: str) -> None:
    with pytest.raises(DatabaseError, match="signoff migrate"):
        open_database(empty_database_url, migrate=False)


def test_a_copy_holds_what_the_file_held(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/signoff.db"
    schema.migrate(url)
    execute(url, "INSERT INTO usage VALUES ('2027-01-15', 'U1', 1, 2, 3)")
    engine = make_engine(url)
    copies = {schema.copy_beside(engine, "0001") for _ in range(2)}
    engine.dispose()
    for copy in copies:
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT * FROM usage").fetchall() == [("2027-01-15", "U1", 1, 2, 3)]
    assert len(copies) == 2


def test_a_new_or_current_file_is_not_copied(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/signoff.db"
    schema.migrate(url)
    schema.migrate(url)
    assert {path.name for path in tmp_path.iterdir()} <= {"signoff.db", "signoff.db-wal", "signoff.db-shm"}


def test_a_migration_that_would_orphan_rows_is_taken_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/signoff.db"
    execute(
        url,
        "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
        "CREATE TABLE children (parent INTEGER REFERENCES parents (id))",
    )
    engine = make_engine(url, foreign_keys=False)
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO children VALUES (7)")
    engine.dispose()
    with pytest.raises(DatabaseError, match="1 rows"):
        schema.migrate(url)
    assert tables(url) == {"parents", "children"}


def test_steps_taken_before_they_were_counted_are_counted_once(database_url: str) -> None:
    database = Database(database_url)
    with closing(SqlCheckpointer(database, policy_of=lambda _: Policy(), guards=lambda *_: True)) as store:
        claim = store.begin(RunRecord("run", "flow", 1, "f", "run"), Row("run", 0, "input", "{}", "{}", True))
        child = RunRecord("run/child", "flow", 1, "f", "run", "run")
        store.adopt(claim, child, Row("run/child", 0, "input", "{}", "{}", True))
        saved: list[tuple[str, int, Any]] = [("run/child", 1, "step"), ("run/child", 2, "receipt"), ("run", 1, "step")]
        for thread, step, source in saved:
            store.commit(claim, Row(thread, step, source, "{}", "{}", False))
    database.close()
    before = steps_by_run(database_url)
    execute(database_url, "ALTER TABLE runs DROP COLUMN steps", "UPDATE alembic_version SET version_num = '0001'")
    schema.migrate(database_url)
    assert steps_by_run(database_url) == before == [("run", 2), ("run/child", 0)]


KILL = """
import itertools, os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from storage import schema

numbers = itertools.count(1)

@event.listens_for(Engine, "before_cursor_execute")
def before(*_):
    if next(numbers) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

schema.migrate(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", [4, 9, 16, 30])
def test_a_migration_killed_in_the_middle_has_never_been(empty_database_url: str, at: int) -> None:
    killed = subprocess.run([sys.executable, "-c", KILL, empty_database_url, str(at)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert tables(empty_database_url) == set()
    database = open_database(empty_database_url)
    with database.engine.connect() as connection:
        assert schema.drift(connection) == []
    database.close()


def test_the_revision_says_where_a_database_stands(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.connect() as connection:
        found: Any = schema.revision(connection)
    engine.dispose()
    assert (found.database, found.newer, found.behind) == (found.code, False, False)
