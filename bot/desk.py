"""What listeners and windows work with: the parts, Slack, and a pool of our own threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from bot.cards import Cards
from bot.parts import Parts
from bot.slack import Slack

log = structlog.get_logger(__name__)
HANDS = 16


class Desk:
    """Runs what follows an ack in threads that are not Bolt's, and never lets an error escape."""

    def __init__(self, parts: Parts, slack: Slack, cards: Cards) -> None:
        self.parts = parts
        self.slack = slack
        self.cards = cards
        self._hands = ThreadPoolExecutor(HANDS, thread_name_prefix="desk")

    def later(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do something after the ack."""
        self._hands.submit(self._do, work, *arguments)

    def close(self) -> None:
        """Finish what was begun."""
        self._hands.shutdown(wait=True)

    def _do(self, work: Callable[..., Any], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception:
            log.exception("not done", what=getattr(work, "__name__", "work"))
