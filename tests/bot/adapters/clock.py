"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class StillClock:
    """Thursday, 3 December 2026, 17:20:30 UTC, and later as told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 12, 3, 17, 20, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, **by: float) -> None:
        self.now += timedelta(**by)

    def after(self, **by: float) -> datetime:
        return self.now + timedelta(**by)
