"""From effects as nodes return them to rows of the ledger, and from settled rows to receipts in the state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphs.engine.checkpoint import EffectRow, RunRecord
from graphs.engine.effects import Receipt
from graphs.engine.merge import merge, message_ids
from graphs.engine.state import State, read_update
from graphs.engine.superstep import Emitted
from graphs.engine.values import dump, load


def ledger_rows(run: RunRecord, step: int, emitted: Sequence[Emitted]) -> tuple[EffectRow, ...]:
    """The effects of one step, numbered in the order their nodes were declared."""
    return tuple(
        EffectRow(run.thread_id, step, n, run.root, each.kind, each.to, each.content, dump(each.payload), each.into)
        for n, each in enumerate(emitted)
    )


def check_receipts(state: type[State], values: Mapping[str, Any], emitted: Iterable[Emitted]) -> None:
    """Refuse, before anything is committed, receipts that could not be merged later."""
    updates = [
        (f"the receipt of {each.kind} to {each.to}", _update(state, each.into, each.kind, each.to, {}))
        for each in emitted
        if each.into
    ]
    if updates:
        merge(state, values, updates, message_ids("", 0))


def receipt_updates(state: type[State], effects: Iterable[EffectRow]) -> list[tuple[str, dict[str, Any]]]:
    """One update per settled effect that wants a receipt, failures included."""
    return [
        (
            f"the receipt of {row.key}",
            _update(state, row.into, row.kind, row.address, {**load(row.receipt or "{}"), "status": row.status}),
        )
        for row in effects
        if row.into
    ]


def _update(state: type[State], into: str, kind: str, to: str, said: Mapping[str, Any]) -> dict[str, Any]:
    receipt = Receipt(
        kind=kind,
        to=to,
        status=said.get("status", "sent"),
        ref=str(said.get("ref") or ""),
        detail=str(said.get("detail") or ""),
    )
    return read_update(state, f"the receipt of {kind}", {into: receipt})
