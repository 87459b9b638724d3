"""Leases: kept alive while a process lives, taken over when it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from graphs.engine.checkpoint import Claim, Row, RunRecord
from graphs.engine.errors import ClaimLost, NotNow
from graphs.flow import Policy
from storage import runs
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import LEASE, Heartbeat

KNOWN = {("flow", 1): "print"}


@dataclass
class Clock:
    now: int = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now


@dataclass
class Stage:
    database: Database
    clock: Clock
    heartbeat: Heartbeat
    store: SqlCheckpointer

    def claim(self, thread: str = "run") -> Claim:
        run = RunRecord(thread, "flow", 1, "print", thread)
        self.store.create(run, Row(thread, 0, "input", "{}", "{}", True))
        return self.store.claim(thread, KNOWN)


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    clock = Clock()
    database = Database(database_url, clock=clock)
    heartbeat = Heartbeat(database, interval=3600)
    store = SqlCheckpointer(
        database, policy_of=lambda flow: Policy(), guards=lambda flow, kind: True, heartbeat=heartbeat
    )
    yield Stage(database, clock, heartbeat, store)
    heartbeat.close()
    database.close()


def test_a_beat_moves_the_lease_on_and_leaves_rev_alone(stage: Stage) -> None:
    claim = stage.claim()
    for _ in range(3):
        stage.clock.now += LEASE - 1
        stage.heartbeat.beat()
    with pytest.raises(NotNow):
        stage.store.claim("run", KNOWN)
    stage.store.commit(claim, Row("run", 1, "step", "{}", "{}", False))


def test_a_lease_without_a_beat_lapses(stage: Stage) -> None:
    first = stage.claim()
    stage.clock.now += LEASE - 1
    assert runs.due(stage.database, 10, KNOWN) == []
    stage.clock.now += 1
    assert runs.due(stage.database, 10, KNOWN) == ["run"]
    second = stage.store.claim("run", KNOWN)
    stage.heartbeat.beat()
    assert (first.lost, second.lost) == (True, False)
    with pytest.raises(ClaimLost):
        stage.store.commit(first, Row("run", 1, "step", "{}", "{}", False))


def test_a_cancelled_run_is_told_to_its_owner_by_the_next_beat(stage: Stage) -> None:
    claims = [stage.claim(name) for name in ("a", "b", "c")]
    runs.cancel(stage.database, "b", by="U1")
    stage.heartbeat.beat()
    assert [claim.lost for claim in claims] == [False, True, False]


def test_a_claim_that_was_given_up_is_not_kept_alive(stage: Stage) -> None:
    claim = stage.claim()
    claim.lost = True
    stage.heartbeat.beat()
    claim.lost = False
    stage.heartbeat.beat()
    stage.clock.now += LEASE
    assert runs.due(stage.database, 10, KNOWN) == ["run"]


def test_the_thread_beats_by_itself(database_url: str) -> None:
    beaten = threading.Event()

    class Counted(Heartbeat):
        def beat(self) -> None:
            super().beat()
            beaten.set()

    database = Database(database_url)
    heartbeat = Counted(database, interval=0.01)
    store = SqlCheckpointer(
        database, policy_of=lambda flow: Policy(), guards=lambda flow, kind: True, heartbeat=heartbeat
    )
    store.create(RunRecord("run", "flow", 1, "print", "run"), Row("run", 0, "input", "{}", "{}", True))
    store.claim("run", KNOWN)
    before = runs.find(database, "run")
    beaten.clear()
    assert beaten.wait(30)
    after = runs.find(database, "run")
    store.close()
    database.close()
    assert before and after and before.lease_until and after.lease_until
    assert after.lease_until > before.lease_until
