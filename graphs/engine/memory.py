"""A store that lives in memory: the same promises as the database, for tests and for trying a graph out."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    NOTHING_SPENT,
    SETTLED,
    Claim,
    EffectRow,
    EffectStatus,
    Interrupt,
    Loaded,
    Memory,
    Pause,
    PendingWrite,
    Row,
    RunRecord,
    Spent,
)
from graphs.engine.errors import (
    ClaimLost,
    EffectsPending,
    NotNow,
    RunEnded,
    StaleInterrupt,
    ThreadExists,
    UnknownInterrupt,
    UnknownThread,
    UnknownVersion,
)
from graphs.engine.values import dump, load

LEASE = 8_000_000


@dataclass(slots=True)
class _Run:
    """One run as it is remembered."""

    record: RunRecord
    rows: list[Row] = field(default_factory=list)
    writes: dict[tuple[int, str, str], PendingWrite] = field(default_factory=dict)
    effects: dict[tuple[int, int], EffectRow] = field(default_factory=dict)
    rev: int = 0
    claim: str | None = None
    lease_until: int = 0
    due_at: int | None = None
    spent: Spent = NOTHING_SPENT


@dataclass(slots=True)
class _Asked:
    """One question: `answer` is its JSON text once given, `taken` once it is in the pending writes."""

    interrupt: Interrupt
    root: str
    status: str = "pending"
    answer: str | None = None
    taken: bool = False


class MemoryCheckpointer:
    """Implements `graphs.engine.checkpoint.Checkpointer` with dictionaries under one lock."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock or (lambda: time.time_ns() // 1000)
        self._lock = threading.RLock()
        self._runs: dict[str, _Run] = {}
        self._asked: dict[str, _Asked] = {}
        self._memories: dict[tuple[str, str], str] = {}

    def now(self) -> int:
        """This machine's clock, or the one it was given."""
        return self._clock()

    # ---- runs --------------------------------------------------------------------------------------------------

    def create(self, run: RunRecord, row: Row, *, due: bool = True) -> None:
        """See `Checkpointer.create`."""
        with self._lock:
            if run.thread_id in self._runs:
                raise ThreadExists(f"There is a run {run.thread_id} already.", run.thread_id)
            due_at = self.now() if due else None
            self._runs[run.thread_id] = _Run(run, [self._stamped(row)], due_at=due_at, spent=run.spent)

    def begin(self, run: RunRecord, row: Row) -> Claim:
        """See `Checkpointer.begin`."""
        with self._lock:
            self.create(run, row)
            return self.claim(run.thread_id, {(run.flow, run.version): run.fingerprint})

    def adopt(self, claim: Claim, run: RunRecord, row: Row) -> None:
        """See `Checkpointer.adopt`."""
        with self._lock:
            self._fence(claim)
            self._runs.setdefault(run.thread_id, _Run(run, [self._stamped(row)]))

    def claim(self, thread_id: str, known: Mapping[tuple[str, int], str]) -> Claim:
        """See `Checkpointer.claim`."""
        with self._lock:
            run = self._get(thread_id)
            record = run.record
            if record.ending:
                raise RunEnded(f"The run has ended: {record.ending}.", thread_id)
            if known.get((record.flow, record.version)) != record.fingerprint:
                raise UnknownVersion(
                    f"{record.flow} v{record.version} ({record.fingerprint}) is not in this process: deploy it.",
                    thread_id,
                )
            now = self.now()
            due = run.due_at is not None and run.due_at <= now
            if (run.claim is not None and run.lease_until > now) or (run.claim is None and not due):
                raise NotNow("Somebody advances the run already, or nothing is due.", thread_id)
            run.claim, run.lease_until, run.due_at = uuid.uuid4().hex, now + LEASE, None
            self._take_answers(thread_id)
            return Claim(thread_id, run.claim, run.rev, self._load(run))

    def _take_answers(self, root: str) -> None:
        for asked in self._asked.values():
            if asked.root == root and _is_open(asked) and asked.answer is not None:
                asked.taken = True
                ask = asked.interrupt
                self._keep(PendingWrite(ask.thread_id, ask.step, ask.task, f"answer:{ask.place}", asked.answer))

    def lapse(self, thread_id: str) -> None:
        """Let the lease of a run run out, as if its owner had been stopped for too long."""
        with self._lock:
            self._get(thread_id).lease_until = 0

    def run(self, thread_id: str) -> RunRecord:
        """See `Checkpointer.run`."""
        with self._lock:
            return self._get(thread_id).record

    def load(self, thread_id: str) -> Loaded:
        """See `Checkpointer.load`."""
        with self._lock:
            return self._load(self._get(thread_id))

    def _load(self, run: _Run) -> Loaded:
        first = max(n for n, row in enumerate(run.rows) if row.full)
        head = run.rows[-1].step
        root = run.record.root
        tree = self._tree(root)
        return Loaded(
            run.record,
            tuple(run.rows[first:]),
            tuple(run.writes.values()),
            tuple(effect for (step, _), effect in sorted(run.effects.items()) if step == head),
            self._open(root),
            sum(row.source == "step" for each in tree for row in each.rows),
            self._runs[root].spent,
        )

    def _open(self, root: str) -> frozenset[str]:
        return frozenset(id_ for id_, asked in self._asked.items() if asked.root == root and _is_open(asked))

    # ---- under a claim -----------------------------------------------------------------------------------------

    def record(self, claim: Claim, writes: Sequence[PendingWrite], spent: Spent = NOTHING_SPENT) -> None:
        """See `Checkpointer.record`."""
        with self._lock:
            run = self._fence(claim)
            for write in writes:
                self._keep(write)
            run.spent += spent

    def commit(
        self,
        claim: Claim,
        row: Row,
        effects: Sequence[EffectRow] = (),
        memories: Sequence[Memory] = (),
        ending: str = "",
    ) -> int:
        """See `Checkpointer.commit`."""
        with self._lock:
            self._fence(claim)
            run, stamped = self._get(row.thread_id), self._stamped(row)
            run.rows.append(stamped)
            run.effects.update({(effect.step, effect.n): effect for effect in effects})
            for memory in memories:
                self._remember(memory)
            if ending:
                self._end(claim, row.thread_id, ending, "")
            return stamped.at

    def effects(self, thread_id: str, step: int) -> tuple[EffectRow, ...]:
        """See `Checkpointer.effects`."""
        with self._lock:
            rows = self._get(thread_id).effects
            return tuple(effect for (at, _), effect in sorted(rows.items()) if at == step)

    def pause(self, claim: Claim, pause: Pause) -> None:
        """See `Checkpointer.pause`."""
        with self._lock:
            run = self._fence(claim)
            for write in pause.writes:
                self._keep(write)
            for old in pause.superseded:
                self._asked[old].status = "superseded"
            for ask in pause.interrupts:
                self._asked[ask.id] = _Asked(ask, claim.thread_id)
            run.claim, run.lease_until = None, 0
            run.due_at = _earlier(run.due_at, pause.wake_at)
            run.record = run.record._replace(error=pause.error)

    def end(self, claim: Claim, thread_id: str, ending: str, error: str = "") -> None:
        """See `Checkpointer.end`."""
        with self._lock:
            self._fence(claim)
            self._end(claim, thread_id, ending, error)

    def _end(self, claim: Claim, thread_id: str, ending: str, error: str) -> None:
        if thread_id == claim.thread_id:
            self.end_tree(thread_id, ending, error)
            return
        run = self._get(thread_id)
        run.record = run.record._replace(ending=ending, error=error)

    def end_tree(self, root: str, ending: str, error: str = "") -> None:
        """End a whole tree without a claim, as cancelling or expiring does."""
        with self._lock:
            for run in self._tree(root):
                if not run.record.ending:
                    run.record = run.record._replace(ending=ending, error=error)
                run.claim, run.due_at = None, None
                for key, effect in run.effects.items():
                    if effect.status == "pending":
                        run.effects[key] = effect._replace(status="cancelled")
            for asked in self._asked.values():
                if asked.root == root and asked.status == "pending":
                    asked.status = "cancelled"

    # ---- people ------------------------------------------------------------------------------------------------

    def answer(self, thread_id: str, interrupt_id: str, value: JsonValue, by: str = "") -> None:
        """See `Checkpointer.answer`."""
        with self._lock:
            run = self._get(thread_id)
            asked = self._asked.get(interrupt_id)
            if asked is None or asked.root != thread_id:
                raise UnknownInterrupt(f"{interrupt_id} is no question of this run.", thread_id)
            if asked.status != "pending":
                raise StaleInterrupt(f"{interrupt_id} is {asked.status} already.", thread_id)
            if run.record.ending:
                raise RunEnded(f"The run has ended: {run.record.ending}.", thread_id)
            asked.status, asked.answer = "answered", dump(value)
            run.due_at = _earlier(run.due_at, self.now())

    def interrupts(self, thread_id: str) -> tuple[Interrupt, ...]:
        """See `Checkpointer.interrupts`."""
        with self._lock:
            root = self._get(thread_id).record.root
            return tuple(a.interrupt for a in self._asked.values() if a.root == root and a.status == "pending")

    def reopen(self, thread_id: str, max_steps: int | None = None) -> None:
        """See `Checkpointer.reopen`."""
        with self._lock:
            run = self._get(thread_id)
            is_halted = not run.record.ending and run.record.error and run.claim is None and run.due_at is None
            if run.record.ending != "failed" and not is_halted:
                raise RunEnded(f"The run cannot be tried again: {run.record.ending or 'it goes on'}.", thread_id)
            for each in self._tree(thread_id):
                if each.record.ending == "failed":
                    each.record = each.record._replace(ending="", error="")
            for asked in self._asked.values():
                if asked.root == thread_id and asked.status == "cancelled":
                    asked.status = "pending"
            steps = max_steps or run.record.max_steps
            run.record = run.record._replace(ending="", error="", max_steps=steps)
            run.due_at = self.now()

    def edit(self, thread_id: str, row: Row) -> None:
        """See `Checkpointer.edit`."""
        with self._lock:
            root = self._runs[self._get(thread_id).record.root]
            run = self._get(thread_id)
            if root.record.ending:
                raise RunEnded(f"The run has ended: {root.record.ending}.", thread_id)
            if root.claim is not None and root.lease_until > self.now():
                raise NotNow("Somebody advances the run right now: try again when it has paused.", thread_id)
            if row.step != run.rows[-1].step + 1:
                raise NotNow("The run has moved on meanwhile: look again.", thread_id)
            if root.claim is not None:
                root.due_at = _earlier(root.due_at, self.now())  # otherwise nobody would take up what its owner left
            root.rev += 1
            root.claim = None
            run.rows.append(self._stamped(row))

    def history(self, thread_id: str, before: int | None = None, limit: int | None = None) -> tuple[Row, ...]:
        """See `Checkpointer.history`."""
        with self._lock:
            rows = [row for row in self._get(thread_id).rows if before is None or row.step < before]
            if not rows or limit == 0:
                return ()
            last = max(len(rows) - (limit if limit is not None else len(rows)), 0)
            while last > 0 and not rows[last].full:
                last -= 1
            return tuple(reversed(rows[last:]))

    def recall(self, namespace: str, key: str) -> JsonValue:
        """See `Checkpointer.recall`."""
        with self._lock:
            text = self._memories.get((namespace, key))
            return None if text is None else load(text)

    def delete(self, thread_id: str) -> None:
        """See `Checkpointer.delete`."""
        with self._lock:
            tree = self._tree(self._get(thread_id).record.root)
            if any(e.status not in SETTLED and e.status != "pending" for run in tree for e in run.effects.values()):
                raise EffectsPending("Something of the run is being sent: delete it when that is settled.", thread_id)
            for run in tree:
                del self._runs[run.record.thread_id]
            self._asked = {id_: asked for id_, asked in self._asked.items() if asked.root != thread_id}

    def prune(self, thread_id: str) -> None:
        """See `Checkpointer.prune`."""
        with self._lock:
            run = self._get(thread_id)
            first = max(n for n, row in enumerate(run.rows) if row.full)
            del run.rows[:first]

    def set_effect(self, effect: EffectRow, status: EffectStatus, receipt: JsonValue = None, look_at: int = 0) -> None:
        """Record an effect's outcome; what a performer does to this store."""
        with self._lock:
            run = self._get(effect.thread_id)
            text = "" if receipt is None else dump(receipt)
            run.effects[effect.step, effect.n] = effect._replace(status=status, receipt=text, look_at=look_at)
            root = self._runs[effect.root]
            if not root.record.ending and root.claim is None:
                root.due_at = _earlier(root.due_at, self.now())

    # ---- inside ------------------------------------------------------------------------------------------------

    def _get(self, thread_id: str) -> _Run:
        try:
            return self._runs[thread_id]
        except KeyError:
            raise UnknownThread(f"There is no run {thread_id}.", thread_id) from None

    def _tree(self, root: str) -> list[_Run]:
        return [run for run in self._runs.values() if run.record.root == root]

    def _fence(self, claim: Claim) -> _Run:
        run = self._get(claim.thread_id)
        with claim.turn() as rev:
            if claim.lost or run.claim != claim.id or run.rev != rev:
                claim.lost = True
                raise ClaimLost(f"Somebody else advances {claim.thread_id} now.", claim.thread_id)
            run.rev += 1
        return run

    def _keep(self, write: PendingWrite) -> None:
        self._get(write.thread_id).writes.setdefault((write.step, write.task, write.key), write)

    def _remember(self, memory: Memory) -> None:
        if memory.value is None:
            self._memories.pop((memory.namespace, memory.key), None)
        else:
            self._memories[memory.namespace, memory.key] = memory.value

    def _stamped(self, row: Row) -> Row:
        step, body = row.step, row.body
        return Row(row.thread_id, step, row.source, row.next, body, row.full, row.meta, row.author, self.now())


def _is_open(asked: _Asked) -> bool:
    return asked.status == "pending" or (asked.status == "answered" and not asked.taken)


def _earlier(one: int | None, other: int | None) -> int | None:
    times = [time_ for time_ in (one, other) if time_ is not None]
    return min(times, default=None)
