"""JSON values that cannot be changed in place, and the base class of every value that is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, NoReturn, Self

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic_core import from_json

READ_ONLY = "State is read-only: return an update from the node instead of changing what it was given."


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(READ_ONLY)


class FrozenList(list[Any]):
    """A list that refuses to be changed; equal to a plain list of the same items."""

    __slots__ = ()
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [_thaw(item) for item in self]


class FrozenDict(dict[Any, Any]):
    """A dict that refuses to be changed; equal to a plain dict of the same items."""

    __slots__ = ()
    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: _thaw(item) for key, item in self.items()}


_FROZEN = frozenset({str, int, float, bool, type(None), FrozenList, FrozenDict})
_BASE: dict[type, type] = {FrozenList: list, FrozenDict: dict}


def freeze(value: Any) -> Any:
    """Return `value` with every list and dict in it made read-only; what is frozen already is shared."""
    kind = type(value)
    if kind in _FROZEN:
        return value
    if kind is list:
        return FrozenList(freeze(item) for item in value)
    if kind is dict:
        return FrozenDict((key, freeze(item)) for key, item in value.items())
    if kind is tuple:
        return tuple(freeze(item) for item in value)
    return _frozen_value(value) if isinstance(value, Value) else value


def freeze_new(value: Any) -> Any:
    """Freeze what has just been validated: each `Value` in it has seen to itself."""
    kind = type(value)
    if kind is list:
        return FrozenList([item if isinstance(item, Value) else freeze_new(item) for item in value])
    if kind is dict:
        return FrozenDict([(key, freeze_new(item)) for key, item in value.items()])
    if kind is tuple:
        return tuple([freeze_new(item) for item in value])
    return value


def _frozen_value(value: Value) -> Value:
    """Made by `model_copy`, a value may hold plain lists: it is made anew, so that nobody shares them."""
    loose = {name: frozen for name, item in value.__dict__.items() if (frozen := freeze(item)) is not item}
    return value.model_copy(update=loose) if loose else value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in value and in type, all the way down; frozen or not makes no difference."""
    kind, base = type(one), _BASE.get(type(one), type(one))
    if base is not _BASE.get(type(other), type(other)):
        return False
    if base is list or base is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    if base is dict:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one) and _same_keys(one, other)
    if issubclass(kind, BaseModel):
        return same(one.__dict__, other.__dict__)
    if issubclass(kind, datetime):
        return bool(one == other and one.utcoffset() == other.utcoffset())
    return bool(one == other)


def _same_keys(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    return {(type(key), key) for key in one} == {(type(key), key) for key in other}


def _thaw(value: Any) -> Any:
    if isinstance(value, list):
        return [_thaw(item) for item in value]
    if isinstance(value, dict):
        return {key: _thaw(item) for key, item in value.items()}
    return value


def _encoder() -> Callable[[Any], str]:
    """Writes JSON without spaces; the C part of the standard library's encoder is made once and not for each value."""
    whole = json.JSONEncoder(ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # not on CPython
        return whole.encode
    chunks = make(None, whole.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks(value, 0))


_encode = _encoder()


def dump(value: Any) -> str:
    """JSON text in ASCII: NUL and lone surrogates travel as escapes, NaN and infinities are refused (`ValueError`).

    A value that holds itself is refused with `RecursionError`.
    """
    return _encode(value)


def load(text: str) -> Any:
    """Read what `dump` wrote; raises `ValueError` for a text that cannot be read."""
    try:
        return from_json(text)  # in half the time
    except ValueError:  # it takes no half of a surrogate pair, and no deep nesting
        return json.loads(text)


class Value(BaseModel):
    """A frozen value made of JSON types: compared by content, stored as JSON, never changed in place."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
    _loose: ClassVar[tuple[str, ...]] = ()  # fields that may hold lists or dicts

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls._loose = tuple(name for name, field in cls.model_fields.items() if field.annotation not in _FROZEN)

    def model_post_init(self, _context: Any, /) -> None:
        for name in self._loose:
            value = self.__dict__[name]
            if type(value) not in _FROZEN and (frozen := freeze(value)) is not value:
                self.__dict__[name] = frozen

    def to_json(self) -> dict[str, JsonValue]:
        """The value as JSON types."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; raises pydantic's `ValidationError` for anything else."""
        return cls.model_validate(data)
