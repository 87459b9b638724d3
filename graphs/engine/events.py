"""What a run tells while it goes on, in the order it happened."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from graphs.engine.checkpoint import Interrupt


@dataclass(frozen=True, slots=True)
class Event:
    """Base of everything a stream yields; `path` are the nodes that lead to the run through subgraphs."""

    thread_id: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeStarted(Event):
    """A node begins an attempt; `step` is the one that activated it."""

    node: str
    step: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Chunk(Event):
    """A piece of work in progress, from `runtime.stream`; what a retried attempt repeats has a higher `attempt`."""

    node: str
    data: JsonValue
    step: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class StepCommitted(Event):
    """A checkpoint is durable: which nodes made it, and which come next."""

    step: int
    nodes: tuple[str, ...]
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectSettled(Event):
    """An effect has its outcome."""

    kind: str
    to: str
    status: str


@dataclass(frozen=True, slots=True)
class Waits(Event):
    """The run has stopped for answers, for a time, or until somebody resumes it."""

    interrupts: tuple[Interrupt, ...]
    wake_at: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The run is over."""

    ending: str
    error: str = ""
