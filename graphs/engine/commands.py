"""What a node may return besides a plain update, and what it may raise to stop without failing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphs.engine.effects import Effect


@dataclass(frozen=True, slots=True)
class Send:
    """Run `node` in the next superstep with `payload` as its input instead of the state, once for each Send."""

    node: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Command:
    """An update with where to go next (declared as `destinations`) and effects to perform after the step."""

    update: Mapping[str, Any] = field(default_factory=dict)
    goto: str | Send | Sequence[str | Send] = ()
    effects: Sequence[Effect] = ()


class Signal(BaseException):
    """Base of what stops a node without failing it; no `except Exception` in a node can swallow it."""


class Later(Signal):
    """The run sleeps until `until` (aware); its finished siblings are kept, no thread waits."""

    def __init__(self, until: datetime, reason: str = "") -> None:
        if until.tzinfo is None:
            raise ValueError("Later needs a time with its time zone, otherwise nobody knows when it is.")
        super().__init__(reason)
        self.until = until
        self.reason = reason


class Halt(Signal):
    """The run stops visibly, with what is done kept, until a person resumes it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason or "halted"
