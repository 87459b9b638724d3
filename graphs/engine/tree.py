"""What all runs of one tree share while they are advanced, and why one of them may stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from graphs.engine.checkpoint import Checkpointer, Claim, EffectRow, Interrupt, PendingWrite
from graphs.engine.errors import StepLimit
from graphs.engine.events import Event
from graphs.engine.graph import Graph
from graphs.engine.state import State


class Performer(Protocol):
    """Lets committed effects out, through the ledger."""

    def perform(self, claim: Claim, effects: Sequence[EffectRow]) -> None:
        """Send what is pending and free to go; look up what was left sending beyond its bound."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Tree:
    """What all runs of one tree share while they are advanced."""

    store: Checkpointer
    claim: Claim
    performer: Performer | None
    deps: Any
    max_steps: int
    steps: int
    outcome: Callable[[Graph[Any], State], str]  # how the root run ends, by its last state
    emit: Callable[[Event], None] | None
    draining: Callable[[], bool]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take_step(self, thread_id: str) -> None:
        """One more superstep of the whole tree begins; raises `StepLimit`."""
        with self.lock:
            if self.steps >= self.max_steps:
                raise StepLimit("The run has used all its steps; give it more to go on.", thread_id)
            self.steps += 1


class Stopped(NamedTuple):
    """Why a run does not go on right now; everything in it is saved together when the root releases its claim."""

    writes: tuple[PendingWrite, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    superseded: tuple[str, ...] = ()
    wake_at: int | None = None
    reason: str = ""


class FirstFailure(Exception):
    """Carries what a task raised up to the root, siblings kept."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
