"""How updates become the next state, and how what changed is written down and read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from graphs.engine.checkpoint import Next, Row, Source, Task, task_hash
from graphs.engine.errors import EngineError, NodeFailed, StoreFailed, UpdateRefused
from graphs.engine.state import (
    Key,
    Message,
    Overwrite,
    RemoveMessage,
    State,
    add,
    add_messages,
    append,
    defaults_of,
    keys_of,
    read_value,
    revive,
    tail_of,
)
from graphs.engine.values import FrozenList, dump, freeze, load

SLACK = 4096  # bytes of deltas a snapshot may always be followed by, otherwise small states snapshot at every step


@dataclass(slots=True, eq=False, repr=False)
class Change:
    """What a superstep changed: the new values, and by key whether they were set or only grew at the end."""

    values: dict[str, Any]
    replaced: set[str] = field(default_factory=set)
    grown: dict[str, list[Any]] = field(default_factory=dict)
    writers: dict[str, tuple[int, str]] = field(default_factory=dict)  # by key, the place and name of who set it


class Head(NamedTuple):
    """Where a run stands: the state after its last checkpoint, and how many bytes the next snapshot must outweigh."""

    step: int
    values: Mapping[str, Any]
    next: Next
    snapshot_bytes: int = 0
    delta_bytes: int = 0


def first_values(state: type[State], update: Mapping[str, Any], ids: Iterator[str]) -> Change:
    """The state after the input: defaults, with the input reduced into them. Raises `UpdateRefused`."""
    values = defaults_of(state)
    change = merge(state, values, [("the input", update)], ids)
    if missing := [name for name in keys_of(state) if name not in change.values]:
        raise UpdateRefused(f"The input misses {', '.join(missing)}.")
    return change


def merge(
    state: type[State],
    values: Mapping[str, Any],
    updates: Sequence[tuple[str, Mapping[str, Any]]],
    ids: Iterator[str],
) -> Change:
    """Apply updates in the order given: overwrites first, the others reduced onto them.

    Raises `UpdateRefused` for two writers of an unreduced key, `NodeFailed` for a reducer that raises.
    """
    keys, change = keys_of(state), Change(dict(values))
    late: list[tuple[str, Key, Any]] = []
    for place, (writer, update) in enumerate(updates):
        for name, value in update.items():
            key = keys[name]
            if isinstance(value, Overwrite) or key.reducer is None:
                _claim(change, name, place, writer)
                _set(change, key, value.value if isinstance(value, Overwrite) else value)
            else:
                late.append((writer, key, value))
    for writer, key, value in late:
        _reduce(change, key, writer, value, ids)
    return change


def _claim(change: Change, name: str, place: int, writer: str) -> None:
    """Only one task sets a key in a superstep, not even another run of the same node."""
    other_place, other = change.writers.setdefault(name, (place, writer))
    if other_place != place:
        raise UpdateRefused(f"{other} and {writer} both set {name!r} in one superstep: only one may, or use a reducer.")


def _set(change: Change, key: Key, value: Any) -> None:
    change.values[key.name] = freeze(value)
    change.replaced.add(key.name)
    change.grown.pop(key.name, None)


def _reduce(change: Change, key: Key, writer: str, value: Any, ids: Iterator[str]) -> None:
    if key.name not in change.values:
        if not key.grows:
            _set(change, key, value)
            return
        change.values[key.name] = FrozenList()
    old, fresh = change.values[key.name], True
    if key.reducer is add_messages:
        value, fresh = _with_ids(old, value, ids)
    if fresh and key.reducer in (append, add, add_messages) and isinstance(old, list):
        _grow(change, key, old, tail_of(value))
        return
    _set(change, key, _call_reducer(key, writer, old, value))


def _grow(change: Change, key: Key, old: list[Any], tail: Sequence[Any]) -> None:
    change.values[key.name] = FrozenList([*old, *tail])
    if key.name not in change.replaced:
        change.grown.setdefault(key.name, []).extend(tail)


def _call_reducer(key: Key, writer: str, old: Any, value: Any) -> Any:
    assert key.reducer is not None
    try:
        return read_value(key, f"The reducer of {writer}'s update", key.reducer(old, value))
    except EngineError:
        raise
    except Exception as error:
        name = getattr(key.reducer, "__name__", "reducer")
        raise NodeFailed(
            f"The reducer {name} of {key.name!r} could not take the update of {writer}: {error}"
        ) from error


def _with_ids(old: Sequence[Message], value: Any, ids: Iterator[str]) -> tuple[list[Any], bool]:
    """Messages with an id each, and whether all of them are new, so that they need only be added at the end."""
    out: list[Any] = []
    named: list[str] = []
    for message in tail_of(value):
        if isinstance(message, RemoveMessage) or message.id:
            named.append(message.id)
            out.append(message)
        else:
            out.append(message.model_copy(update={"id": next(ids)}))
    if not named:
        return out, True
    removes = any(isinstance(message, RemoveMessage) for message in out)
    taken = {message.id for message in old}
    return out, not removes and len({*named}) == len(named) and taken.isdisjoint(named)


def delta_text(state: type[State], change: Change) -> str:
    """What changed, as JSON text: whole values under `set`, tails of lists under `add`."""
    keys = keys_of(state)
    body: dict[str, Any] = {}
    if change.replaced:
        body["set"] = {name: _plain(keys[name], change.values[name]) for name in keys if name in change.replaced}
    if change.grown:
        body["add"] = {name: _plain(keys[name], tail) for name, tail in change.grown.items()}
    return dump(body)


def full_text(state: type[State], values: Mapping[str, Any]) -> str:
    """The whole state as JSON text."""
    keys = keys_of(state)
    return dump({"set": {name: _plain(keys[name], value) for name, value in values.items()}})


def _plain(key: Key, value: Any) -> Any:
    return value if key.native else key.adapter.dump_python(value, mode="json", warnings=False)


def next_row(
    state: type[State], head: Head, change: Change, after: Next, thread_id: str, source: Source, meta: str, author: str
) -> tuple[Row, Head]:
    """The next row: what changed, or a snapshot once the deltas since the last one outweigh it, and what is next."""
    text = delta_text(state, change)
    deltas, snapshot = head.delta_bytes + len(text), head.snapshot_bytes
    full = head.step < 0 or deltas > snapshot + SLACK
    if full:
        text = full_text(state, change.values)
        deltas, snapshot = 0, len(text)
    row = Row(thread_id, head.step + 1, source, after.to_text(), text, full, meta, author)
    return row, Head(row.step, change.values, after, snapshot, deltas)


def replay(state: type[State], rows: Sequence[Row]) -> Head:
    """The state after the last of `rows`, which start with a snapshot. Raises `StoreFailed` for what cannot be read."""
    if not rows or not rows[0].full:
        raise StoreFailed(
            "A run's checkpoints start without a snapshot: the database was changed by hand or is damaged."
        )
    try:
        raw = raw_values(rows)
        head, after = rows[-1], Next.from_text(rows[-1].next)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreFailed(f"A checkpoint of {rows[0].thread_id} cannot be read: {error}") from error
    deltas = sum(len(row.body) for row in rows[1:])
    return Head(head.step, _revive(state, raw), after, len(rows[0].body), deltas)


def raw_values(rows: Sequence[Row]) -> dict[str, Any]:
    """The state after the last of `rows` as JSON, whatever its types; raises `ValueError` for what is no JSON."""
    raw: dict[str, Any] = {}
    for row in rows:
        body = load(row.body)
        raw.update(body.get("set", {}))
        for name, tail in body.get("add", {}).items():
            raw.setdefault(name, []).extend(tail)
    return raw


def _revive(state: type[State], raw: Mapping[str, Any]) -> dict[str, Any]:
    keys = keys_of(state)
    if missing := keys.keys() - raw.keys():
        raise StoreFailed(f"A checkpoint misses {', '.join(sorted(missing))} of {state.__name__}.")
    try:
        return {name: revive(keys[name].adapter, value) for name, value in raw.items()}
    except (KeyError, ValidationError) as error:
        raise StoreFailed(f"A checkpoint does not fit {state.__name__}: {error}") from error


def message_ids(thread_id: str, step: int) -> Iterator[str]:
    """Ids for new messages of one step: the same ones whenever the step is made again."""
    n = 0
    while True:
        yield task_hash(thread_id, Task("message", step), n)
        n += 1
