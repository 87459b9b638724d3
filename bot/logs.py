"""Log lines for people on a terminal or as JSON; the texts of messages are never among them."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, cast

import structlog

from bot.settings import Settings


class _StandardError:
    """Standard error as it is when a line is written: whoever runs a command in-process replaces it for a while."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def set_up_logs(settings: Settings) -> None:
    """Send our own lines and the libraries' warnings to standard error."""
    level = logging.getLevelNamesMapping()[settings.log_level]
    errors = cast(TextIO, _StandardError())
    logging.basicConfig(stream=errors, level=max(level, logging.WARNING), format="%(asctime)s %(name)s %(message)s")
    # A sweep that outlasts its interval is no news: the next one makes up for it.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if settings.log_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(errors),
    )
