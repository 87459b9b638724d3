"""Model calls and tokens a run and a day may use, read from what was recorded."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from graphs.ports import OverBudget
from storage import runs
from storage.database import Database
from storage.tables import from_micros


class StoredBudget:
    """Implements `graphs.ports.Budget` over the run's own row and the day's sums."""

    def __init__(self, database: Database, *, calls_a_run: int, tokens_a_run: int, calls_a_day: int) -> None:
        self._database = database
        self._calls_a_run = calls_a_run
        self._tokens_a_run = tokens_a_run
        self._calls_a_day = calls_a_day

    def allow(self, thread_id: str) -> None:
        """See `Budget.allow`."""
        run = runs.find(self._database, thread_id)
        root = runs.find(self._database, run.root) if run else None
        if root is None:
            return
        if root.calls >= self._calls_a_run:
            raise OverBudget(f"The run has used its {self._calls_a_run} model calls.")
        if root.input_tokens + root.output_tokens >= self._tokens_a_run:
            raise OverBudget(f"The run has used its {self._tokens_a_run:,} tokens.")
        now = from_micros(self._database.now())
        calls, _tokens = runs.usage(self._database, now.date().isoformat())
        if calls >= self._calls_a_day:
            raise OverBudget(f"Today's {self._calls_a_day} model calls are used up.", _midnight(now))


def _midnight(now: datetime) -> datetime:
    return datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
