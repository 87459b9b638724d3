"""One typed state per graph: its keys, the reducers that merge updates, and the boundary every update crosses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from graphs.engine.errors import GraphError, UpdateRefused
from graphs.engine.json_types import check_json
from graphs.engine.values import FrozenDict, FrozenList, Value, dump, freeze, freeze_new, load, same

REMOVE_ALL = "*"


class State(Value):
    """Base of every graph's state: frozen, JSON only, unknown keys refused."""


class Message(Value):
    """One message of a conversation; `content` is kept exactly as given. An empty id is assigned when it is merged."""

    role: str
    content: str | JsonValue = ""  # text by itself first, because pydantic finds out in Python what JSON there is
    id: str = ""


class RemoveMessage(Value):
    """In an update of messages: remove the one with this id, or all of them with `REMOVE_ALL`."""

    id: str


@dataclass(frozen=True, slots=True)
class Overwrite:
    """In an update: replace the key's value instead of reducing into it."""

    value: Any


def append(old: Sequence[Any], new: Any) -> list[Any]:
    """Reducer: add one item, or each item of a list, at the end."""
    return [*old, *tail_of(new)]


def add(old: Any, new: Any) -> Any:
    """Reducer: `old + new` (numbers, strings, lists)."""
    return old + new


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Reducer: the keys of `new` laid over `old`."""
    return {**old, **new}


def add_messages(old: Sequence[Message], new: Any) -> list[Message]:
    """Reducer: append messages; the same id replaces in place; `RemoveMessage` removes. Unknown removals raise."""
    by_id = {message.id: message for message in old}
    for message in tail_of(new):
        if not isinstance(message, RemoveMessage):
            by_id[message.id] = message
        elif message.id == REMOVE_ALL:
            by_id.clear()
        elif by_id.pop(message.id, None) is None:
            raise ValueError(f"there is no message {message.id!r} to remove")
    return list(by_id.values())


def tail_of(new: Any) -> Sequence[Any]:
    """An update of a list key as a list: a single item is taken as one."""
    return new if isinstance(new, list | tuple) else (new,)


Reducer = Callable[[Any, Any], Any]


class Key(NamedTuple):
    """One key of a state: how its updates are checked, merged and written down."""

    name: str
    adapter: TypeAdapter[Any]
    update_adapter: TypeAdapter[Any]
    reducer: Reducer | None
    has_default: bool
    closed: bool  # its values are plain JSON or messages, so that a look at them tells whether they come back equal
    native: bool  # every value of its type already is JSON

    @property
    def grows(self) -> bool:
        """Whether updates only ever add at the end, unless they say otherwise."""
        return self.reducer in (append, add_messages)


@lru_cache(maxsize=256)
def keys_of(state: type[State]) -> dict[str, Key]:
    """The keys of a state class, in declaration order; raises `GraphError` for a type that JSON cannot hold."""
    return {name: _key(state, name) for name in state.model_fields}


def _key(state: type[State], name: str) -> Key:
    field = state.model_fields[name]
    reducers = [extra for extra in field.metadata if callable(extra) and not isinstance(extra, type)]
    constraints = tuple(extra for extra in field.metadata if extra not in reducers)
    annotation: Any = field.annotation
    kind: Any = Annotated[(annotation, *constraints)] if constraints else annotation
    reducer = reducers[0] if reducers else None
    check_json(annotation, f"{state.__name__}.{name}")
    if reducer in (append, add_messages) and get_origin(annotation) is not list:
        raise GraphError(f"{state.__name__}.{name}: a key that grows is a list of something, as in list[str].")
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    update = _update_type(annotation, reducer)
    return Key(
        name=name,
        adapter=adapter,
        update_adapter=adapter if update is None else TypeAdapter(update),
        reducer=reducer,
        has_default=not field.is_required(),
        closed=_closed(annotation),
        native=_closed(annotation, message=False),
    )


def _update_type(annotation: Any, reducer: Reducer | None) -> Any:
    """What an update may be where that differs from what the key holds."""
    if reducer not in (append, add_messages):
        return None
    item: Any = get_args(annotation)[0]
    if reducer is add_messages:
        item = RemoveMessage | item
    many: Any = list.__class_getitem__(item)
    return many if get_origin(item) in (list, tuple) else many | item


def _closed(annotation: Any, message: bool = True) -> bool:
    """Whether the type admits nothing but JSON, and messages if `message`."""
    if annotation in (str, int, float, bool, NoneType, None) or annotation is JsonValue:
        return True
    if annotation is Message:
        return message
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return True
    if origin is dict:
        return inner[0] is str and _closed(inner[1], message)
    return origin is list and _closed(inner[0], message)


def is_plain(value: Any) -> bool:
    """Whether a value is nothing but JSON or messages: no enumeration in a string's place, no infinity, no tuple."""
    kind = type(value)
    if kind in (str, int, bool, NoneType):
        return True
    if kind is float:
        return math.isfinite(value)
    if kind in (list, FrozenList):
        return all(map(is_plain, value))
    if kind in (dict, FrozenDict):
        return all(type(key) is str for key in value) and all(map(is_plain, value.values()))
    return kind in (Message, RemoveMessage) and all(map(is_plain, value.__dict__.values()))


def read_update(state: type[State], node: str, update: Any) -> dict[str, Any]:
    """Check one node's update key by key and return it frozen; raises `UpdateRefused` naming node and key.

    Values of the result are what reducers take: the key's type, its update type, or an `Overwrite`.
    """
    if update is None:
        return {}
    if not isinstance(update, Mapping):
        raise UpdateRefused(f"{node} returned {type(update).__name__}; a node returns a mapping, a Command or nothing.")
    keys = keys_of(state)
    return {name: _read(keys, node, name, value) for name, value in update.items()}


def read_value(key: Key, node: str, value: Any) -> Any:
    """Check a whole value of a key, as a default or a reducer gives it; raises `UpdateRefused`."""
    return _valid(key.adapter, node, key, value)


def _read(keys: Mapping[str, Key], node: str, name: Any, value: Any) -> Any:
    key = keys.get(name)
    if key is None:
        raise UpdateRefused(f"{node} updates {name!r}, which the state does not have; it has {', '.join(keys)}.")
    if isinstance(value, Overwrite):
        return Overwrite(_valid(key.adapter, node, key, value.value))
    return _valid(key.update_adapter, node, key, value)


def _valid(adapter: TypeAdapter[Any], node: str, key: Key, value: Any) -> Any:
    try:
        valid = adapter.validate_python(value, strict=True)
        if not key.closed:
            return _back(adapter, valid)
        if not is_plain(value):
            raise ValueError(f"{value!r} is no plain JSON")
    except (ValidationError, PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise UpdateRefused(f"{node} gives {key.name!r} a value it cannot hold: {_reason(error)}") from error
    return freeze(valid)


def _back(adapter: TypeAdapter[Any], valid: Any) -> Any:
    """The value as it will be after a restart, so that it is the same before; refused if that is another one."""
    back = revive(adapter, load(dump(adapter.dump_python(valid, mode="json", warnings="error"))))
    if not same(back, valid):
        raise ValueError(f"it would come back changed, {valid!r} as {back!r}")
    return back


def revive(adapter: TypeAdapter[Any], data: Any) -> Any:
    """Turn stored JSON into a value of the adapter's type, frozen."""
    return freeze_new(adapter.validate_python(data))


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{first['msg']}{f' (at {where})' if where else ''}"
    return str(error)


def defaults_of(state: type[State]) -> dict[str, Any]:
    """Fresh default values of the keys that have one; raises `UpdateRefused` for one that does not fit its key."""
    fields = state.model_fields
    return {
        name: read_value(key, "The default", fields[name].get_default(call_default_factory=True))
        for name, key in keys_of(state).items()
        if key.has_default
    }


def build(state: type[State], values: Mapping[str, Any]) -> State:
    """The state object nodes see, of values that are checked and frozen already."""
    built = state.__new__(state)
    set_ = object.__setattr__
    set_(built, "__dict__", dict(values))
    set_(built, "__pydantic_fields_set__", set(values))
    set_(built, "__pydantic_extra__", None)
    set_(built, "__pydantic_private__", None)
    return built
