"""One run of a tree being advanced under a claim: superstep after superstep, until it pauses, sleeps or ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    SETTLED,
    Checkpointer,
    Claim,
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
from graphs.engine.events import Chunk, EffectSettled, Event, NodeStarted, StepCommitted
from graphs.engine.graph import Graph, NodeSpec
from graphs.engine.merge import Head, first_values, full_text, merge, message_ids, next_row, replay
from graphs.engine.receipts import check_receipts, ledger_rows, receipt_updates
from graphs.engine.routing import entry, follow
from graphs.engine.state import build, read_update
from graphs.engine.superstep import (
    Failed,
    Finished,
    Outcome,
    Waiting,
    attempt_task,
    read_result,
    run_all,
    sleeping_until,
    write_result,
)
from graphs.engine.values import dump


class Performer(Protocol):
    """Lets committed effects out, through the ledger."""

    def perform(self, claim: Claim, effects: Sequence[EffectRow]) -> None:
        """Send what is pending and free to go; look up what was left sending beyond its bound."""
        ...


@dataclass(slots=True)
class Tree:
    """What all runs of one tree share while they are advanced."""

    store: Checkpointer
    claim: Claim
    performer: Performer | None
    deps: Any
    max_steps: int
    steps: int
    emit: Callable[[Event], None]
    draining: Callable[[], bool]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take_step(self, thread_id: str) -> None:
        """One more superstep of the whole tree begins; raises `StepLimit`."""
        with self.lock:
            if self.steps >= self.max_steps:
                raise StepLimit(f"The run has used its {self.max_steps} steps; give it more to go on.", thread_id)
            self.steps += 1


@dataclass(frozen=True, slots=True)
class Stopped:
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


@dataclass(slots=True)
class Execution:
    """The state of one run in memory. `path` are the nodes that lead to it through subgraphs."""

    graph: Graph[Any]
    tree: Tree
    run: RunRecord
    head: Head
    known: dict[tuple[int, str], dict[str, str]]
    effects: tuple[EffectRow, ...]
    path: tuple[str, ...] = ()
    begun: int = -1  # the step whose successor has been counted

    @classmethod
    def load(cls, graph: Graph[Any], tree: Tree, loaded: Loaded, path: tuple[str, ...] = ()) -> Execution:
        """Take up a run from what the store holds."""
        known: dict[tuple[int, str], dict[str, str]] = {}
        for write in loaded.writes:
            known.setdefault((write.step, write.task), {})[write.key] = write.value
        return cls(graph, tree, loaded.run, replay(graph.state, loaded.rows), known, loaded.effects, path)

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

    def chunk(self, task: Task, data: JsonValue) -> None:
        """Show a piece of work in progress."""
        self.tree.emit(Chunk(self.run.thread_id, self.path, task.node, data))

    # ---- the loop ----------------------------------------------------------------------------------------------

    def advance(self) -> Stopped | None:
        """Go on until the run ends (None) or cannot go on now. Raises `FirstFailure`, `StepLimit`, store errors."""
        while True:
            if self.head.next.after:
                if (stopped := self._settle_effects()) is not None:
                    return stopped
                continue
            if not self.head.next.tasks:
                return None
            if (stopped := self._held_before()) is not None:
                return stopped
            if (stopped := self._superstep()) is not None:
                return stopped

    def _held_before(self) -> Stopped | None:
        """Stop for a deploy, or before a node the run is to pause at."""
        if self.tree.draining():
            return Stopped(wake_at=self.tree.store.now(), reason="")
        names = {task.node for task in self.head.next.tasks}
        held = names & (self.graph.interrupt_before | set(self.run.pause_before))
        if not held:
            return None
        gate = Task("*", self.head.step)
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
        seen = build(self.graph.state, self.head.values)
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
        if self.graph.specs[task.node].subgraph is not None:
            return None
        if any(key.startswith("asked:") and f"answer:{key[6:]}" not in known for key in _latest_asks(known)):
            return Waiting(task)
        wake_at = sleeping_until(known)
        return Waiting(task, wake_at=wake_at) if wake_at > self.tree.store.now() else None

    def _run_task(self, task: Task, seen: Any, known: dict[str, str]) -> Outcome:
        spec = self.graph.specs[task.node]
        self.tree.emit(NodeStarted(self.run.thread_id, self.path, task.node, task.since))
        if spec.subgraph is not None:
            return self._run_subgraph(spec, spec.subgraph, task, seen)
        given = task.payload if task.sent else seen
        return attempt_task(self, self.graph.state, spec, task, given, known)

    def _keep_finished(self, outcomes: Sequence[Outcome]) -> None:
        """Keep finished siblings while others still run, otherwise a crash would repeat them."""
        done = [outcome for outcome in outcomes if isinstance(outcome, Finished)]
        if done:
            self.record([write_result(self.run.thread_id, self.graph.state, each) for each in done], Spent())

    def _raise_first(self, outcomes: Sequence[Outcome]) -> None:
        failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
        if not failed:
            return
        kept = [o for o in outcomes if isinstance(o, Finished) and "result" not in self._known(o.task)]
        if kept:
            self._keep_finished(kept)
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
        check_receipts(self.graph.state, self.head.values, emitted)
        tasks = tuple(each.task for each in done)
        gotos = {each.task.name: each.gotos for each in done if each.gotos}
        meta: dict[str, Any] = {"ran": [[each.task.name, each.ms] for each in done]}
        spent = sum((each.spent for each in done), Spent())
        if spent != Spent():
            meta["spent"] = [spent.calls, spent.input_tokens, spent.output_tokens]
        if emitted:
            after = Next(after=tasks, gotos=gotos, arrived=self.head.next.arrived)
        else:
            after, meta["took"] = self._follow(change.values, tasks, gotos, self.head.next.arrived, step)
        row = Row(thread, step, "step", "", "", False, dump(meta))
        filled, head = next_row(self.graph.state, self.head, change, after, row)
        effects = ledger_rows(self.run, step, emitted)
        memories: list[Memory] = [memory for each in done for memory in each.memories]
        self.tree.store.commit(self.tree.claim, filled, effects, memories)
        self._moved(head, effects, tuple(task.name for task in tasks))

    def _follow(self, values: Mapping[str, Any], tasks: Sequence[Task], gotos: Any, arrived: Any, step: int) -> Any:
        return follow(self.graph, build(self.graph.state, values), tasks, gotos, arrived, step)

    def _moved(self, head: Head, effects: tuple[EffectRow, ...], names: tuple[str, ...]) -> None:
        self.head, self.effects = head, effects
        after = tuple(task.name for task in head.next.tasks)
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
        for effect in self.effects:
            self.tree.emit(EffectSettled(self.run.thread_id, self.path, effect.kind, effect.address, effect.status))
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
        row = Row(thread, step, "receipt", "", "", False, dump({"took": took}))
        filled, head = next_row(self.graph.state, self.head, change, after, row)
        self.tree.store.commit(self.tree.claim, filled)
        self._moved(head, (), ())

    # ---- subgraphs ---------------------------------------------------------------------------------------------

    def _run_subgraph(self, spec: NodeSpec, graph: Graph[Any], task: Task, seen: Any) -> Outcome:
        try:
            child = self._child(spec, graph, task, seen)
            stopped = child.advance()
            if stopped is not None:
                s = stopped
                return Waiting(task, s.writes, s.interrupts, s.superseded, s.wake_at, s.reason)
            if not child.run.ending:
                self.tree.store.end(self.tree.claim, child.run.thread_id, "finished")
            update = self._mapped(spec, "leave", spec.leave, build(graph.state, child.head.values))
            return Finished(task, read_update(self.graph.state, spec.name, update))
        except FirstFailure as failure:
            return Failed(task, failure.error)
        except (NodeFailed, UpdateRefused) as error:
            return Failed(task, error)

    def _child(self, spec: NodeSpec, graph: Graph[Any], task: Task, seen: Any) -> Execution:
        thread = f"{self.run.thread_id}/{task.since}.{task.name}"
        store, path = self.tree.store, (*self.path, task.name)
        try:
            return Execution.load(graph, self.tree, store.load(thread), path)
        except UnknownThread:
            given = task.payload if task.sent else seen
            run = RunRecord(
                thread, graph.name, graph.version, graph.fingerprint, self.run.root, self.run.thread_id,
                self.run.model, self.run.who, self.run.team, self.run.channel,
            )  # fmt: skip
            row = input_row(graph, self._mapped(spec, "enter", spec.enter, given), thread)
            store.adopt(self.tree.claim, run, row)
            return Execution.load(graph, self.tree, store.load(thread), path)

    def _mapped(self, spec: NodeSpec, name: str, mapping: Any, given: Any) -> Mapping[str, Any]:
        try:
            mapped: Mapping[str, Any] = mapping(given)
            return mapped
        except Exception as error:
            raise NodeFailed(f"{name} of {spec.name} raised {type(error).__name__}: {error}") from error


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


def input_row(graph: Graph[Any], given: Mapping[str, Any], thread_id: str, author: str = "") -> Row:
    """The first checkpoint of a run. Raises `UpdateRefused`, or `NodeFailed` from a router after START."""
    update = read_update(graph.state, "The input", given)
    change = first_values(graph.state, update, message_ids(thread_id, 0))
    after, took = entry(graph, build(graph.state, change.values), 0)
    text = full_text(graph.state, change.values)
    return Row(thread_id, 0, "input", after.to_text(), text, True, dump({"took": took}), author)
