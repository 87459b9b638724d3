"""The public face of the engine: start, advance, answer, look at, edit and fork runs."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    Checkpointer,
    Claim,
    Pause,
    Row,
    RunRecord,
)
from graphs.engine.editing import edited_row, forked_row
from graphs.engine.errors import (
    AmbiguousAnswer,
    ClaimLost,
    NothingPending,
    RunEnded,
    StepLimit,
    StoreFailed,
    UnknownThread,
    UnknownVersion,
)
from graphs.engine.events import Ended, Event, Waits
from graphs.engine.execution import Execution, FirstFailure, Performer, Stopped, Tree, input_row
from graphs.engine.graph import Graph
from graphs.engine.merge import replay
from graphs.engine.snapshot import Snapshot, snapshot_now, snapshot_then
from graphs.engine.state import State, build


def _finished(_graph: Graph[Any], _state: State) -> str:
    return "finished"


class Runner:
    """Advances runs of the graphs it knows. Threads may share one."""

    def __init__(
        self,
        checkpointer: Checkpointer,
        performer: Performer | None = None,
        deps: Any = None,
        graphs: Iterable[Graph[Any]] = (),
        outcome: Callable[[Graph[Any], State], str] = _finished,
    ) -> None:
        self.store = checkpointer
        self.performer = performer
        self.deps = deps
        self.outcome = outcome
        self._graphs: dict[tuple[str, int], Graph[Any]] = {}
        self._stopping = threading.Event()
        for graph in graphs:
            self.know(graph)

    def know(self, graph: Graph[Any]) -> None:
        """Be ready to run a graph; another structure under the same name and version is refused."""
        known = self._graphs.setdefault((graph.name, graph.version), graph)
        if known.fingerprint != graph.fingerprint:
            raise ValueError(f"{graph.name} v{graph.version} is known with another structure: give it a new version.")

    @property
    def known(self) -> dict[tuple[str, int], str]:
        """The structure this process has, by flow name and version."""
        return {key: graph.fingerprint for key, graph in self._graphs.items()}

    def drain(self) -> None:
        """Stop every run at its next checkpoint, for a deploy: they stay due for another process."""
        self._stopping.set()

    # ---- starting and going on ---------------------------------------------------------------------------------

    def start(self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None = None, **about: Any) -> str:
        """Create a run, due now, without advancing it. `about` fills the run's record (who, channel, team, model …)."""
        self.know(graph)
        thread_id = thread_id or uuid.uuid4().hex
        run = new_run(graph, thread_id, **about)
        self.store.create(run, input_row(graph, given, thread_id, run.who))
        return thread_id

    def invoke(
        self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None = None, **about: Any
    ) -> Snapshot:
        """Start a run and advance it to its next pause or end."""
        return self.advance(self.start(graph, given, thread_id, **about))

    def stream(
        self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None = None, **about: Any
    ) -> Iterator[Event]:
        """Start a run and yield what happens, in order; the last event is `Waits` or `Ended`."""
        thread_id = self.start(graph, given, thread_id, **about)
        yield from self.watch(lambda emit: self.advance(thread_id, emit))

    def watch(self, work: Callable[[Callable[[Event], None]], Any]) -> Iterator[Event]:
        """Yield what `work(emit)` tells while it goes on in another thread; what it raises is raised at the end."""
        events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work(events.put)
            except BaseException as error:
                errors.append(error)
            finally:
                events.put(None)

        thread = threading.Thread(target=run, name="stream", daemon=True)
        thread.start()
        while (event := events.get()) is not None:
            yield event
        thread.join()
        if errors:
            raise errors[0]

    def resume(self, thread_id: str, answers: Mapping[str, JsonValue] | None = None, by: str = "") -> Snapshot:
        """Answer interrupts by id and advance. Without answers: pass the breakpoint the run is held at.

        Raises `UnknownThread`, `RunEnded`, `NothingPending`, `UnknownInterrupt`, `StaleInterrupt` or
        `AmbiguousAnswer`; then no node runs.
        """
        self._check_open(thread_id)
        if answers is None:
            answers = self._only_breakpoints(thread_id)
        elif not isinstance(answers, Mapping):
            raise AmbiguousAnswer("Answers go by interrupt id: resume(thread_id, {interrupt_id: answer}).", thread_id)
        for interrupt_id, value in answers.items():
            self.store.answer(thread_id, interrupt_id, value, by)
        return self.advance(thread_id)

    def _check_open(self, thread_id: str) -> None:
        run = self.store.load(thread_id).run
        if run.root != thread_id:
            raise UnknownThread(f"{thread_id} is a part of {run.root}: resume that.", thread_id)
        if run.ending:
            raise RunEnded(f"The run has ended: {run.ending}.", thread_id)

    def _only_breakpoints(self, thread_id: str) -> dict[str, JsonValue]:
        pending = self.store.interrupts(thread_id)
        held = [ask for ask in pending if ask.task == "*"]
        if held:
            return {ask.id: None for ask in held}
        if pending:
            listed = ", ".join(ask.id for ask in pending)
            raise AmbiguousAnswer(f"The run waits for answers; say which by id: {listed}.", thread_id)
        if not self.store.load(thread_id).run.error:
            raise NothingPending("The run asks nothing.", thread_id)
        self.store.reopen(thread_id)
        return {}

    def retry(self, thread_id: str, max_steps: int | None = None) -> Snapshot:
        """Advance a failed or halted run again from where it stopped, with more steps if given."""
        self.store.reopen(thread_id, max_steps)
        return self.advance(thread_id)

    def advance(self, thread_id: str, emit: Callable[[Event], None] | None = None) -> Snapshot:
        """Claim a due run, take in decisions, and go on to its next pause, sleep or end.

        Raises `NotNow` when somebody else has it or nothing is due, `NodeFailed`, `UpdateRefused` (the run has
        failed), `ClaimLost` or `StoreFailed` (it will be taken up again).
        """
        claim = self.store.claim(thread_id, self.known)
        return self.advance_claimed(claim, emit)

    def advance_claimed(self, claim: Claim, emit: Callable[[Event], None] | None = None) -> Snapshot:
        """Advance a run whose claim is held already; the claim is given back in any case."""
        tell = emit or _silent
        try:
            self._go(claim, tell)
        except FirstFailure as failure:
            self._fail(claim, failure.error, tell)
            raise failure.error from None
        except (ClaimLost, StoreFailed):
            claim.lost = True
            raise
        except Exception as error:
            self._fail(claim, error, tell)
            raise
        except BaseException:
            claim.lost = True  # otherwise its lease would be renewed as long as this process lives
            raise
        return self.get_state(claim.thread_id)

    def _go(self, claim: Claim, tell: Callable[[Event], None]) -> None:
        self.store.settle(claim)
        execution = self._execution(claim, tell)
        try:
            stopped = execution.advance()
        except StepLimit as limit:
            stopped = Stopped(reason=str(limit))
        if stopped is None:
            self._end(claim, execution, tell)
        else:
            self._pause(claim, stopped, tell)

    def _fail(self, claim: Claim, error: Exception, tell: Callable[[Event], None]) -> None:
        self.store.end(claim, claim.thread_id, "failed", str(error))
        tell(Ended(claim.thread_id, (), "failed", str(error)))

    def _execution(self, claim: Claim, emit: Callable[[Event], None]) -> Execution:
        loaded = self.store.load(claim.thread_id)
        graph = self.graph_of(loaded.run)
        tree = Tree(
            store=self.store,
            claim=claim,
            performer=self.performer,
            deps=self.deps,
            max_steps=loaded.run.max_steps or graph.max_steps,
            steps=loaded.steps,
            emit=emit,
            draining=self._stopping.is_set,
        )
        return Execution.load(graph, tree, loaded)

    def _pause(self, claim: Claim, stopped: Stopped, tell: Callable[[Event], None]) -> None:
        pause = Pause(stopped.writes, stopped.interrupts, stopped.superseded, stopped.wake_at, stopped.reason)
        self.store.pause(claim, pause)
        tell(Waits(claim.thread_id, (), stopped.interrupts, stopped.wake_at, stopped.reason))

    def _end(self, claim: Claim, execution: Execution, tell: Callable[[Event], None]) -> None:
        state = build(execution.graph.state, execution.head.values)
        ending = self.outcome(execution.graph, state)
        self.store.end(claim, claim.thread_id, ending)
        tell(Ended(claim.thread_id, (), ending))

    def graph_of(self, run: RunRecord) -> Graph[Any]:
        """The graph a run was started with. Raises `UnknownVersion`."""
        graph = self._graphs.get((run.flow, run.version))
        if graph is None or graph.fingerprint != run.fingerprint:
            raise UnknownVersion(_unknown(run), run.thread_id)
        return graph

    # ---- looking -----------------------------------------------------------------------------------------------

    def get_state(self, thread_id: str, step: int | None = None) -> Snapshot:
        """The run now, or as it was after `step`. Raises `UnknownThread`, or `LookupError` for a step it never had."""
        loaded = self.store.load(thread_id)
        graph = self._graph_for(loaded.run)
        if step is None:
            return snapshot_now(graph, loaded, self.store.interrupts(thread_id))
        return snapshot_then(graph, loaded.run, self._rows_at(thread_id, step))

    def get_state_history(
        self, thread_id: str, before: int | None = None, limit: int | None = None
    ) -> Iterator[Snapshot]:
        """The run after each of its steps, newest first."""
        loaded = self.store.load(thread_id)
        graph = self._graph_for(loaded.run)
        rows = self.store.history(thread_id, before=before, limit=limit)
        wanted = len(rows) if limit is None else min(limit, len(rows))
        for place in range(wanted):
            older = list(reversed(rows[place:]))
            first = max(n for n, row in enumerate(older) if row.full)
            yield snapshot_then(graph, loaded.run, older[first:])

    def _graph_for(self, run: RunRecord) -> Graph[Any]:
        for graph in self._graphs.values():
            if (found := find_graph(graph, run)) is not None:
                return found
        raise UnknownVersion(_unknown(run), run.thread_id)

    # ---- changing ----------------------------------------------------------------------------------------------

    def update_state(
        self, thread_id: str, update: Mapping[str, Any], as_node: str | None = None, author: str = ""
    ) -> int:
        """Edit the state of a run that nobody advances; returns the new step.

        What is pending stays pending and is routed by the edited state. With `as_node` the edit counts as that
        node's own update: the routers after it decide what comes next. Raises `UpdateRefused`, `NotNow`, `RunEnded`.
        """
        loaded = self.store.load(thread_id)
        if loaded.run.ending:
            raise RunEnded(f"The run has ended: {loaded.run.ending}.", thread_id)
        graph = self._graph_for(loaded.run)
        row = edited_row(graph, loaded, update, as_node, author)
        self.store.edit(thread_id, row)
        return row.step

    def fork(
        self,
        thread_id: str,
        step: int,
        update: Mapping[str, Any] | None = None,
        new_thread: str | None = None,
        author: str = "",
    ) -> str:
        """A new run that goes on from a settled step of another; earlier nodes do not run again. Returns its id."""
        loaded = self.store.load(thread_id)
        if loaded.run.root != thread_id:
            raise UnknownThread(f"{thread_id} is a part of {loaded.run.root}: fork that.", thread_id)
        graph = self._graph_for(loaded.run)
        rows = self._rows_at(thread_id, step)
        new = new_thread or uuid.uuid4().hex
        run = replace(loaded.run, thread_id=new, root=new, parent="", ending="", error="")
        self.store.create(run, forked_row(graph, replay(graph.state, rows), update, new, thread_id, author))
        return new

    def _rows_at(self, thread_id: str, step: int) -> list[Row]:
        rows = list(reversed(self.store.history(thread_id, before=step + 1, limit=1)))
        if not rows or rows[-1].step != step:
            raise LookupError(f"{thread_id} has no step {step}.")
        return rows


def new_run(graph: Graph[Any], thread_id: str, **about: Any) -> RunRecord:
    """The record of a new root run."""
    about.setdefault("max_steps", graph.max_steps)
    return RunRecord(thread_id, graph.name, graph.version, graph.fingerprint, thread_id, **about)


def find_graph(graph: Graph[Any], run: RunRecord) -> Graph[Any] | None:
    """The graph of a run: `graph` itself or one of its subgraphs."""
    if (graph.name, graph.version, graph.fingerprint) == (run.flow, run.version, run.fingerprint):
        return graph
    inner = (find_graph(spec.subgraph, run) for spec in graph.specs.values() if spec.subgraph is not None)
    return next((found for found in inner if found is not None), None)


def _unknown(run: RunRecord) -> str:
    return (
        f"{run.flow} v{run.version} with structure {run.fingerprint} is not in this process: deploy the version the "
        f"run was started with beside the new one, or move the run with migrate-run."
    )


def _silent(_event: Event) -> None:
    return None
