"""A run moved to another version of its flow, by the mapping that the flow's author has supplied."""

from __future__ import annotations

from bot.parts import Parts
from graphs.engine.errors import UnknownVersion
from graphs.engine.moving import moved_row


def move_run(parts: Parts, thread_id: str, version: int, by: str) -> None:
    """Let a run go on as another version; raises an `EngineError` or `UnknownFlow` for whatever does not fit."""
    loaded = parts.checkpointer.load(thread_id)
    flow = parts.catalog.flow(loaded.run.flow, version)
    move = flow.moves.get(loaded.run.version)
    if move is None:
        raise UnknownVersion(
            f"{flow.name} v{version} does not say how states of v{loaded.run.version} are mapped: "
            f"add moves={{{loaded.run.version}: …}} to its Flow.",
            thread_id,
        )
    row = moved_row(flow.graph, loaded, move, by)
    parts.checkpointer.move(thread_id, version, flow.graph.fingerprint, row)
    parts.executor.after_commit(thread_id)
