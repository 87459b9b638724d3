"""Every end of a run, whatever the reason: the whole tree ended, nothing of it left to decide or to send."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from graphs.engine.values import dump, load
from storage import audit, roots
from storage.statements import Transaction, prepare

_ASKED = "root = :root AND kind <> 'effect' AND status IN ('pending', 'approved')"
_DOUBTED = "root = :root AND kind = 'effect' AND status = 'pending'"
_IN_THE_AIR = "root = :root AND status IN ('pending', 'sending', 'unknown')"
_LEFT = prepare(
    f"SELECT EXISTS (SELECT 1 FROM approvals WHERE {_ASKED}), EXISTS (SELECT 1 FROM approvals WHERE {_DOUBTED}),"
    f" EXISTS (SELECT 1 FROM effects WHERE {_IN_THE_AIR})"
)
_END = prepare(
    "UPDATE runs SET ending = :ending, error = CASE WHEN thread_id = :root THEN :error ELSE error END,"
    " ended_at = :at, due_at = NULL, claim = NULL, lease_until = NULL WHERE root = :root AND ending = ''"
)
_OPEN = prepare(f"SELECT id FROM approvals WHERE {_ASKED} ORDER BY id")
_CLOSE = prepare(
    f"UPDATE approvals SET status = :to, settled_at = :at, undo_until = NULL, rev = rev + 1 WHERE {_ASKED}"
)
_DOUBTS = prepare(f"SELECT id, ask FROM approvals WHERE {_DOUBTED}")
_NARROW = prepare("UPDATE approvals SET ask = :ask, rev = rev + 1 WHERE id = :id")
_UNSETTLED = prepare(f"SELECT thread_id, step, n, status FROM effects WHERE {_IN_THE_AIR} ORDER BY thread_id, step, n")
_CANCEL = prepare("UPDATE effects SET status = 'cancelled' WHERE root = :root AND status = 'pending'")


def end_tree(tx: Transaction, root: str, ending: str, error: str = "", by: str = "") -> bool:
    """End a run and its children; False if it had ended or never was. See `end_fenced`."""
    run = roots.lock(tx, root)
    if run is None or run.ending:
        return False
    end_fenced(tx, root, ending, error, by)
    return True


def end_fenced(tx: Transaction, root: str, ending: str, error: str = "", by: str = "") -> None:
    """End a run that goes on, and its children; its root is locked already.

    The claim is taken from its owner, `due_at` emptied, approvals pending or approved and pending effects are
    cancelled. What is being sent keeps its outcome, and a question about a lost answer stays open.
    """
    asks, doubts, is_sending = tx.run(_LEFT, root=root).fetchone()  # after the lock: nobody adds to it any more
    tx.run(_END, root=root, ending=ending, error=dump(error), at=tx.now)
    closed = close_open(tx, root) if asks else []
    if doubts:
        _narrow_doubts(tx, root)
    effects = _cancel_effects(tx, root) if is_sending else {"cancelled": [], "sending": [], "unknown": []}
    audit.append(tx, root, "ended", {"ending": ending, "by": by, "approvals": closed, **effects}, content=error)


def _cancel_effects(tx: Transaction, root: str) -> dict[str, JsonValue]:
    """Cancel what is pending; what there was, by what has become of it."""
    effects: list[Any] = tx.run(_UNSETTLED, root=root).fetchall()
    tx.run(_CANCEL, root=root)
    return {
        name: [f"{thread}:{step}:{n}" for thread, step, n, status in effects if status == was]
        for name, was in (("cancelled", "pending"), ("sending", "sending"), ("unknown", "unknown"))
    }


def close_open(tx: Transaction, root: str, status: str = "cancelled") -> list[JsonValue]:
    """Close everything people are still asked about a run; the ids of what was closed."""
    ids = [row[0] for row in tx.run(_OPEN, root=root).fetchall()]
    if ids:
        tx.run(_CLOSE, root=root, to=status, at=tx.now)
    return ids


def _narrow_doubts(tx: Transaction, root: str) -> None:
    """Take *Send again* off the open questions about lost answers: a run that has ended sends nothing more."""
    for approval, text in tx.run(_DOUBTS, root=root).fetchall():
        ask = load(text)
        ask["choices"] = [choice for choice in ask["choices"] if choice["value"] != "again"]
        tx.run(_NARROW, id=approval, ask=dump(ask))
