"""Runs in the database: implements the engine's `Checkpointer`, each method one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    Claim,
    EffectRow,
    Interrupt,
    Loaded,
    Memory,
    Pause,
    PendingWrite,
    Row,
    RunRecord,
    Spent,
)
from graphs.engine.errors import ClaimLost, NotNow, RunEnded, RunError
from graphs.engine.values import dump
from graphs.flow import Policy
from storage import approvals, loading, memories, roots, rows, runs, trees
from storage.database import Database
from storage.leases import LEASE, Heartbeat
from storage.saves import Save, Work
from storage.statements import Transaction, prepare
from storage.steps import Step, fence, steps_of

T = TypeVar("T")
NOTHING = Spent()
_IS_FREE = "(claim IS NULL AND due_at <= :now OR claim IS NOT NULL AND lease_until <= :now)"
_CLAIM = prepare(
    "UPDATE runs SET claim = :owner, lease_until = :until, due_at = NULL"
    f" WHERE thread_id = :thread_id AND root = thread_id AND ending = '' AND {_IS_FREE}"
    " RETURNING flow, version, fingerprint, rev"
)
_SEEN = prepare("SELECT root, flow, version, fingerprint, ending FROM runs WHERE thread_id = :thread_id")
_RELEASE = prepare(
    "UPDATE runs SET claim = NULL, lease_until = NULL, error = :error,"
    " due_at = CASE WHEN due_at < :wake_at THEN due_at ELSE coalesce(:wake_at, due_at) END WHERE thread_id = :thread_id"
)
_UNDO_OPEN = prepare("SELECT min(undo_until) FROM approvals WHERE root = :root AND status = 'approved' AND NOT taken")


class SqlCheckpointer:
    """Remembers runs in a `Database`.

    `policy_of(flow)` says who may decide, `guards(flow, kind)` whether an effect of that kind needs a release.
    `heartbeat` keeps claims alive; without one the checkpointer has its own, which `close` stops.
    """

    def __init__(
        self,
        database: Database,
        *,
        policy_of: Callable[[str], Policy],
        guards: Callable[[str, str], bool],
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.database = database
        self._policy_of, self._guards = policy_of, guards
        self._heartbeat = heartbeat or Heartbeat(database)

    def now(self) -> int:
        """The database's clock."""
        return self.database.now()

    def close(self) -> None:
        """Stop renewing leases; the database stays open."""
        self._heartbeat.close()

    # -- runs ---------------------------------------------------------------------------------------------------------

    def create(self, run: RunRecord, row: Row, *, due: bool = True) -> None:
        """See `Checkpointer.create`."""
        self._write(run.thread_id, lambda tx: runs.start(tx, run, row, due=due))

    def begin(self, run: RunRecord, row: Row) -> Claim:
        """See `Checkpointer.begin`."""
        owner = uuid.uuid4().hex

        def work(tx: Transaction) -> int:
            runs.start(tx, run, row, owner=owner)
            return tx.now

        saved = row._replace(at=self._write(run.thread_id, work))
        claim = Claim(run.thread_id, owner, 0, Loaded(run, (saved,), spent=run.spent))
        self._heartbeat.add(claim)
        return claim

    def claim(self, thread_id: str, known: Mapping[tuple[str, int], str]) -> Claim:
        """See `Checkpointer.claim`."""
        claim = self._write(thread_id, lambda tx: _claim(tx, thread_id, known))
        self._heartbeat.add(claim)
        return claim

    def run(self, thread_id: str) -> RunRecord:
        """See `Checkpointer.run`."""
        with self.database.look() as tx:
            return rows.select_run(tx, thread_id)

    def load(self, thread_id: str) -> Loaded:
        """See `Checkpointer.load`."""
        with self.database.look() as tx:
            return loading.load_run(tx, thread_id)

    def history(self, thread_id: str, before: int | None = None, limit: int | None = None) -> tuple[Row, ...]:
        """See `Checkpointer.history`."""
        with self.database.look() as tx:
            return loading.past(tx, thread_id, before, limit)

    def effects(self, thread_id: str, step: int) -> tuple[EffectRow, ...]:
        """See `Checkpointer.effects`."""
        with self.database.look() as tx:
            return loading.effects_at(tx, thread_id, step)

    def recall(self, namespace: str, key: str) -> JsonValue:
        """See `Checkpointer.recall`."""
        return memories.recall(self.database, namespace, key)

    # -- under a claim ------------------------------------------------------------------------------------------------

    def record(self, claim: Claim, writes: Sequence[PendingWrite], spent: Spent = NOTHING) -> None:
        """See `Checkpointer.record`."""

        def work(tx: Transaction) -> None:
            rows.insert_writes(tx, writes)
            if spent != NOTHING:
                rows.spend(tx, claim.thread_id, spent)

        self._save(claim, work)

    def adopt(self, claim: Claim, run: RunRecord, row: Row) -> None:
        """See `Checkpointer.adopt`."""

        def work(tx: Transaction) -> None:
            if rows.insert_run(tx, run, due=False):
                rows.insert_checkpoint(tx, row)

        self._save(claim, work)

    def commit(
        self,
        claim: Claim,
        row: Row,
        effects: Sequence[EffectRow] = (),
        memories: Sequence[Memory] = (),
        ending: str = "",
    ) -> int:
        """See `Checkpointer.commit`."""
        if not effects and not memories and not ending:
            return self._queue(claim, lambda rev: Step(claim.thread_id, rev, claim.id, row))

        def work(tx: Transaction) -> int:
            self._commit(tx, claim.thread_id, row, effects, memories)
            if ending:
                trees.end(tx, claim.thread_id, row.thread_id, ending)
            return tx.now

        at = self._save(claim, work, steps_of(row))
        if ending and row.thread_id == claim.thread_id:
            self._heartbeat.remove(claim)
        return at

    def pause(self, claim: Claim, pause: Pause) -> None:
        """See `Checkpointer.pause`."""
        self._save(claim, lambda tx: self._pause(tx, claim.thread_id, pause))
        self._heartbeat.remove(claim)

    def end(self, claim: Claim, thread_id: str, ending: str, error: str = "") -> None:
        """See `Checkpointer.end`."""
        self._save(claim, lambda tx: trees.end(tx, claim.thread_id, thread_id, ending, error))
        if thread_id == claim.thread_id:
            self._heartbeat.remove(claim)

    # -- people -------------------------------------------------------------------------------------------------------

    def answer(self, thread_id: str, interrupt_id: str, value: JsonValue, by: str = "") -> None:
        """See `Checkpointer.answer`."""
        self.database.write(thread_id, lambda tx: _answer(tx, thread_id, interrupt_id, value, by))

    def interrupts(self, thread_id: str) -> tuple[Interrupt, ...]:
        """See `Checkpointer.interrupts`."""
        with self.database.look() as tx:
            return loading.asked_of(tx, rows.select_run(tx, thread_id).root)

    def reopen(self, thread_id: str, max_steps: int | None = None) -> None:
        """See `Checkpointer.reopen`."""
        self.database.write(thread_id, lambda tx: trees.reopen(tx, thread_id, max_steps))

    def edit(self, thread_id: str, row: Row) -> None:
        """See `Checkpointer.edit`."""
        with self.database.look() as tx:
            root = rows.select_run(tx, thread_id).root
        self.database.write(root, lambda tx: trees.edit(tx, root, row))

    def move(self, thread_id: str, version: int, fingerprint: str, row: Row) -> None:
        """Take a root run to another version of its flow; raises `NotNow` or `RunEnded` as `edit` does."""
        self.database.write(thread_id, lambda tx: trees.move(tx, thread_id, version, fingerprint, row))

    def delete(self, thread_id: str) -> None:
        """See `Checkpointer.delete`."""
        self.database.write(thread_id, lambda tx: trees.delete(tx, thread_id))

    def prune(self, thread_id: str) -> None:
        """See `Checkpointer.prune`."""
        self.database.write(thread_id, lambda tx: trees.prune(tx, thread_id))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _write(self, thread_id: str, work: Work[T]) -> T:
        return self.database.writer.wait(self.database.writer.enqueue(thread_id, work, apart=True))

    def _save(self, claim: Claim, work: Work[T], steps: int = 0) -> T:
        return self._queue(claim, lambda rev: lambda tx: _fenced(tx, claim, rev, work, steps))

    def _queue(self, claim: Claim, work: Callable[[int], Work[T]]) -> T:
        """Save under the claim's next rev. Branches of one claim queue here and are committed together."""
        if claim.lost:
            raise _lost(claim)
        try:
            with claim.turn() as rev:
                save: Save[T] = self.database.writer.enqueue(claim.thread_id, work(rev), apart=True)
            return self.database.writer.wait(save)
        except BaseException as error:
            if not _gives_back(claim, error):
                claim.lost = True
                self._heartbeat.remove(claim)
            raise

    def _commit(
        self, tx: Transaction, root: str, row: Row, effects: Sequence[EffectRow], remembered: Sequence[Memory]
    ) -> None:
        rows.insert_checkpoint(tx, row)
        if effects:
            flow = rows.select_run(tx, root).flow
            for effect in effects:
                rows.insert_effect(tx, root, effect, guarded=self._guards(flow, effect.kind))
        for memory in remembered:
            memories.remember(tx, memory)

    def _pause(self, tx: Transaction, root: str, pause: Pause) -> None:
        rows.insert_writes(tx, pause.writes)
        approvals.supersede(tx, pause.superseded)
        if pause.interrupts:
            run = rows.select_run(tx, root)
            for ask in pause.interrupts:
                approvals.open_approval(tx, run=run, interrupt=ask, policy=self._policy_of(run.flow))
        undo: Any = tx.run(_UNDO_OPEN, root=root).fetchone()
        wake = min((time for time in (pause.wake_at, undo[0]) if time is not None), default=None)
        tx.run(_RELEASE, thread_id=root, error=dump(pause.error), wake_at=wake)


def _lost(claim: Claim) -> ClaimLost:
    return ClaimLost(f"{claim.thread_id} is not this process's any more; nothing was saved.", claim.thread_id)


def _fenced(tx: Transaction, claim: Claim, rev: int, work: Work[T], steps: int) -> T:
    fence(tx, claim.thread_id, rev, claim.id, steps)
    return work(tx)


def _gives_back(claim: Claim, error: BaseException) -> bool:
    """Whether the claim can go on: the values were refused, nothing was saved, and no later save has been queued.

    Otherwise a run whose question cannot be stored could not even be ended as failed.
    """
    if not isinstance(error, RunError) or isinstance(error, ClaimLost):
        return False
    with claim.lock:
        claim.rev -= 1
    return True


def _claim(tx: Transaction, thread_id: str, known: Mapping[tuple[str, int], str]) -> Claim:
    owner, until = uuid.uuid4().hex, tx.now + LEASE
    taken: Any = tx.run(_CLAIM, thread_id=thread_id, owner=owner, until=until, now=tx.now).fetchone()
    if taken is None:
        raise _unclaimable(tx, thread_id, known)
    flow, version, fingerprint, rev = taken
    if known.get((flow, version)) != fingerprint:
        raise runs.unknown_version(flow, version, fingerprint, thread_id)
    # Whether there is anything to take is asked now: the claim may have waited for the row, and saw what was before.
    approvals.take(tx, thread_id)
    return Claim(thread_id, owner, rev, loading.load_run(tx, thread_id))


def _unclaimable(tx: Transaction, thread_id: str, known: Mapping[tuple[str, int], str]) -> RunError:
    """Why a run cannot be claimed."""
    seen: Any = tx.run(_SEEN, thread_id=thread_id).fetchone()
    if seen is None:
        return rows.unknown(thread_id)
    root, flow, version, fingerprint, ending = seen
    if ending:
        return RunEnded(f"The run has ended: {ending}.", thread_id)
    if root != thread_id:
        return NotNow(f"{thread_id} is a part of {root}, which is advanced as a whole.", thread_id)
    if known.get((flow, version)) != fingerprint:
        return runs.unknown_version(flow, version, fingerprint, thread_id)
    return NotNow("Somebody else advances the run already, or nothing is due.", thread_id)


def _answer(tx: Transaction, thread_id: str, interrupt_id: str, value: JsonValue, by: str) -> None:
    run = roots.lock(tx, thread_id)
    if run is None:
        raise rows.unknown(thread_id)
    approvals.answer_raw(tx, thread_id, interrupt_id, value, by)
    if run.ending:
        raise RunEnded(f"The run has ended: {run.ending}.", thread_id)
