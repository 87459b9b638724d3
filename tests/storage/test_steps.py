"""Plain steps of many runs: saved together, each under its own fence, refused alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs.engine.checkpoint import Claim, Row, RunRecord
from graphs.engine.errors import ClaimLost, StoreFailed
from graphs.flow import Policy
from storage.batches import Unclear
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import Heartbeat
from storage.saves import Save
from storage.statements import Transaction, prepare
from storage.steps import Step
from tests.databases import ON_POSTGRES, cut_writer

KNOWN = {("flow", 1): "print"}
_WITH_STEPS = prepare("SELECT thread_id FROM checkpoints WHERE step = 1")
CHECKPOINT = Row("", 1, "step", '{"tasks":[]}', '{"set":{"text":"caf\\u00e9"}}', False, '{"ran":[]}', "UANA")


@dataclass
class Stage:
    database: Database
    store: SqlCheckpointer
    names: Iterator[int] = field(default_factory=count)

    def claims(self, number: int) -> list[Claim]:
        return [self.claim(f"run-{next(self.names):05}") for _ in range(number)]

    def claim(self, name: str) -> Claim:
        self.store.create(RunRecord(name, "flow", 1, "print", name), Row(name, 0, "input", "{}", "{}", True))
        return self.store.claim(name, KNOWN)

    def held(self) -> Held:
        return Held(self.database)

    def steps_of(self, claim: Claim) -> list[Row]:
        return [row for row in self.store.history(claim.thread_id)[::-1] if row.step]


class Held:
    """What is submitted while the writer is kept busy, and so comes in one batch."""

    def __init__(self, database: Database) -> None:
        self._entered, self._opened = threading.Event(), threading.Event()
        self._gate = database.writer.submit("", self._wait)
        self._entered.wait()
        self._writer = database.writer
        self.saves: list[Save[Any]] = []

    def _wait(self, _tx: Any) -> None:
        self._entered.set()
        self._opened.wait()

    def step(self, claim: Claim, step: int = 1) -> None:
        with claim.turn() as rev:
            row = CHECKPOINT._replace(thread_id=claim.thread_id, step=step)
            self.saves.append(self._writer.submit(claim.thread_id, Step(claim.thread_id, rev, claim.id, row), True))

    def outcomes(self) -> list[Any]:
        self._opened.set()
        self._gate.result()
        return [_outcome(save) for save in self.saves]


def _outcome(save: Save[Any]) -> Any:
    try:
        return save.result()
    except Exception as error:
        return type(error)


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    database = Database(database_url)
    heartbeat = Heartbeat(database, interval=3600)
    yield Stage(
        database,
        SqlCheckpointer(database, policy_of=lambda _: Policy(), guards=lambda *_: True, heartbeat=heartbeat),
    )
    heartbeat.close()
    database.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 129])))
def test_any_number_of_steps_is_saved_whole(stage: Stage, number: int) -> None:
    claims, held = stage.claims(number), stage.held()
    for claim in claims:
        held.step(claim)
    times = held.outcomes()
    assert [stage.steps_of(claim) for claim in claims] == [
        [CHECKPOINT._replace(thread_id=claim.thread_id, at=at)] for claim, at in zip(claims, times, strict=True)
    ]
    for claim in claims:  # the fence has counted up by one: the next save of the same owner is taken
        stage.store.end(claim, claim.thread_id, "finished")


@pytest.mark.parametrize("fault", [{"id": "somebody who lost it"}, {"rev": 7}])
@pytest.mark.parametrize("late", [0, 3, 6])
def test_a_late_owner_among_them_is_refused_alone(stage: Stage, late: int, fault: dict[str, Any]) -> None:
    claims, held = stage.claims(7), stage.held()
    for name, value in fault.items():
        setattr(claims[late], name, value)
    for claim in claims:
        held.step(claim)
    outcomes = held.outcomes()
    assert [outcome is ClaimLost for outcome in outcomes] == [place == late for place in range(7)]
    assert [len(stage.steps_of(claim)) for claim in claims] == [int(place != late) for place in range(7)]


def test_a_step_that_is_there_already_is_refused_alone(stage: Stage) -> None:
    claims, held = stage.claims(3), stage.held()
    for claim, step in zip(claims, (1, 0, 1), strict=True):
        held.step(claim, step)
    assert [outcome is StoreFailed for outcome in held.outcomes()] == [False, True, False]


def test_two_steps_of_one_tree_are_saved_in_the_order_of_their_revs(stage: Stage) -> None:
    (one, other), held = stage.claims(2), stage.held()
    for claim, step in ((one, 1), (other, 1), (one, 2), (one, 3)):
        held.step(claim, step)
    assert StoreFailed not in held.outcomes()
    assert [[row.step for row in stage.steps_of(claim)] for claim in (one, other)] == [[1, 2, 3], [1]]


def test_other_saves_between_steps_keep_their_place(stage: Stage) -> None:
    (first, middle, last), held = stage.claims(3), stage.held()
    seen: list[str] = []
    held.step(first)
    held.saves.append(stage.database.writer.submit(middle.thread_id, lambda tx: seen.extend(_with_steps(tx))))
    held.step(last)
    assert StoreFailed not in held.outcomes()
    assert seen == [first.thread_id]


def _with_steps(tx: Transaction) -> list[str]:
    return [thread for (thread,) in tx.run(_WITH_STEPS).fetchall()]


# -- a step alone -----------------------------------------------------------------------------------------------------


@ON_POSTGRES
def test_a_connection_dropped_before_a_lone_step_costs_nothing(stage: Stage) -> None:
    (claim,) = stage.claims(1)
    cut_writer(stage.database)
    stage.store.commit(claim, CHECKPOINT._replace(thread_id=claim.thread_id))
    assert len(stage.steps_of(claim)) == 1


@ON_POSTGRES
def test_a_connection_closed_on_our_side_costs_nothing_either(stage: Stage) -> None:
    (claim,) = stage.claims(1)
    held: list[Any] = []
    stage.database.write("~", lambda tx: held.append(tx.connection))
    held[0].close()
    stage.store.commit(claim, CHECKPOINT._replace(thread_id=claim.thread_id))
    assert len(stage.steps_of(claim)) == 1


class Cut(Step):
    """A step whose connection breaks while it is being saved: the server may have it or not."""

    def __call__(self, tx: Any) -> int:
        at = super().__call__(tx)
        tx.connection.close()
        tx.connection.execute("SELECT 1")
        return at


@ON_POSTGRES
def test_a_connection_dropped_within_a_lone_step_leaves_it_unclear(stage: Stage) -> None:
    (claim,) = stage.claims(1)
    row = CHECKPOINT._replace(thread_id=claim.thread_id)
    with pytest.raises(Unclear, match="look at the database"):
        stage.database.write(claim.thread_id, Cut(claim.thread_id, claim.rev, claim.id, row))
    assert len(stage.steps_of(claim)) == 1  # it had been committed by itself
