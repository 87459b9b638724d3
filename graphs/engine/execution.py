"""One run of a tree being advanced under a claim: superstep after superstep, until it pauses, sleeps or ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    NOTHING_SPENT,
    SETTLED,
    EffectRow,
    Interrupt,
    Loaded,
    Memory,
    Next,
    PendingWrite,
    Row,
    RunRecord,
    Spent,
    Task,
    task_hash,
)
from graphs.engine.errors import NodeFailed, StepLimit, UnknownThread, UpdateRefused
from graphs.engine.events import Chunk, EffectSettled, NodeStarted, StepCommitted
from graphs.engine.graph import Graph, NodeSpec
from graphs.engine.merge import Head, merge, message_ids, next_row, replay
from graphs.engine.parallel import run_all
from graphs.engine.receipts import check_receipts, ledger_rows, receipt_updates
from graphs.engine.routing import follow
from graphs.engine.runtime import Abandoned
from graphs.engine.state import State, build
from graphs.engine.subgraphs import child_id, child_record, first_row, leaving
from graphs.engine.superstep import (
    Failed,
    Finished,
    Outcome,
    Waiting,
    attempt_task,
    read_result,
    sleeping_until,
    write_result,
)
from graphs.engine.tree import FirstFailure, Stopped, Tree
from graphs.engine.values import dump


@dataclass(slots=True, eq=False, repr=False)
class Execution:
    """The state of one run in memory. `path` are the nodes that lead to it through subgraphs."""

    graph: Graph[Any]
    tree: Tree
    run: RunRecord
    head: Head
    known: dict[tuple[int, str], dict[str, str]]
    effects: tuple[EffectRow, ...]
    row: Row  # the last checkpoint, and when it was saved
    saved_at: int
    path: tuple[str, ...] = ()
    begun: int = -1  # the step whose successor has been counted
    built: tuple[Mapping[str, Any], State] | None = None

    @classmethod
    def load(cls, graph: Graph[Any], tree: Tree, loaded: Loaded, path: tuple[str, ...] = ()) -> Execution:
        """Take up a run from what the store holds."""
        known: dict[tuple[int, str], dict[str, str]] = {}
        for write in loaded.writes:
            known.setdefault((write.step, write.task), {})[write.key] = write.value
        head = replay(graph.state, loaded.rows)
        row = loaded.rows[-1]
        return cls(graph, tree, loaded.run, head, known, loaded.effects, row, row.at, path)

    # ---- what a runtime asks of it -----------------------------------------------------------------------------

    @property
    def deps(self) -> Any:
        """What nodes are given."""
        return self.tree.deps

    def now(self) -> datetime:
        """The store's clock."""
        return datetime.fromtimestamp(self.tree.store.now() / 1_000_000, UTC)

    def recall(self, namespace: str, key: str) -> JsonValue:
        """Long-term memory."""
        return self.tree.store.recall(namespace, key)

    def record(self, writes: Sequence[PendingWrite], spent: Spent) -> None:
        """Save what a task has done so far, and remember it for its next attempt."""
        self.tree.store.record(self.tree.claim, writes, spent)
        for write in writes:
            self.known.setdefault((write.step, write.task), {})[write.key] = write.value

    def started(self, task: Task, attempt: int) -> None:
        """Tell that a node begins an attempt."""
        if self.tree.emit is not None:
            self.tree.emit(NodeStarted(self.run.thread_id, self.path, task.node, task.since, attempt))

    def chunk(self, task: Task, attempt: int, data: JsonValue) -> None:
        """Show a piece of work in progress; whoever has lost the claim is told so by being stopped."""
        if self.tree.claim.lost:
            raise Abandoned()
        if self.tree.emit is not None:
            self.tree.emit(Chunk(self.run.thread_id, self.path, task.node, data, task.since, attempt))

    def seen(self) -> State:
        """The state as nodes see it."""
        return self._built(self.head.values)

    def _built(self, values: Mapping[str, Any]) -> State:
        """A state object, the same one for the routers of a step and the nodes of the next."""
        if self.built is None or self.built[0] is not values:
            self.built = values, build(self.graph.state, values)
        return self.built[1]

    # ---- the loop ----------------------------------------------------------------------------------------------

    def advance(self) -> Stopped | None:
        """Go on until the run ends (None) or cannot go on now. Raises `FirstFailure` and store errors."""
        try:
            while self.head.next.after or self.head.next.tasks:
                if (stopped := self._go_on()) is not None:
                    return stopped
        except StepLimit as limit:
            return Stopped(reason=str(limit))
        if self.head.next.arrived:
            raise FirstFailure(_half_filled(self.head))
        return None

    def _go_on(self) -> Stopped | None:
        """One superstep, or the effects of the last one."""
        if self.tree.draining():
            return Stopped(wake_at=self.tree.store.now())
        if self.head.next.after:
            return self._settle_effects()
        return self._held_before() or self._superstep()

    def _held_before(self) -> Stopped | None:
        """Stop before a node the run is to pause at; the gate survives edits, as its tasks do."""
        if not self.graph.interrupt_before and not self.run.pause_before:
            return None
        names = {task.node for task in self.head.next.tasks}
        held = names & (self.graph.interrupt_before | set(self.run.pause_before))
        if not held:
            return None
        gate = Task("*", self.head.next.tasks[0].since)
        known = self.known.get((gate.since, gate.name), {})
        if "answer:0" in known:
            return None
        if "asked:0" in known:
            return Stopped()
        ident = task_hash(self.run.thread_id, gate, "before")
        payload: JsonValue = {"pause_before": [*sorted(held)]}
        ask = Interrupt(ident, self.run.thread_id, gate.since, gate.name, "0", "signal", payload, self.path)
        note = PendingWrite(self.run.thread_id, gate.since, gate.name, "asked:0", dump({"id": ident}))
        return Stopped(writes=(note,), interrupts=(ask,))

    def _superstep(self) -> Stopped | None:
        finished, waiting, jobs = self._sort_tasks()
        if jobs:
            self._take_step()
            outcomes = run_all(jobs, self._keep_finished)
            finished.update((outcome.task.name, outcome) for outcome in outcomes if isinstance(outcome, Finished))
            waiting += [outcome for outcome in outcomes if isinstance(outcome, Waiting)]
            self._raise_first(outcomes)
        if waiting:
            return self._stop(finished.values(), waiting)
        self._take_step()
        self._commit_or_keep([finished[task.name] for task in self.head.next.tasks])
        return None

    def _sort_tasks(self) -> tuple[dict[str, Finished], list[Waiting], list[Callable[[], Outcome]]]:
        """The superstep's tasks: finished before, waiting still, to be run now."""
        finished: dict[str, Finished] = {}
        waiting: list[Waiting] = []
        jobs: list[Callable[[], Outcome]] = []
        seen = self.seen()
        for task in self.head.next.tasks:
            known = self._known(task)
            if "result" in known:
                finished[task.name] = read_result(self.graph.state, task, known["result"])
            elif (still := self._still_waiting(task, known)) is not None:
                waiting.append(still)
            else:
                jobs.append(partial(self._run_task, task, seen, known))
        return finished, waiting, jobs

    def _take_step(self) -> None:
        if self.begun != self.head.step:
            self.tree.take_step(self.run.thread_id)
            self.begun = self.head.step

    def _still_waiting(self, task: Task, known: Mapping[str, str]) -> Waiting | None:
        """A task that nothing new has happened to since it stopped."""
        if not known:
            return None
        if self.graph.specs[task.node].subgraph is not None:
            return None
        if any(key.startswith("asked:") and f"answer:{key[6:]}" not in known for key in _latest_asks(known)):
            return Waiting(task)
        wake_at = sleeping_until(known)
        return Waiting(task, wake_at=wake_at) if wake_at > self.tree.store.now() else None

    def _run_task(self, task: Task, seen: Any, known: dict[str, str]) -> Outcome:
        spec = self.graph.specs[task.node]
        if spec.subgraph is not None:
            self.started(task, 1)
            return self._run_subgraph(spec, spec.subgraph, task, seen)
        given = task.payload if task.sent else seen
        return attempt_task(self, self.graph.state, spec, task, given, known)

    def _keep_finished(self, outcomes: Sequence[Outcome]) -> None:
        """Keep finished siblings while others still run, otherwise a crash would repeat them."""
        done = [outcome for outcome in outcomes if isinstance(outcome, Finished)]
        if done:
            writes = [write_result(self.run.thread_id, self.graph.state, each) for each in done]
            self.record(writes, NOTHING_SPENT)

    def _raise_first(self, outcomes: Sequence[Outcome]) -> None:
        failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
        if not failed:
            return
        self._keep_finished([o for o in outcomes if isinstance(o, Finished) and "result" not in self._known(o.task)])
        if writes := [write for each in failed for write in each.writes]:
            self.record(writes, NOTHING_SPENT)
        raise FirstFailure(failed[0].error)

    def _known(self, task: Task) -> dict[str, str]:
        return self.known.setdefault((task.since, task.name), {})

    def _stop(self, finished: Any, waiting: Sequence[Waiting]) -> Stopped:
        thread, state = self.run.thread_id, self.graph.state
        kept = [write_result(thread, state, each) for each in finished if "result" not in self._known(each.task)]
        wakes = [each.wake_at for each in waiting if each.wake_at is not None]
        return Stopped(
            writes=(*kept, *(write for each in waiting for write in each.writes)),
            interrupts=tuple(ask for each in waiting for ask in each.interrupts),
            superseded=tuple(old for each in waiting for old in each.superseded),
            wake_at=min(wakes, default=None),
            reason=next((each.reason for each in waiting if each.reason), ""),
        )

    # ---- saving a whole step -----------------------------------------------------------------------------------

    def _commit_or_keep(self, done: Sequence[Finished]) -> None:
        """A reducer or router that raises does not cost the nodes their work: it is kept for the next try."""
        try:
            self._commit(done)
        except (UpdateRefused, NodeFailed) as error:
            self._keep_finished([each for each in done if "result" not in self._known(each.task)])
            raise FirstFailure(error) from error

    def _commit(self, done: Sequence[Finished]) -> None:
        step, thread = self.head.step + 1, self.run.thread_id
        change = merge(
            self.graph.state,
            self.head.values,
            [(each.task.node, each.update) for each in done],
            message_ids(thread, step),
        )
        emitted = [effect for each in done for effect in each.effects]
        tasks = tuple(each.task for each in done)
        gotos = {each.task.name: each.gotos for each in done if each.gotos}
        meta: dict[str, Any] = {"ran": [[each.task.name, each.ms] for each in done], "steps": self.tree.steps}
        if spent := sum((each.spent for each in done if each.spent is not NOTHING_SPENT), NOTHING_SPENT):
            meta["spent"] = [spent.calls, spent.input_tokens, spent.output_tokens]
        effects: tuple[EffectRow, ...] = ()
        if emitted:
            check_receipts(self.graph.state, change.values, emitted)
            effects = ledger_rows(self.run, step, emitted)
            after = Next(after=tasks, gotos=gotos, arrived=self.head.next.arrived)
        else:
            after, meta["took"] = self._follow(change.values, tasks, gotos, self.head.next.arrived, step)
        row, head = next_row(self.graph.state, self.head, change, after, thread, "step", dump(meta), "")
        memories: list[Memory] = [memory for each in done for memory in each.memories]
        self._save(row, head, effects, memories)
        self._moved(head, effects, tasks)

    def _follow(self, values: Mapping[str, Any], tasks: Sequence[Task], gotos: Any, arrived: Any, step: int) -> Any:
        return follow(self.graph, self._built(values), tasks, gotos, arrived, step)

    def _moved(self, head: Head, effects: tuple[EffectRow, ...], done: Sequence[Task]) -> None:
        self.head, self.effects = head, effects
        if self.tree.emit is not None:
            names, after = (tuple(task.name for task in tasks) for tasks in (done, head.next.tasks))
            self.tree.emit(StepCommitted(self.run.thread_id, self.path, head.step, names, after))

    # ---- effects -----------------------------------------------------------------------------------------------

    def _settle_effects(self) -> Stopped | None:
        """Let the effects of the last step out; once all are settled, one receipt checkpoint and the routers."""
        store, step = self.tree.store, self.head.step
        open_ones = [effect for effect in self.effects if effect.status not in SETTLED]
        if open_ones and self.tree.performer is not None:
            self.tree.performer.perform(self.tree.claim, open_ones)
            self.effects = store.effects(self.run.thread_id, step)
        if any(effect.status not in SETTLED for effect in self.effects):
            looks = [effect.look_at for effect in self.effects if effect.look_at]
            return Stopped(wake_at=min(looks, default=None))
        if self.tree.emit is not None:
            for effect in self.effects:
                told = EffectSettled(self.run.thread_id, self.path, effect.kind, effect.address, effect.status)
                self.tree.emit(told)
        try:
            self._receipts()
        except NodeFailed as error:
            raise FirstFailure(error) from error
        return None

    def _receipts(self) -> None:
        thread, step, next_ = self.run.thread_id, self.head.step + 1, self.head.next
        updates = receipt_updates(self.graph.state, self.effects)
        change = merge(self.graph.state, self.head.values, updates, message_ids(thread, step))
        after, took = self._follow(change.values, next_.after, next_.gotos, next_.arrived, step)
        meta = dump({"took": took, "steps": self.tree.steps})
        row, head = next_row(self.graph.state, self.head, change, after, thread, "receipt", meta, "")
        self._save(row, head)
        self._moved(head, (), ())

    def _save(self, row: Row, head: Head, effects: Sequence[EffectRow] = (), memories: Sequence[Memory] = ()) -> None:
        """Save a checkpoint, and with the last one the run's end."""
        is_last = not (head.next.tasks or head.next.after or head.next.arrived)
        ending = self._ending(self._built(head.values)) if is_last else ""
        self.saved_at = self.tree.store.commit(self.tree.claim, row, effects, memories, ending)
        self.row = row
        if ending:
            self.run = self.run._replace(ending=ending)

    def end(self) -> str:
        """End a run that nothing follows in, unless its last checkpoint has done so; says how."""
        if not self.run.ending:
            ending = self._ending(self.seen())
            self.tree.store.end(self.tree.claim, self.run.thread_id, ending)
            self.run = self.run._replace(ending=ending)
        return self.run.ending

    def _ending(self, state: State) -> str:
        return "finished" if self.run.parent else self.tree.outcome(self.graph, state)

    # ---- subgraphs ---------------------------------------------------------------------------------------------

    def _run_subgraph(self, spec: NodeSpec, graph: Graph[Any], task: Task, seen: Any) -> Outcome:
        began = time.perf_counter()
        try:
            child = self._child(spec, graph, task, task.payload if task.sent else seen)
            if (s := child.advance()) is not None:
                return Waiting(task, s.writes, s.interrupts, s.superseded, s.wake_at, s.reason)
            child.end()
            update = leaving(spec, self.graph.state, child.seen())
            return Finished(task, update, ms=round((time.perf_counter() - began) * 1000, 3))
        except FirstFailure as failure:
            return Failed(task, failure.error)
        except (NodeFailed, UpdateRefused) as error:
            return Failed(task, error)

    def _child(self, spec: NodeSpec, graph: Graph[Any], task: Task, given: Any) -> Execution:
        """The child run as it stands, or a new one."""
        thread, store = child_id(self.run.thread_id, task), self.tree.store
        try:
            loaded = store.load(thread)
        except UnknownThread:
            run, row = (
                child_record(graph, self.run, thread),
                first_row(spec, graph, self.head.next, task, given, thread),
            )
            store.adopt(self.tree.claim, run, row)
            loaded = Loaded(run, (row,))
        return Execution.load(graph, self.tree, loaded, (*self.path, task.name))


def _half_filled(head: Head) -> NodeFailed:
    """Nothing is left to do, but a join still waits: what comes after it would be dropped in silence."""
    waiting = "; ".join(f"{join} has only seen {', '.join(seen)}" for join, seen in head.next.arrived.items())
    return NodeFailed(f"The run has nothing left to do, but a join was never filled: {waiting}.")


def _latest_asks(known: Mapping[str, str]) -> Iterator[str]:
    """The last question asked at each place of a task."""
    latest: dict[str, tuple[int, str]] = {}
    for key in known:
        if key.startswith("asked:"):
            place, _, again = key[6:].partition(".")
            count = int(again or 0)
            if count >= latest.get(place, (-1, ""))[0]:
                latest[place] = (count, key)
    return (key for _, key in latest.values())
