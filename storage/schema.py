"""The schema's revision: brings a database up to the code under a lock, and refuses one that is newer."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlmodel import SQLModel

from storage.engines import DatabaseError, driver_connection, make_engine, told
from storage.tables import Json, Moment

LOCK = 7_305_926_418_127_730_000  # any number that no other program locks in the same database


def _render(kind: str, value: Any, _context: Any) -> str | bool:
    """Columns as what the database stores; otherwise old revisions would change with the types of today."""
    if kind == "type" and isinstance(value, Json):
        return "sa.Text()"
    if kind == "type" and isinstance(value, Moment):
        return "sa.BigInteger()"
    if kind == "type" and isinstance(value, sa.types.TypeDecorator):
        return "sa.String()"
    return False


def _is_ours(name: str | None, kind: str, _parents: Mapping[str, str | None]) -> bool:
    return kind != "table" or name in SQLModel.metadata.tables


OPTIONS: dict[str, Any] = {
    "render_as_batch": True,
    "compare_type": True,
    "compare_server_default": True,
    "render_item": _render,
    "include_name": _is_ours,
}


@dataclass(frozen=True, slots=True)
class Revision:
    """The database's revision and the newest this code knows; `behind` and `newer` compare them."""

    database: str | None
    code: str | None
    newer: bool

    @property
    def behind(self) -> bool:
        """Whether revisions are still to be run."""
        return not self.newer and self.database != self.code


def revision(connection: sa.Connection) -> Revision:
    """Where the database stands."""
    scripts = ScriptDirectory.from_config(_config())
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    return Revision(found, scripts.get_current_head(), found is not None and found not in known)


def migrate(url: str) -> Revision:
    """Bring the database up to the code; returns where it stood before. A SQLite file is copied beside itself first.

    One transaction under a lock: a process killed in the middle leaves everything as it was. Raises `DatabaseError`.
    """
    engine = make_engine(url, foreign_keys=False)
    try:
        with told():
            _copy_before(engine)
            with _locked(engine) as connection:
                before = revision(connection)
                _refuse_newer(before)
                if before.behind:
                    command.upgrade(_config(connection), "head")
                    _check_foreign_keys(connection)
                return before
    finally:
        engine.dispose()


def check(engine: sa.Engine) -> None:
    """Refuse a database that this code cannot work with, without changing it."""
    with told(), engine.connect() as connection:
        found = revision(connection)
    _refuse_newer(found)
    if found.behind:
        raise DatabaseError("The database is older than this version of Signoff: run `signoff migrate`.")


def drift(connection: sa.Connection) -> list[Any]:
    """What the tables in the code and in the database differ in; [] if in nothing."""
    context = MigrationContext.configure(connection, opts={**OPTIONS, "target_metadata": SQLModel.metadata})
    return list(compare_metadata(context, SQLModel.metadata))


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", "storage:migrations")
    config.attributes["connection"] = connection
    return config


@contextlib.contextmanager
def _locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that only one process is in; on SQLite beginning it (IMMEDIATE) is the lock."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        yield connection


def _refuse_newer(found: Revision) -> None:
    if found.newer:
        raise DatabaseError(
            f"The database is at revision {found.database}, which this version of Signoff does not know: "
            "install the newer version, or restore the copy made before it migrated."
        )


def _copy_before(engine: sa.Engine) -> None:
    """Keep a SQLite file as it is before revisions change it."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        found = revision(connection)
    if found.database is not None and found.behind:
        copy_beside(engine, found.database)


def copy_beside(engine: sa.Engine, label: str) -> Path:
    """Copy a SQLite database, whole and consistent, into a file beside it; other processes may go on using it."""
    path = Path(str(engine.url.database))
    copy = path.with_name(
        f"{path.name}.{label}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
    )
    with engine.connect() as connection:
        driver_connection(connection).execute("VACUUM INTO ?", (str(copy),))
    return copy


def _check_foreign_keys(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite" and (
        broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    ):
        raise DatabaseError(f"Migrating would leave {len(broken)} rows without their parent; nothing was changed.")
