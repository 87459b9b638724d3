"""Everything one process is made of, joined once in `bot.app`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from bot.dispatch import Executor
from bot.effects import LedgerPerformer
from bot.people import People
from bot.settings import Settings
from graphs.catalog import Catalog, UnknownFlow
from graphs.engine import Runner
from graphs.engine.checkpoint import RunRecord
from graphs.flow import Flow, Policy
from graphs.ports import Deps
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.tables import RunRow


@dataclass(frozen=True, slots=True)
class Parts:
    """The settings, the store, the runner and what stands around them."""

    settings: Settings
    database: Database
    checkpointer: SqlCheckpointer
    runner: Runner
    performer: LedgerPerformer
    executor: Executor
    deps: Deps
    people: People
    practice: httpx2.Client
    catalog: Catalog

    def flow_of(self, run: RunRow | RunRecord) -> Flow | None:
        """The flow and version a run was started with, or its newest; None where this process has none of that name."""
        with suppress(UnknownFlow):
            return self.catalog.flow(run.flow, run.version)
        with suppress(UnknownFlow):
            return self.catalog.latest(run.flow)
        return None

    def command_of(self, run: RunRow | RunRecord) -> str:
        """The command a run was started with."""
        flow = self.flow_of(run)
        return flow.command if flow else f"/{run.flow.replace('_', '-')}"

    def can_read(self, run: RunRow) -> bool:
        """Whether this process has the structure a run was started with, and so knows the types of its state."""
        return self.runner.known.get((run.flow, run.version)) == run.fingerprint

    def close(self) -> None:
        """Let everything go."""
        self.executor.stop()
        self.checkpointer.close()
        self.database.close()
        self.practice.close()


def policy_of(flow: Flow, settings: Settings) -> Policy:
    """A flow's policy as the settings have it."""
    changed: dict[str, Any] = {
        "allow_requester": flow.policy.allow_requester or settings.allow_self_approval,
        "remind_after": tuple(settings.remind_after),
        "expires_after": settings.expires_after or flow.policy.expires_after,
        "undo_for": max(settings.undo_for, flow.policy.undo_for),
    }
    return replace(flow.policy, **changed)
