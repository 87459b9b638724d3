"""The public face of the engine: start, advance, answer, look at, edit and fork runs."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from graphs.engine.checkpoint import (
    Checkpointer,
    Claim,
    Pause,
    Row,
    RunRecord,
)
from graphs.engine.editing import edited_row, forked, refuse_jump, rows_at, sent_before
from graphs.engine.errors import (
    AmbiguousAnswer,
    ClaimLost,
    GraphError,
    NothingPending,
    RunEnded,
    RunError,
    StoreFailed,
    UnknownThread,
    UnknownVersion,
    UpdateRefused,
)
from graphs.engine.events import Ended, Event, Waits
from graphs.engine.execution import Execution
from graphs.engine.graph import Graph
from graphs.engine.merge import Head
from graphs.engine.snapshot import Sent, Snapshot, snapshot_now, snapshot_then, wakes_at
from graphs.engine.state import State, is_plain
from graphs.engine.subgraphs import graph_at, input_row
from graphs.engine.tree import FirstFailure, Performer, Stopped, Tree


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
            raise GraphError(f"{graph.name} v{graph.version} is known with another structure: give it a new version.")

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
        run, row = self._first(graph, given, thread_id, about)
        self.store.create(run, row)
        return run.thread_id

    def _first(
        self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None, about: Mapping[str, Any]
    ) -> tuple[RunRecord, Row]:
        self.know(graph)
        run = new_run(graph, _thread_name(thread_id), **about)
        return run, input_row(graph, given, run.thread_id, run.who)

    def invoke(
        self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None = None, **about: Any
    ) -> Snapshot:
        """Start a run and advance it to its next pause or end."""
        return self.advance_claimed(self.store.begin(*self._first(graph, given, thread_id, about)))

    def stream(
        self, graph: Graph[Any], given: Mapping[str, Any], thread_id: str | None = None, **about: Any
    ) -> Iterator[Event]:
        """Start a run and yield what happens, in order; the last event is `Waits` or `Ended`."""
        yield from self.watch(self.start(graph, given, thread_id, **about))

    def watch(self, thread_id: str) -> Iterator[Event]:
        """Advance a due run and yield what happens; what it raises is raised at the end.

        Closing the iterator stops the run at its next checkpoint, as `drain` does, and waits for that.
        """
        claim, dropped = self.store.claim(thread_id, self.known), threading.Event()
        events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        errors: list[BaseException] = []

        def run() -> None:
            try:
                self.advance_claimed(claim, events.put, dropped.is_set)
            except BaseException as error:
                errors.append(error)
            finally:
                events.put(None)

        thread = threading.Thread(target=run, name="stream", daemon=True)
        thread.start()
        try:
            while (event := events.get()) is not None:
                yield event
        finally:
            dropped.set()
            thread.join()
        if errors:
            raise errors[0]

    def resume(self, thread_id: str, answers: Mapping[str, JsonValue] | None = None, by: str = "") -> Snapshot:
        """Answer interrupts by id and advance. Without answers: pass the breakpoint the run is held at.

        Raises `UnknownThread`, `RunEnded`, `UnknownVersion`, `NothingPending`, `UnknownInterrupt`, `StaleInterrupt`
        or `AmbiguousAnswer`; then nothing is kept and no node runs.
        """
        self._check_open(thread_id)
        if answers is not None and not isinstance(answers, Mapping):
            raise AmbiguousAnswer("Answers go by interrupt id: resume(thread_id, {interrupt_id: answer}).", thread_id)
        for interrupt_id, value in self._in_order(thread_id, answers or self._only_breakpoints(thread_id)):
            self.store.answer(thread_id, interrupt_id, value, by)
        return self.advance(thread_id)

    def _in_order(self, thread_id: str, answers: Mapping[str, JsonValue]) -> list[tuple[str, JsonValue]]:
        """Answers with those first that the store will refuse, so that it refuses before it has kept any."""
        for interrupt_id, value in answers.items():
            if not is_plain(value):
                raise UpdateRefused(f"The answer to {interrupt_id} is no JSON: {value!r}.", thread_id)
        if len(answers) == 1:
            return list(answers.items())
        pending = {ask.id for ask in self.store.interrupts(thread_id)}
        return sorted(answers.items(), key=lambda answer: answer[0] in pending)

    def _check_open(self, thread_id: str) -> None:
        run = self.store.run(thread_id)
        if run.root != thread_id:
            raise UnknownThread(f"{thread_id} is a part of {run.root}: resume that.", thread_id)
        if run.ending:
            raise RunEnded(f"The run has ended: {run.ending}.", thread_id)
        self.graph_of(run)

    def _only_breakpoints(self, thread_id: str) -> dict[str, JsonValue]:
        pending = self.store.interrupts(thread_id)
        held = [ask for ask in pending if ask.task == "*"]
        if held:
            return {ask.id: None for ask in held}
        if pending:
            listed = ", ".join(ask.id for ask in pending)
            raise AmbiguousAnswer(f"The run waits for answers; say which by id: {listed}.", thread_id)
        if (status := self.get_state(thread_id).status) != "halted":
            raise NothingPending(f"The run asks nothing, it is {status}.", thread_id)
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

    def advance_claimed(
        self, claim: Claim, emit: Callable[[Event], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> Snapshot:
        """Advance a run whose claim is held already; the claim is given back in any case.

        When `stop` says so the run stops at its next checkpoint and stays due.
        """
        tell = emit or _silent
        try:
            return self._go(claim, tell, stop or self._stopping.is_set)
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

    def _go(self, claim: Claim, tell: Callable[[Event], None], stop: Callable[[], bool]) -> Snapshot:
        execution = self._execution(claim, tell, stop)
        stopped = execution.advance()
        if stopped is None:
            return self._ended(claim, execution, tell)
        self._pause(claim, stopped, tell)
        return self._state_now(claim.thread_id, execution.head)

    def _fail(self, claim: Claim, error: Exception, tell: Callable[[Event], None]) -> None:
        self.store.end(claim, claim.thread_id, "failed", str(error))
        tell(Ended(claim.thread_id, (), "failed", str(error)))

    def _execution(self, claim: Claim, emit: Callable[[Event], None], stop: Callable[[], bool]) -> Execution:
        loaded, claim.loaded = claim.loaded, None
        assert loaded is not None
        graph = self.graph_of(loaded.run)
        tree = Tree(
            store=self.store,
            claim=claim,
            performer=self.performer,
            deps=self.deps,
            max_steps=loaded.run.max_steps or graph.max_steps,
            steps=loaded.steps,
            outcome=self.outcome,
            emit=None if emit is _silent else emit,
            draining=lambda: stop() or self._stopping.is_set(),
        )
        return Execution.load(graph, tree, loaded)

    def _pause(self, claim: Claim, stopped: Stopped, tell: Callable[[Event], None]) -> None:
        pause = Pause(stopped.writes, stopped.interrupts, stopped.superseded, stopped.wake_at, stopped.reason)
        self.store.pause(claim, pause)
        if tell is not _silent:
            asked = self.store.interrupts(claim.thread_id)
            tell(Waits(claim.thread_id, (), asked, stopped.wake_at, stopped.reason))

    def _ended(self, claim: Claim, execution: Execution, tell: Callable[[Event], None]) -> Snapshot:
        ending = execution.end()
        tell(Ended(claim.thread_id, (), ending))
        snapshot = snapshot_then(
            execution.graph, execution.run, (execution.row._replace(at=execution.saved_at),), execution.head
        )
        return snapshot._replace(status=ending, effects=execution.effects)

    def graph_of(self, run: RunRecord) -> Graph[Any]:
        """The graph a run was started with. Raises `UnknownVersion`."""
        graph = self._graphs.get((run.flow, run.version))
        if graph is None or graph.fingerprint != run.fingerprint:
            raise UnknownVersion(_unknown(run), run.thread_id)
        return graph

    # ---- looking -----------------------------------------------------------------------------------------------

    def get_state(self, thread_id: str, step: int | None = None) -> Snapshot:
        """The run now, or as it was after `step`. Raises `UnknownThread`, or `LookupError` for a step it never had."""
        if step is None:
            return self._state_now(thread_id)
        run = self.store.run(thread_id)
        return snapshot_then(self._graph_for(run), run, rows_at(self.store, thread_id, step))

    def _state_now(self, thread_id: str, head: Head | None = None) -> Snapshot:
        loaded = self.store.load(thread_id)
        graph = self._graph_for(loaded.run)
        wake_at = None if loaded.run.ending else wakes_at(self.store, graph, loaded)
        asked = self.store.interrupts(thread_id) if loaded.open else ()
        return snapshot_now(graph, loaded, asked, wake_at, head)

    def get_state_history(
        self, thread_id: str, before: int | None = None, limit: int | None = None
    ) -> Iterator[Snapshot]:
        """The run after each of its steps, newest first."""
        loaded = self.store.load(thread_id)
        graph = self._graph_for(loaded.run)
        rows = self.store.history(thread_id, before=before, limit=limit)
        wanted = len(rows) if limit is None else min(limit, len(rows))
        for place in range(wanted):
            first = next(n for n in range(place, len(rows)) if rows[n].full)
            yield snapshot_then(graph, loaded.run, reversed(rows[place : first + 1]))

    def sent_before(self, thread_id: str) -> list[Sent]:
        """What the lines that a run was forked from had sent, or may have sent, by then."""
        return sent_before(self.store, self.store.run(thread_id).root)

    def _graph_for(self, run: RunRecord) -> Graph[Any]:
        """The graph of a root or child run."""
        if not run.parent:
            return self.graph_of(run)
        return graph_at(self.graph_of(self.store.run(run.root)), run.root, run.thread_id)

    # ---- changing ----------------------------------------------------------------------------------------------

    def update_state(
        self, thread_id: str, update: Mapping[str, Any], as_node: str | None = None, author: str = ""
    ) -> int:
        """Edit the state of a run that nobody advances; returns the new step.

        What is pending stays pending and is routed by the edited state. With `as_node` the edit counts as that
        node's own update: the routers after it decide what comes next, and a breakpoint that held the run holds it no
        more once it is resumed. Raises `UpdateRefused`, `RunEnded`, `EffectsPending`, or `NotNow` while somebody
        advances the run, or if with `as_node` a question would lose the node that asks it.
        """
        loaded = self.store.load(thread_id)
        if loaded.run.ending:
            raise RunEnded(f"The run has ended: {loaded.run.ending}.", thread_id)
        graph = self._graph_for(loaded.run)
        row = edited_row(graph, loaded, update, as_node, author)
        if as_node is not None:
            refuse_jump(thread_id, self.store.interrupts(thread_id))
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
        """A new run that goes on from a settled step of another; earlier nodes do not run again. Returns its id.

        A step of a child run may be named too: the fork's ancestors of it start where they had started the child.
        The new run has the steps that were left at that step, and all that was spent so far counts for it. Raises
        `UpdateRefused`, `EffectsPending`, or `LookupError` for a step that is not there.
        """
        run = self.store.run(thread_id)
        root_graph = self.graph_of(run if run.root == thread_id else self.store.run(run.root))
        new = _thread_name(new_thread)
        self.store.create(*forked(self.store, root_graph, run, step, update, new, author))
        return new


def new_run(graph: Graph[Any], thread_id: str, **about: Any) -> RunRecord:
    """The record of a new root run."""
    about.setdefault("max_steps", graph.max_steps)
    about["pause_before"] = tuple(about.get("pause_before", ()))
    if unknown := [name for name in about["pause_before"] if name not in graph.specs]:
        raise GraphError(f"pause_before names {', '.join(map(repr, unknown))}, which {graph.name} does not have.")
    return RunRecord(thread_id, graph.name, graph.version, graph.fingerprint, thread_id, **about)


def _thread_name(given: str | None) -> str:
    if given is not None and (not given or "/" in given):
        raise RunError(f"{given!r} cannot name a run: '/' leads to the runs of subgraphs.", given)
    return given or uuid.uuid4().hex


def _unknown(run: RunRecord) -> str:
    return (
        f"{run.flow} v{run.version} with structure {run.fingerprint} is not in this process: deploy the version the "
        f"run was started with beside the new one, or move the run with migrate-run."
    )


def _silent(_event: Event) -> None:
    return None
