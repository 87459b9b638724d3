"""One superstep: active tasks side by side, each ending finished, waiting, asleep or failed."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, NamedTuple

from graphs.engine.checkpoint import NOTHING_SPENT, Interrupt, Memory, PendingWrite, Spent, Task
from graphs.engine.commands import Command, Halt, Later, Send
from graphs.engine.effects import Effect, Receipt
from graphs.engine.errors import ClaimLost, EngineError, NodeFailed, StoreFailed, UpdateRefused
from graphs.engine.graph import NodeSpec
from graphs.engine.parallel import POOL
from graphs.engine.routing import check_send, write_gotos
from graphs.engine.runtime import Paused, Runtime, World
from graphs.engine.shape import END
from graphs.engine.state import Overwrite, State, keys_of, read_update
from graphs.engine.values import dump, load


class Emitted(NamedTuple):
    """An effect as a node returned it, before it is numbered."""

    kind: str
    to: str
    content: str
    payload: dict[str, Any]
    into: str


class Finished(NamedTuple):
    """A task that is done: what it writes, where it goes, what it wants done outside."""

    task: Task
    update: Mapping[str, Any]
    gotos: Any = None
    effects: tuple[Emitted, ...] = ()
    memories: tuple[Memory, ...] = ()
    ms: float = 0.0
    spent: Spent = NOTHING_SPENT


class Waiting(NamedTuple):
    """A task that cannot go on: it asked, sleeps (`wake_at`, microseconds) or was halted (`reason`)."""

    task: Task
    writes: tuple[PendingWrite, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    superseded: tuple[str, ...] = ()
    wake_at: int | None = None
    reason: str = ""


class Failed(NamedTuple):
    """A task that raised; `writes` is what it had recorded by then."""

    task: Task
    error: Exception
    writes: tuple[PendingWrite, ...] = ()


Outcome = Finished | Waiting | Failed


def attempt_task(
    world: World, graph_state: type[State], spec: NodeSpec, task: Task, seen: Any, known: dict[str, str]
) -> Outcome:
    """Run one node function with its retries; everything it records is added to `known`."""
    began = time.perf_counter()
    runtime: Runtime[Any] = Runtime(world, task, known)
    while True:
        world.started(task, runtime.attempt)
        try:
            return _finished(graph_state, spec, task, _call(spec, seen, runtime), runtime, began)
        except (Paused, Later, Halt) as signal:
            return _waiting(task, runtime, runtime.paused or signal)
        except (ClaimLost, StoreFailed):
            raise
        except Exception as error:
            if runtime.paused is not None:
                return _waiting(task, runtime, runtime.paused)
            if spec.retry is None or not _again(spec, runtime.attempt, error):
                return Failed(task, _blame(spec.name, error), tuple(runtime.unsaved))
            time.sleep(spec.retry.wait(runtime.attempt))
            runtime = _next_attempt(runtime, known)


def _next_attempt(before: Runtime[Any], known: dict[str, str]) -> Runtime[Any]:
    """A fresh attempt that sees what the one before has recorded, saved or not, and counts what it has spent."""
    known.update((write.key, write.value) for write in before.unsaved)
    unsaved = list(before.unsaved)
    return Runtime(before.world, before.task, known, unsaved=unsaved, spent=before.spent, attempt=before.attempt + 1)


def _call(spec: NodeSpec, seen: Any, runtime: Runtime[Any]) -> Any:
    """Call the node; a pause counts even if the node has caught its signal and went on."""
    returned = _call_in_time(spec, seen, runtime)
    if runtime.paused is not None:
        raise runtime.paused
    return returned


def _call_in_time(spec: NodeSpec, seen: Any, runtime: Runtime[Any]) -> Any:
    assert spec.run is not None
    takes_runtime = _takes_runtime(spec.run)
    arguments = (seen, runtime) if takes_runtime else (seen,)
    if spec.timeout is None:
        return spec.run(*arguments)
    future = POOL.submit(spec.run, *arguments)
    try:
        return future.result(spec.timeout)
    except FutureTimeout:
        if future.done():
            raise
        runtime.abandon()
        raise TimeoutError(f"no result within {spec.timeout:g} s") from None


_TAKES: dict[Any, bool] = {}
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def _takes_runtime(run: Any) -> bool:
    """Whether a node wants the runtime too: it may take the state alone, and bind more by defaults."""
    try:
        return _TAKES[run]
    except (KeyError, TypeError):
        pass
    given = [p for p in inspect.signature(run).parameters.values() if p.kind in _POSITIONAL and p.default is p.empty]
    takes = len(given) > 1 or any(p.kind is p.VAR_POSITIONAL for p in given)
    with suppress(TypeError):
        _TAKES[run] = takes
    return takes


def _again(spec: NodeSpec, attempt: int, error: Exception) -> bool:
    policy = spec.retry
    return policy is not None and attempt < policy.max_attempts and isinstance(error, policy.retry_on)


def _blame(name: str, error: Exception) -> Exception:
    if isinstance(error, EngineError):
        return error
    failed = NodeFailed(f"{name} raised {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


def _finished(
    graph_state: type[State], spec: NodeSpec, task: Task, returned: Any, runtime: Runtime[Any], began: float
) -> Finished:
    """Check what a node returned, so that nothing of it is refused later."""
    gotos, effects, update = None, tuple[Emitted, ...](), returned
    if isinstance(returned, Command):
        update = returned.update
        gotos = _gotos(spec, returned.goto) if returned.goto else None
        effects = tuple(_emitted(graph_state, spec.name, effect) for effect in returned.effects)
    update = read_update(graph_state, spec.name, update)
    ms = round((time.perf_counter() - began) * 1000, 3)
    return Finished(task, update, gotos, effects, tuple(runtime.memories), ms, runtime.spent)


def _gotos(spec: NodeSpec, goto: Any) -> Any:
    targets = [goto] if isinstance(goto, str | Send) else list(goto)
    for target in targets:
        name = target.node if isinstance(target, Send) else target
        if name not in spec.destinations or (isinstance(target, Send) and name == END):
            raise NodeFailed(f"{spec.name} goes to {name!r}, which is none of its destinations {spec.destinations}.")
        if isinstance(target, Send):
            check_send(spec.name, target)
    return write_gotos(targets)


def _emitted(graph_state: type[State], node: str, effect: Any) -> Emitted:
    """Check an effect before anything is committed: also that the state can take its receipt."""
    if not isinstance(effect, Effect):
        raise UpdateRefused(f"{node} returned {effect!r} among its effects, which is none.")
    if effect.into:
        receipt = Receipt(kind=effect.kind, to=effect.to, status="sent")
        read_update(graph_state, f"The receipt of {effect.kind} from {node}", {effect.into: receipt})
    return Emitted(effect.kind, effect.to, effect.content, effect.payload(), effect.into)


def _waiting(task: Task, runtime: Runtime[Any], signal: BaseException) -> Waiting:
    writes = tuple(runtime.unsaved)
    if isinstance(signal, Paused):
        asked = (signal.new,) if signal.new else ()
        return Waiting(task, writes, asked, (signal.superseded,) if signal.superseded else ())
    if isinstance(signal, Halt):
        return Waiting(task, writes, reason=signal.reason)
    assert isinstance(signal, Later)
    wake_at = round(signal.until.timestamp() * 1_000_000)
    n = sum(key.startswith("later:") for key in runtime.known)
    note = PendingWrite(runtime.thread_id, task.since, task.name, f"later:{n}", dump(wake_at))
    return Waiting(task, (*writes, note), wake_at=wake_at, reason=signal.reason)


def sleeping_until(known: Mapping[str, str]) -> int:
    """The latest time a task said it would sleep until, or 0."""
    return max((int(load(text)) for key, text in known.items() if key.startswith("later:")), default=0)


def write_result(thread_id: str, state: type[State], done: Finished) -> PendingWrite:
    """A finished sibling as a pending write, so that it is not repeated."""
    keys = keys_of(state)
    update = {}
    for name, value in done.update.items():
        whole = isinstance(value, Overwrite)
        adapter = keys[name].adapter if whole else keys[name].update_adapter
        update[name] = [whole, adapter.dump_python(value.value if isinstance(value, Overwrite) else value, mode="json")]
    parts = {
        "update": update,
        "gotos": done.gotos,
        "effects": [[e.kind, e.to, e.content, e.payload, e.into] for e in done.effects],
        "memories": [[m.namespace, m.key, m.value] for m in done.memories],
        "ms": done.ms,
        "spent": [done.spent.calls, done.spent.input_tokens, done.spent.output_tokens],
    }
    return PendingWrite(thread_id, done.task.since, done.task.name, "result", dump(parts))


def read_result(state: type[State], task: Task, text: str) -> Finished:
    """Read what `write_result` wrote."""
    keys, parts = keys_of(state), load(text)
    update: dict[str, Any] = {}
    for name, (whole, data) in parts["update"].items():
        value = (keys[name].adapter if whole else keys[name].update_adapter).validate_python(data)
        update[name] = Overwrite(value) if whole else value
    return Finished(
        task,
        read_update(state, task.node, update),
        parts["gotos"],
        tuple(Emitted(*effect) for effect in parts["effects"]),
        tuple(Memory(*memory) for memory in parts["memories"]),
        parts["ms"],
        Spent(*parts["spent"]),
    )
