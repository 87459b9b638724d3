"""What a node is handed besides the state: questions, recorded calls, time, chance, memory, its dependencies."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, overload

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from graphs.engine.checkpoint import NOTHING_SPENT, Interrupt, Memory, PendingWrite, RunRecord, Spent, Task, task_hash
from graphs.engine.commands import Signal
from graphs.engine.errors import NodeFailed, UpdateRefused
from graphs.engine.state import is_plain
from graphs.engine.values import dump, freeze, load

D = TypeVar("D")
T = TypeVar("T")
A_co = TypeVar("A_co", covariant=True)


class Ask(Protocol[A_co]):
    """A question as a value: `asks` names its kind ("review", "question"), `answered` reads a stored answer."""

    @property
    def asks(self) -> str: ...

    def to_json(self) -> dict[str, JsonValue]: ...

    def answered(self, value: JsonValue, /) -> A_co: ...


class Paused(Signal):
    """The node waits for an answer. `new` is the question if it was not asked before."""

    def __init__(self, new: Interrupt | None = None, superseded: str = "") -> None:
        super().__init__("waiting for an answer")
        self.new = new
        self.superseded = superseded


class Abandoned(Signal):
    """The attempt has timed out: whatever it still wants to record comes too late."""


class World(Protocol):
    """What a runtime needs from the execution around it."""

    run: RunRecord
    path: tuple[str, ...]

    @property
    def deps(self) -> Any: ...

    def record(self, writes: Sequence[PendingWrite], spent: Spent) -> None: ...

    def started(self, task: Task, attempt: int) -> None: ...

    def chunk(self, task: Task, attempt: int, data: JsonValue) -> None: ...

    def now(self) -> datetime: ...

    def recall(self, namespace: str, key: str) -> JsonValue: ...


@dataclass(slots=True, eq=False, repr=False)
class Runtime(Generic[D]):
    """One attempt of one task. Everything it hands out is recorded, so that a re-run sees the same."""

    world: World
    task: Task
    known: Mapping[str, str]
    memories: list[Memory] = field(default_factory=list)
    unsaved: list[PendingWrite] = field(default_factory=list)
    spent: Spent = NOTHING_SPENT
    attempt: int = 1
    paused: Paused | None = None
    abandoned: bool = False
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _counts: dict[str, int] = field(default_factory=dict)
    _random: random.Random | None = None

    @property
    def deps(self) -> D:
        """What the runner was given for its nodes; never stored."""
        deps: D = self.world.deps
        return deps

    @property
    def run(self) -> RunRecord:
        """The run: who asked, where, with which model."""
        return self.world.run

    @property
    def thread_id(self) -> str:
        """The run's key."""
        return self.world.run.thread_id

    @property
    def step(self) -> int:
        """The step that activated this task."""
        return self.task.since

    @property
    def node(self) -> str:
        """The node's name."""
        return self.task.node

    @property
    def random(self) -> random.Random:
        """Chance seeded by the task: the same numbers in every re-run."""
        if self._random is None:
            self._random = random.Random(task_hash(self.thread_id, self.task, "random"))
        return self._random

    @property
    def memory(self) -> NodeMemory:
        """JSON that outlives the run, per flow and channel."""
        return NodeMemory(self)

    def stream(self, data: JsonValue) -> None:
        """Show a piece of work in progress to whoever is watching; not stored."""
        self._still_wanted()
        self.world.chunk(self.task, self.attempt, data)

    def now(self) -> datetime:
        """The time (aware UTC), the same in every re-run."""
        key = self._next_key("now")
        if key not in self.known:
            self._keep(key, dump(self.world.now().astimezone(UTC).isoformat()))
            return datetime.fromisoformat(load(self.unsaved[-1].value))
        return datetime.fromisoformat(load(self.known[key]))

    def once(
        self, name: str, call: Callable[[], T], kind: Any = JsonValue, spent: Callable[[T], Spent] | None = None
    ) -> T:
        """Call and record the result before going on; a re-run gets the record instead of calling again.

        `kind` is the result's type (JSON by default), `spent` says what the call cost. Results that JSON cannot hold
        are refused after the call, naming it.
        """
        self._still_wanted()
        key = self._next_key(name)
        adapter: TypeAdapter[T] = _adapter(kind)
        if key in self.known:
            return freeze(adapter.validate_python(load(self.known[key])))  # type: ignore[no-any-return]
        result = call()
        cost = spent(result) if spent else NOTHING_SPENT
        try:
            text = dump(adapter.dump_python(adapter.validate_python(result), mode="json"))
        except (ValidationError, PydanticSerializationError, ValueError, TypeError) as error:
            raise UpdateRefused(f"once({name!r}) in {self.node} returned what JSON cannot hold: {error}") from error
        self._save(key, text, cost)
        return freeze(adapter.validate_python(load(text)))  # type: ignore[no-any-return]

    @overload
    def interrupt(self, ask: Ask[T]) -> T: ...

    @overload
    def interrupt(self, ask: JsonValue) -> JsonValue: ...

    def interrupt(self, ask: Any) -> Any:
        """Ask and stop; on resume the node runs again from its top and this returns the answer.

        `ask` is a review, a question or plain JSON (for a machine). The answer is handed back only to the question it
        was given to, and only if it can be read: otherwise the node's question is asked anew.
        """
        self._still_wanted()
        asks, payload = _describe(ask, self.node)
        n = self._counts["?"] = self._counts.get("?", -1) + 1
        digest = hashlib.blake2b(dump(payload).encode(), digest_size=8).hexdigest()
        place, asked = self._last_asked(n)
        again = f"{n}.{int(asked['again']) + 1}" if asked else place
        if asked is None or asked["hash"] != digest:
            self.paused = self._ask(asks, payload, digest, again, asked)
            raise self.paused
        answer = self.known.get(f"answer:{place}")
        if answer is None:
            self.paused = Paused()
            raise self.paused
        try:
            value = freeze(load(answer))
            return value if asks == "signal" else ask.answered(value)
        except ValueError:  # not an answer to this question: kept for ever, it would fail every try
            self.paused = self._ask(asks, payload, digest, again, asked)
            raise self.paused from None

    def _last_asked(self, n: int) -> tuple[str, dict[str, Any] | None]:
        place, again = str(n), 0
        found = self.known.get(f"asked:{place}")
        while (later := self.known.get(f"asked:{n}.{again + 1}")) is not None:
            again += 1
            place, found = f"{n}.{again}", later
        return place, None if found is None else load(found)

    def _ask(self, asks: str, payload: JsonValue, digest: str, place: str, before: dict[str, Any] | None) -> Paused:
        ident = task_hash(self.thread_id, self.task, "ask", place)
        again = int(before["again"]) + 1 if before else 0
        self._keep(f"asked:{place}", dump({"id": ident, "hash": digest, "again": again}))
        path = (*self.world.path, self.node)
        question = Interrupt(ident, self.thread_id, self.task.since, self.task.name, place, asks, payload, path)
        return Paused(question, superseded=before["id"] if before else "")

    def abandon(self) -> None:
        """Nothing that this attempt still does counts: it has timed out."""
        with self._gate:
            self.abandoned = True

    def _save(self, key: str, text: str, spent: Spent) -> None:
        """Save a result with all that was recorded before it, unless the attempt has been abandoned meanwhile."""
        with self._gate:
            self._keep(key, text)
            writes, self.unsaved = self.unsaved, []
            self.spent += spent
            self.world.record(writes, spent)

    def _keep(self, key: str, text: str) -> None:
        self._still_wanted()
        self.unsaved.append(PendingWrite(self.thread_id, self.task.since, self.task.name, key, text))

    def _next_key(self, name: str) -> str:
        n = self._counts[name] = self._counts.get(name, -1) + 1
        return f"once:{name}:{n}"

    def _still_wanted(self) -> None:
        if self.abandoned:
            raise Abandoned()


def _describe(ask: Any, node: str) -> tuple[str, JsonValue]:
    if hasattr(ask, "answered") and hasattr(ask, "to_json"):
        return ask.asks, ask.to_json()
    if not is_plain(ask):
        raise NodeFailed(f"{node} asks something that is no JSON: {ask!r}.")
    return "signal", ask


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class NodeMemory:
    """JSON that outlives runs, kept per flow and channel; what is put is saved with the step."""

    __slots__ = ("runtime",)

    def __init__(self, runtime: Runtime[Any]) -> None:
        self.runtime = runtime

    @property
    def namespace(self) -> str:
        """Where this flow and channel keep theirs."""
        run = self.runtime.run
        return f"{run.flow}:{run.channel or run.who}"

    def get(self, key: str) -> JsonValue:
        """What is remembered, or None; the same in every re-run."""
        runtime = self.runtime
        record = runtime._next_key(f"memory.{key}")
        if record not in runtime.known:
            found = runtime.world.recall(self.namespace, key)
            runtime._keep(record, dump(found))
            return freeze(found)  # type: ignore[no-any-return]
        return freeze(load(runtime.known[record]))  # type: ignore[no-any-return]

    def put(self, key: str, value: JsonValue) -> None:
        """Remember JSON under a key; None forgets it."""
        if not is_plain(value):
            raise UpdateRefused(f"{self.runtime.node} wants to remember {value!r} as {key!r}, which is no JSON.")
        text = None if value is None else dump(value)
        self.runtime.memories.append(Memory(self.namespace, key, text))
