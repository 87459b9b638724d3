"""What a run tells while it goes on, in order; `path` are the nodes that lead to it through subgraphs."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from graphs.engine.checkpoint import Interrupt


class NodeStarted(NamedTuple):
    """A node begins an attempt; `step` is the one that activated it."""

    thread_id: str
    path: tuple[str, ...]
    node: str
    step: int
    attempt: int = 1


class Chunk(NamedTuple):
    """A piece of work in progress, from `runtime.stream`; what a retried attempt repeats has a higher `attempt`."""

    thread_id: str
    path: tuple[str, ...]
    node: str
    data: JsonValue
    step: int = 0
    attempt: int = 1


class StepCommitted(NamedTuple):
    """A checkpoint is durable: which nodes made it, and which come next."""

    thread_id: str
    path: tuple[str, ...]
    step: int
    nodes: tuple[str, ...]
    next: tuple[str, ...]


class EffectSettled(NamedTuple):
    """An effect has its outcome."""

    thread_id: str
    path: tuple[str, ...]
    kind: str
    to: str
    status: str


class Waits(NamedTuple):
    """The run has stopped for answers, for a time, or until somebody resumes it."""

    thread_id: str
    path: tuple[str, ...]
    interrupts: tuple[Interrupt, ...]
    wake_at: int | None
    reason: str


class Ended(NamedTuple):
    """The run is over."""

    thread_id: str
    path: tuple[str, ...]
    ending: str
    error: str = ""


Event = NodeStarted | Chunk | StepCommitted | EffectSettled | Waits | Ended
