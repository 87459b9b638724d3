"""Plans: which processes live one after the other on one database, and how each of them is hit."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGALRM, SIGKILL
from typing import Any, TypeVar

from tests.crash.forks import Ended, Forks
from tests.crash.stage import Clock, lines
from tests.databases import Server

T = TypeVar("T")
Seen = Callable[[str, str], None]
"""Takes a vendor and what was seen on it."""
Blows = Mapping[str, Any]
"""What becomes of one process: `plan` names blows by point, `after` seconds until it is gone wherever it is."""


@dataclass(frozen=True)
class Place:
    """A database and a folder that the processes of one plan share."""

    url: str
    folder: Path

    def order(self, **more: Any) -> dict[str, Any]:
        return {"url": self.url, "folder": str(self.folder), **more}

    def starts(self) -> list[dict[str, Any]]:
        """What each process noted before it began."""
        return [json.loads(line) for line in lines(self.folder / "starts")]


@dataclass
class Plans:
    """Makes places, by copying a migrated database."""

    memory: Path
    template: Any
    server: Server | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)
    calm: dict[str, Any] = field(default_factory=dict)

    @property
    def vendor(self) -> str:
        return "postgresql" if self.server else "sqlite"

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A fresh one, gone afterwards."""
        folder = self.memory / f"{self.vendor}-{next(self.numbers)}"
        folder.mkdir()
        name = self.server.create(self.template) if self.server else ""
        if self.server:
            url = self.server.url(name)
        else:
            shutil.copyfile(self.template, folder / "signoff.db")
            url = f"sqlite:///{folder / 'signoff.db'}"
        try:
            yield Place(url, folder)
        finally:
            if self.server:
                self.server.drop(name)
            shutil.rmtree(folder)

    def warm_up(self, forks: Forks) -> None:
        """Have a server ready for runs on this vendor, once.

        By the hike planner, for it leaves no thread behind: the threads of parallel nodes stay for good.
        """
        if self.vendor not in forks.warm:
            with self.place() as place:
                forks.warm_up("victim", place.order(close=True))
            forks.warm.add(self.vendor)

    def undisturbed(self, forks: Forks, program: str, **order: Any) -> Any:
        """What a run says that nothing happens to; asked once."""
        key = json.dumps([program, order], sort_keys=True)
        if key not in self.calm:
            self.warm_up(forks)
            with self.place() as place:
                self.calm[key] = said(forks.run(program, place.order(**order)))
        return self.calm[key]


def live(forks: Forks, program: str, place: Place, blows: Sequence[Blows], **order: Any) -> tuple[Any, int]:
    """Processes one after the other, each hit as planned, and a last one that is not: what it says, and the kills."""
    clock, kills = Clock(place.folder / "clock"), 0
    for blow in blows:
        ended = forks.run(program, place.order(**order, **blow))
        if ended.signal == (SIGALRM if "after" in blow else SIGKILL):
            kills += 1
            clock.move()
        else:
            return said(ended), kills  # it had ended before the blow fell
    return said(forks.run(program, place.order(**order))), kills


def said(ended: Ended) -> Any:
    """What a process said that was to end by itself."""
    assert ended.said is not None, f"signal {ended.signal}:\n{Path(ended.log).read_text()[-6000:]}"
    return ended.said


def spread(servers: Sequence[Forks], work: Any, items: Sequence[T]) -> list[Any]:
    """`work(server, item)` for every item, side by side on the servers."""
    with ThreadPoolExecutor(len(servers)) as pool:
        shares = [items[n :: len(servers)] for n in range(len(servers))]
        done = pool.map(lambda pair: [work(pair[0], item) for item in pair[1]], zip(servers, shares, strict=True))
        return [result for share in done for result in share]
