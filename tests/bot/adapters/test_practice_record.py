"""The record of the practice API survives and is shared."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bot.adapters.practice import Practice
from bot.adapters.practice_record import Record
from tests.bot.adapters.clock import StillClock

CHILD = """
import sys
from pathlib import Path
from bot.adapters.practice import Practice
client = Practice(Path(sys.argv[1])).client()
for number in range(25):
    body = {"to": "+15035550134", "body": "x", "key": f"{sys.argv[2]}/{number}"}
    assert client.post("/messages", json=body).status_code == 201
"""


def test_entries_outlive_the_object_and_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "practice.db"
    first, clock = Record(path), StillClock()
    for number in range(3):
        first.add(kind="sms", to="+1", body=f"caf\u00e9 {number} \U0001f97e\x00", at=clock(), key="k", sid=str(number))
    again = Record(path).entries()
    assert [entry["sid"] for entry in again] == ["0", "1", "2"]
    assert again[0]["body"] == "caf\u00e9 0 \U0001f97e\x00"


def test_several_processes_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "practice.db"
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(n)]) for n in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert len({entry["key"] for entry in Practice(path).outbox()}) == 75


def test_without_a_file_every_object_has_its_own() -> None:
    one, two = Record(None), Record(None)
    one.add(kind="sms", to="+1", body="b", at=StillClock()(), key="k", sid="s")
    assert (len(one.entries()), len(two.entries())) == (1, 0)


def test_a_file_may_be_made_by_several_at_the_same_instant(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def make(round_: int) -> Record:
        barrier.wait()
        return Record(tmp_path / f"{round_}.db")

    with ThreadPoolExecutor(4) as pool:
        for round_ in range(50):
            records = list(pool.map(make, [round_] * 4))
            assert [record.entries() for record in records] == [[]] * 4
