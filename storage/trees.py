"""What happens to a whole tree of runs outside its steps: tried again, edited, cut short, forgotten."""

from __future__ import annotations

from typing import Any

from graphs.engine.checkpoint import Row
from graphs.engine.errors import EffectsPending, NotNow, RunEnded
from graphs.engine.values import dump
from storage import approvals, audit, loading, rows
from storage.endings import end_fenced
from storage.statements import Transaction, prepare

_LOCK = prepare(
    "SELECT ending, error, ended_at, claim, lease_until, due_at, max_steps FROM runs "
    "WHERE thread_id = :thread_id FOR UPDATE"
)
_END_CHILD = prepare(
    "UPDATE runs SET ending = :ending, error = :error, ended_at = :ended_at "
    "WHERE thread_id = :thread_id AND ending = ''"
)
_REVIVE = prepare(
    "UPDATE runs SET ending = '', error = '\"\"', ended_at = NULL "
    "WHERE root = :root AND ending = 'failed' AND ended_at = :ended_at"
)
_REOPEN = prepare(
    "UPDATE runs SET rev = rev + 1, error = '\"\"', due_at = :due_at, max_steps = :max_steps "
    "WHERE thread_id = :thread_id"
)
_TAKE_BACK = prepare(
    "UPDATE runs SET rev = rev + 1, claim = NULL, lease_until = NULL,"
    " due_at = CASE WHEN claim IS NOT NULL THEN coalesce(due_at, :now) ELSE due_at END "
    "WHERE thread_id = :thread_id"
)
_MOVE = prepare("UPDATE runs SET version = :version, fingerprint = :fingerprint WHERE thread_id = :thread_id")
_UNSETTLED = prepare("SELECT n FROM effects WHERE root = :root AND status IN ('sending', 'unknown') LIMIT 1")
_PRUNE = prepare("DELETE FROM checkpoints WHERE thread_id = :thread_id AND step < :first")
_tree = "SELECT thread_id FROM runs WHERE root = :root"
_asked = "SELECT id FROM approvals WHERE root = :root"
_DELETE = tuple(
    prepare(statement)
    for statement in (
        f"DELETE FROM cards WHERE subject IN ({_tree}) OR subject IN ({_asked})",
        f"DELETE FROM decisions WHERE approval IN ({_asked})",
        "DELETE FROM releases WHERE root = :root",
        "DELETE FROM approvals WHERE root = :root",
        "DELETE FROM effects WHERE root = :root",
        f"DELETE FROM pending_writes WHERE thread_id IN ({_tree})",
        f"DELETE FROM checkpoints WHERE thread_id IN ({_tree})",
        "DELETE FROM runs WHERE root = :root",
    )
)


def end(tx: Transaction, root: str, thread_id: str, ending: str, error: str = "") -> None:
    """End the root with its whole tree, or a child alone; the caller has fenced the root."""
    if thread_id == root:
        end_fenced(tx, root, ending, error)
        return
    tx.run(_END_CHILD, thread_id=thread_id, ending=ending, error=dump(error), ended_at=tx.now)


def reopen(tx: Transaction, root: str, max_steps: int | None) -> None:
    """Make a failed or halted run due again, with what its very end had closed asked once more.

    Halted is a run without an ending that stopped with an error and that nothing will wake. Raises `RunEnded`.
    """
    ending, error, ended_at, claim, _, due_at, steps = _locked(tx, root)
    is_halted = not ending and error != dump("") and claim is None and due_at is None
    if ending != "failed" and not is_halted:
        raise RunEnded(f"The run cannot be tried again: {ending or 'it goes on'}.", root)
    if ending:
        tx.run(_REVIVE, root=root, ended_at=ended_at)
        approvals.reopen_cancelled(tx, root, ended_at)
    tx.run(_REOPEN, thread_id=root, due_at=tx.now, max_steps=max_steps or steps)
    audit.append(tx, root, "reopened", {"ending": ending, "max_steps": max_steps or steps})


def edit(tx: Transaction, root: str, row: Row) -> None:
    """Put an edited checkpoint on top of a run; raises `NotNow` while somebody advances it, or has meanwhile."""
    ending, _, _, claim, lease_until, _, _ = _locked(tx, root)
    if ending:
        raise RunEnded(f"The run has ended: {ending}.", row.thread_id)
    if claim is not None and lease_until > tx.now:
        raise NotNow("Somebody advances the run right now: try again when it has paused.", row.thread_id)
    if row.step != loading.head_of(tx, row.thread_id) + 1:
        raise NotNow("The run has moved on meanwhile: look again.", row.thread_id)
    tx.run(_TAKE_BACK, thread_id=root, now=tx.now)
    rows.insert_checkpoint(tx, row)
    audit.append(tx, root, "edited", {"run": row.thread_id, "step": row.step, "by": row.author}, content=row.body)


def move(tx: Transaction, root: str, version: int, fingerprint: str, row: Row) -> None:
    """A run goes on as another version of its flow, from the checkpoint given; whoever wakes next can claim it."""
    edit(tx, root, row)
    tx.run(_MOVE, thread_id=root, version=version, fingerprint=fingerprint)
    audit.append(tx, root, "moved", {"version": version, "by": row.author})


def delete(tx: Transaction, root: str) -> None:
    """Forget a tree; its audit stays, which holds no texts. Raises `EffectsPending`."""
    _locked(tx, root)
    if tx.run(_UNSETTLED, root=root).fetchone() is not None:
        raise EffectsPending("Something of the run is being sent: delete it when that is settled.", root)
    for statement in _DELETE:
        tx.run(statement, root=root)
    audit.append(tx, root, "deleted", {})


def prune(tx: Transaction, thread_id: str) -> None:
    """Forget checkpoints before the last snapshot."""
    _locked(tx, rows.select_run(tx, thread_id).root)
    first = loading.snapshot_before(tx, thread_id, loading.head_of(tx, thread_id))
    tx.run(_PRUNE, thread_id=thread_id, first=first)


def _locked(tx: Transaction, root: str) -> Any:
    if (row := tx.run(_LOCK, thread_id=root).fetchone()) is None:
        raise rows.unknown(root)
    return row
