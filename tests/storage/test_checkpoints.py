"""What the database adds to the promises of every store: approvals, releases, audit, and a short hot path."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from graphs.engine.checkpoint import EffectRow, Interrupt, Pause, Row, RunRecord
from graphs.engine.errors import StoreFailed, UpdateRefused
from graphs.flow import Field, Policy, Release, Review
from storage import approvals, audit, ledger, runs
from storage.approvals import Actor
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import Heartbeat
from storage.tables import to_micros
from tests.databases import ON_POSTGRES, from_outside
from tests.storage.scene import MINUTE, Clock

KNOWN = {("flow", 1): "print"}
UNDO = Policy(undo_for=timedelta(minutes=2))
SMS = Release(kind="sms", to="+1555", content="text")


class Stage:
    """A store whose reviews can be undone for two minutes, with one run under a claim."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock
        self.heartbeat = Heartbeat(database, interval=3600)
        self.store = SqlCheckpointer(
            database,
            policy_of=lambda flow: UNDO,
            guards=lambda flow, kind: kind != "post",
            heartbeat=self.heartbeat,
        )
        run = RunRecord("run", "flow", 1, "print", "run", who="URAE", team="T1", channel="C1")
        self.store.create(run, row(0, "input", full=True))
        self.claim = self.store.claim("run", KNOWN)

    def ask(self, ident: str = "ask-1", *releases: Release, **kwargs: Any) -> None:
        review = Review(title="Saturday", draft={"text": Field(value="7:00", label="Text")}, releases=list(releases))
        asked = Interrupt(ident, "run", 0, "approve", "0", "review", review.to_json())
        self.store.pause(self.claim, Pause(interrupts=[asked], **kwargs))

    def approve(self, ident: str = "ask-1", version: int = 1) -> None:
        who = Actor("UANA", team="T1")
        outcome = approvals.decide(self.database, ident, actor=who, verdict="approve", version=version)
        assert outcome.result == "settled", outcome

    def due_in(self) -> int | None:
        found = runs.find(self.database, "run")
        assert found is not None
        return None if found.due_at is None else to_micros(found.due_at) - self.clock.now


def row(step: int, source: Any = "step", *, full: bool = False) -> Row:
    return Row("run", step, source, "{}", "{}", full)


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    clock = Clock()
    database = Database(database_url, clock=clock)
    opened = Stage(database, clock)
    yield opened
    opened.heartbeat.close()
    database.close()


def test_an_approval_is_taken_up_only_after_its_undo(stage: Stage) -> None:
    stage.ask("ask-1", SMS)
    stage.approve()
    assert stage.due_in() == 2 * MINUTE
    stage.clock.pass_(2 * MINUTE - 1)
    assert runs.due(stage.database, 10, KNOWN) == []
    stage.clock.pass_(1)
    stage.store.claim("run", KNOWN)
    (approval,) = approvals.of_root(stage.database, "run")
    assert (approval.status, approval.taken) == ("final", True)


@ON_POSTGRES
def test_what_is_asked_and_answered_while_a_claim_waits_for_the_run_is_taken_in(stage: Stage) -> None:
    stage.ask("ask-1", wake_at=stage.clock.now)
    with from_outside(stage.database) as other, from_outside(stage.database) as watch, ThreadPoolExecutor(1) as pool:
        watch.execute("UPDATE approvals SET status = 'superseded'")  # so that there is nothing yet
        watch.commit()
        other.execute("SELECT 1 FROM runs FOR UPDATE")
        claiming = pool.submit(stage.store.claim, "run", KNOWN)
        while watch.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
            assert not claiming.done()
        other.execute("UPDATE approvals SET status = 'answered', answer = '\"yes\"'")
        other.commit()
        loaded = claiming.result(30).loaded
    assert loaded is not None
    assert [write.key for write in loaded.writes] == ["answer:0"]


def test_releasing_waits_for_the_earliest_undo_still_open(stage: Stage) -> None:
    stage.ask("ask-1", SMS)
    stage.approve()
    stage.database.write("run", lambda tx: runs.wake(tx, "run"))
    claim = stage.store.claim("run", KNOWN)
    (approval,) = approvals.of_root(stage.database, "run")
    assert (approval.status, approval.taken) == ("approved", False)
    stage.store.pause(claim, Pause(wake_at=stage.clock.now + 5 * MINUTE))
    assert stage.due_in() == 2 * MINUTE


def test_effects_are_guarded_as_the_flow_says_and_told_in_the_audit(stage: Stage) -> None:
    effects = [
        EffectRow("run", 1, n, "run", kind, "+1555", f"secret text {n}", "{}", "")
        for n, kind in enumerate(("sms", "post"))
    ]
    stage.store.commit(stage.claim, row(1), effects)
    assert [(entry.kind, entry.guarded) for entry in ledger.rows(stage.database, "run")] == [
        ("sms", True),
        ("post", False),
    ]
    told = audit.rows(stage.database, "run")
    assert [entry.kind for entry in told] == ["started", "effect", "effect"]
    assert not any("secret" in str(entry.data) for entry in told)
    assert audit.verify(stage.database) == []


def test_a_question_that_cannot_be_stored_leaves_the_claim_able_to_end_the_run(stage: Stage) -> None:
    with pytest.raises(UpdateRefused):
        stage.ask("ask-1", Release(kind="sms", to="+1555", content="no such part"))
    stage.store.end(stage.claim, "run", "failed", "refused")
    found = runs.find(stage.database, "run")
    assert found is not None and found.ending == "failed"


def test_a_save_that_the_database_refuses_loses_the_claim(stage: Stage) -> None:
    with pytest.raises(StoreFailed):
        stage.store.commit(stage.claim, row(0))
    assert stage.claim.lost


def test_a_step_without_effects_costs_two_statements(stage: Stage) -> None:
    said: list[str] = []
    stage.store.commit(stage.claim, row(1))
    if stage.database.dialect == "sqlite":
        stage.database.write("", lambda tx: tx.connection.set_trace_callback(said.append))
        stage.store.commit(stage.claim, row(2))
        verbs = [text.split()[0] for text in said if not text.startswith("--")]
        assert verbs[-4:] == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]
    assert [each.step for each in stage.store.load("run").rows][:2] == [0, 1]


def test_a_reopened_run_asks_its_review_again_as_a_new_version(stage: Stage) -> None:
    stage.ask("ask-1", SMS, wake_at=stage.clock.now)
    claim = stage.store.claim("run", KNOWN)
    stage.store.end(claim, "run", "failed", "broke")
    stage.clock.pass_(MINUTE)
    stage.store.reopen("run")
    (approval,) = approvals.of_root(stage.database, "run")
    assert (approval.status, approval.draft_version) == ("pending", 2)
    stage.approve(version=2)
    assert audit.verify(stage.database) == []


def test_what_is_forgotten_stays_in_the_audit_without_its_texts(stage: Stage) -> None:
    stage.ask("ask-1", SMS)
    stage.store.delete("run")
    assert [entry.kind for entry in audit.rows(stage.database, "run")] == ["started", "asked", "deleted"]
    stage.store.create(RunRecord("run", "flow", 1, "print", "run"), row(0, "input", full=True))
    assert [entry.kind for entry in audit.rows(stage.database, "run")] == ["started", "asked", "deleted", "started"]
    assert audit.verify(stage.database) == []
    assert approvals.of_root(stage.database, "run") == []
    assert audit.verify(stage.database) == []
