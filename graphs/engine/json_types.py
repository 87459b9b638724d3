"""Which types a state may have: those whose values JSON holds and nobody can change in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from pydantic import JsonValue

from graphs.engine.errors import GraphError
from graphs.engine.values import Value

_LEAVES = frozenset(
    {str, int, float, bool, NoneType, None, Any, list, dict, Decimal, date, datetime, time, timedelta, UUID}
)
_CONTAINERS = frozenset({list, dict, tuple, Union, UnionType, Sequence, Mapping})


def check_json(annotation: Any, where: str, seen: frozenset[Any] = frozenset()) -> None:
    """Raise `GraphError` naming `where` for a type that JSON cannot hold or that could be changed in place."""
    if annotation is JsonValue or _is_leaf(annotation) or annotation in seen:
        return
    origin, seen = get_origin(annotation), seen | {annotation}
    for inner in _parts(annotation, origin, where):
        check_json(inner, where, seen)


def type_name(annotation: Any) -> str:
    """A type's name without the modules it comes from, for the fingerprint of a structure."""
    if annotation is JsonValue:
        return "JsonValue"
    inner = get_args(annotation)
    name = getattr(get_origin(annotation) or annotation, "__name__", None) or str(annotation)
    return f"{name}[{','.join(map(type_name, inner))}]" if inner else name


def _is_leaf(annotation: Any) -> bool:
    return annotation in _LEAVES or (isinstance(annotation, type) and issubclass(annotation, Enum))


def _parts(annotation: Any, origin: Any, where: str) -> tuple[Any, ...]:
    """The types that a type is made of."""
    if origin in _CONTAINERS:
        return tuple(part for part in get_args(annotation) if part is not ...)
    if origin is Literal:
        return tuple(type(value) for value in get_args(annotation))
    if origin is Annotated:
        return get_args(annotation)[:1]
    if hasattr(annotation, "__value__"):  # type X = ...
        return (annotation.__value__,)
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return tuple(field.annotation for field in annotation.model_fields.values())
    if is_typeddict(annotation):
        return tuple(get_type_hints(annotation).values())
    name = getattr(annotation, "__name__", str(annotation))
    raise GraphError(f"{where}: JSON cannot hold {name}, or it can be changed in place; use JSON types or a Value.")
