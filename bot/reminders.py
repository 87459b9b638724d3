"""The scheduler: one sweep per process over due times in our own tables; any number of processes may sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from bot.parts import Parts
from storage import deadlines, inbox, switches
from storage.deadlines import Reminder
from storage.tables import from_micros

log = structlog.get_logger(__name__)
FORGET_AFTER = timedelta(days=2)  # Slack redelivers within minutes
Job = Callable[[], object]


class Sweeper:
    """Reminds, expires, looks up lost answers, wakes what is due and works off the inbox, every few seconds."""

    def __init__(self, parts: Parts, remind: Callable[[Reminder], None], jobs: Sequence[Job] = ()) -> None:
        self._parts = parts
        self._send = remind
        self._jobs: Sequence[Job] = (self._expire, self._remind, self._look_up, *jobs, self._tidy)
        self._scheduler = BackgroundScheduler(timezone=UTC)

    def start(self) -> None:
        """Sweep now and then every `sweep_seconds`."""
        self._scheduler.add_job(
            self.sweep,
            "interval",
            seconds=self._parts.settings.sweep_seconds,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._scheduler.start()

    def stop(self) -> None:
        """Finish the sweep at hand."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def sweep(self) -> None:
        """One sweep; what fails is left to the next one."""
        for job in self._jobs:
            try:
                job()
            except Exception:
                log.exception("sweep failed", job=getattr(job, "__name__", "job"))
        self._parts.executor.after_commit("")

    def _expire(self) -> None:
        for root in deadlines.expire_due(self._parts.database):
            log.info("run expired", thread_id=root)

    def _remind(self) -> None:
        for reminder in deadlines.remind_due(self._parts.database):
            self._send(reminder)

    def _look_up(self) -> None:
        self._parts.performer.look_up_due()

    def _tidy(self) -> None:
        database = self._parts.database
        before = from_micros(database.now()) - FORGET_AFTER
        database.write("~inbox", lambda tx: inbox.forget(tx, before))
        switches.mark_sweep(database)
