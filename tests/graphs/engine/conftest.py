"""The store that the engine's tests run on: memory, and SQLite for those that make only a few steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from graphs.engine.checkpoint import Checkpointer, Claim, EffectRow
from graphs.flow import Policy
from storage import ledger
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import Heartbeat
from tests.databases import migrated
from tests.graphs.engine.bench import Bench, Clock, Outbox, memory_bench

settings.register_profile("patient", deadline=None)  # how long an example takes says nothing about the engine
settings.load_profile("patient")


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A store with its clock and its performer."""
    if request.param == "memory":
        yield memory_bench()
        return
    with migrated("sqlite", request, tmp_path) as url:
        yield from _in_database(url)


@pytest.fixture
def store(bench: Bench) -> Checkpointer:
    return bench.store


@pytest.fixture(scope="session")
def new_bench() -> Callable[[], Bench]:
    """For laws, which need a fresh store for every example."""
    return memory_bench


def _in_database(url: str) -> Iterator[Bench]:
    clock = Clock()
    database = Database(url, clock=clock)
    heartbeat = Heartbeat(database, interval=3600)  # no lease is renewed while a test lets it lapse
    store = SqlCheckpointer(
        database, policy_of=lambda flow: Policy(), guards=lambda flow, kind: False, heartbeat=heartbeat
    )

    def settle(claim: Claim | None, effect: EffectRow, status: Any, detail: str) -> None:
        if claim is not None and effect.status == "pending":
            sending = ledger.begin(database, claim, effect.key)
            assert sending is not None
            if status != "sending":
                result = ledger.Result(status, ref=effect.key, detail=detail)
                assert ledger.outcome(database, effect.key, sending.attempt, result)
            return
        assert ledger.outcome(database, effect.key, 1, ledger.Result(status, ref=effect.key, detail=detail))

    yield Bench(store, clock, Outbox(settle))
    heartbeat.close()
    database.close()
