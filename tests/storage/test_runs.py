"""Runs as people and the dispatcher see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from graphs.engine.checkpoint import Interrupt, Pause, Row, RunRecord, Spent
from graphs.engine.errors import ClaimLost, RunEnded, ThreadExists, UnknownThread
from graphs.flow import Policy
from storage import approvals, audit, inbox, runs
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import LEASE, Heartbeat

START = 1_800_000_000_000_000  # 2027-01-15, 08:00 UTC
MINUTE = 60_000_000
KNOWN = {("flow", 1): "print"}


@dataclass
class Clock:
    now: int = START

    def __call__(self) -> int:
        return self.now


@dataclass
class Stage:
    database: Database
    clock: Clock
    store: SqlCheckpointer

    def create(self, name: str, **about: Any) -> None:
        run = RunRecord(name, "flow", 1, "print", name, who="U1")
        self.store.create(run._replace(**about), first(name))
        self.clock.now += 1

    def status(self, name: str) -> str:
        row = runs.find(self.database, name)
        assert row is not None
        return runs.status_of(row, approvals.of_root(self.database, name), KNOWN, self.clock.now)


def first(name: str) -> Row:
    return Row(name, 0, "input", "{}", "{}", True)


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    clock = Clock()
    database = Database(database_url, clock=clock)
    heartbeat = Heartbeat(database, interval=3600)
    store = SqlCheckpointer(
        database, policy_of=lambda flow: Policy(), guards=lambda flow, kind: True, heartbeat=heartbeat
    )
    yield Stage(database, clock, store)
    heartbeat.close()
    database.close()


def test_a_run_starts_and_its_delivery_is_done_together(stage: Stage) -> None:
    stage.database.write("", lambda tx: inbox.receive(tx, "E1", "command", {"text": "Saturday"}))
    run = RunRecord("run", "flow", 1, "print", "run", who="U1")
    stage.database.write("run", lambda tx: runs.start(tx, run, first("run"), "E1"))
    assert runs.due(stage.database, 10, KNOWN) == ["run"]
    assert inbox.open_ones(stage.database) == []


def test_a_start_that_fails_leaves_its_delivery_open(stage: Stage) -> None:
    stage.create("run")
    stage.database.write("", lambda tx: inbox.receive(tx, "E1", "command", {"text": "Saturday"}))
    run = RunRecord("run", "flow", 1, "print", "run")
    with pytest.raises(ThreadExists):
        stage.database.write("run", lambda tx: runs.start(tx, run, first("run"), "E1"))
    assert [delivery.id for delivery in inbox.open_ones(stage.database)] == ["E1"]


def test_what_may_be_claimed_is_due_the_longest_waiting_first(stage: Stage) -> None:
    for name in ("c", "a", "b"):
        stage.create(name)
    stage.create("later", version=2)
    stage.store.claim("a", KNOWN)
    assert runs.due(stage.database, 10, KNOWN) == ["c", "b"]
    assert runs.due(stage.database, 1, KNOWN) == ["c"]
    stage.clock.now += LEASE
    assert runs.due(stage.database, 10, KNOWN) == ["c", "b", "a"]
    assert runs.due(stage.database, 10, {}) == []


def test_unknown_versions_do_not_hide_what_is_known(stage: Stage) -> None:
    for n in range(5):
        stage.create(f"old{n}", version=7)
    stage.create("new")
    assert runs.due(stage.database, 1, KNOWN) == ["new"]


def test_a_run_that_nobody_here_can_take_is_stuck_after_five_minutes(stage: Stage) -> None:
    stage.create("old", fingerprint="another")
    stage.create("new")
    stage.clock.now += 4 * MINUTE
    assert (list(runs.stuck(stage.database, KNOWN)), stage.status("old")) == ([], "queued")
    stage.clock.now += MINUTE
    assert [row.thread_id for row in runs.stuck(stage.database, KNOWN)] == ["old"]
    assert (stage.status("old"), stage.status("new")) == ("stuck", "queued")


def test_how_a_run_is_shown(stage: Stage) -> None:
    stage.create("run")
    shown = [stage.status("run")]
    claim = stage.store.claim("run", KNOWN)
    shown.append(stage.status("run"))
    stage.store.pause(claim, Pause(interrupts=[Interrupt("q1", "run", 0, "ask", "0", "signal", 1)]))
    shown.append(stage.status("run"))
    stage.store.answer("run", "q1", 1)
    shown.append(stage.status("run"))
    claim = stage.store.claim("run", KNOWN)
    stage.store.pause(claim, Pause(wake_at=stage.clock.now + MINUTE, error="busy"))
    shown.append(stage.status("run"))
    stage.clock.now += MINUTE
    claim = stage.store.claim("run", KNOWN)
    stage.store.pause(claim, Pause(error="out of steps"))
    shown.append(stage.status("run"))
    runs.cancel(stage.database, "run", by="U1")
    shown.append(stage.status("run"))
    assert shown == ["queued", "running", "waiting", "queued", "sleeping", "failed", "cancelled"]


def test_cancelling_takes_the_run_from_its_owner_and_is_told(stage: Stage) -> None:
    stage.create("run")
    claim = stage.store.claim("run", KNOWN)
    runs.cancel(stage.database, "run", by="U7")
    with pytest.raises(ClaimLost):
        stage.store.commit(claim, Row("run", 1, "step", "{}", "{}", False))
    assert [row.kind for row in audit.rows(stage.database, "run")] == ["started", "ended"]
    assert audit.rows(stage.database, "run")[-1].data["by"] == "U7"
    assert audit.verify(stage.database) == []
    with pytest.raises(RunEnded):
        runs.cancel(stage.database, "run", by="U7")
    with pytest.raises(UnknownThread):
        runs.cancel(stage.database, "ghost", by="U7")


def test_recent_runs_are_the_newest_roots(stage: Stage) -> None:
    for name, who in (("a", "U1"), ("b", "U2"), ("c", "U1")):
        stage.create(name, who=who)
    claim = stage.store.claim("a", KNOWN)
    stage.store.adopt(claim, RunRecord("a/child", "inner", 1, "print", "a", "a"), first("a/child"))
    assert [row.thread_id for row in runs.recent(stage.database)] == ["c", "b", "a"]
    assert [row.thread_id for row in runs.recent(stage.database, limit=1, who="U1")] == ["c"]


def test_what_was_spent_counts_for_the_person_and_the_day(stage: Stage) -> None:
    stage.create("a", who="U1")
    stage.create("b", who="U2")
    one, two = stage.store.claim("a", KNOWN), stage.store.claim("b", KNOWN)
    stage.store.record(one, [], Spent(1, 100, 10))
    stage.store.record(one, [], Spent(2, 200, 20))
    stage.store.record(two, [], Spent(1, 1, 1))
    assert runs.usage(stage.database, "2027-01-15") == (4, 332)
    assert runs.usage(stage.database, "2027-01-15", who="U1") == (3, 330)
    assert runs.usage(stage.database, "2027-01-16") == (0, 0)


def test_waking_only_ever_lowers_the_time(stage: Stage) -> None:
    stage.create("run")
    claim = stage.store.claim("run", KNOWN)
    stage.store.pause(claim, Pause(wake_at=stage.clock.now + MINUTE))
    assert runs.due(stage.database, 10, KNOWN) == []
    stage.database.write("run", lambda tx: runs.wake(tx, "run"))
    assert runs.due(stage.database, 10, KNOWN) == ["run"]
