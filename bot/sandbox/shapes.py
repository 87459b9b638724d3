"""Small checks of JSON values that combine into the checks of Block Kit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where, as a JSON pointer."""

    message: str
    pointer: str

    def sentence(self) -> str:
        """The way Slack words it in `response_metadata.messages`."""
        return f"[ERROR] {self.message} [json-pointer:{self.pointer}]"


Check: TypeAlias = Callable[[Any, str], Iterator[Problem]]


def string(most: int | None = None, least: int = 0) -> Check:
    """A string of `least` to `most` characters."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield Problem("must be a string", at)
        elif most is not None and len(value) > most:
            yield Problem(f"must be less than {most + 1} characters", at)
        elif len(value) < least:
            yield Problem(f"must be more than {least - 1} characters", at)

    return check


def whole(least: int, most: int) -> Check:
    """An integer within bounds."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield Problem("must be an integer", at)
        elif not least <= value <= most:
            yield Problem(f"must be between {least} and {most}", at)

    return check


def boolean(value: Any, at: str) -> Iterator[Problem]:
    """True or false."""
    if not isinstance(value, bool):
        yield Problem("must be a boolean", at)


def anything(_value: Any, _at: str) -> Iterator[Problem]:
    """Whatever it is."""
    yield from ()


def one_of(*values: str) -> Check:
    """One of these strings."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if value not in values:
            yield Problem(f"must be one of {', '.join(values)}", at)

    return check


def pattern(expression: str, name: str) -> Check:
    """A string that matches as a whole."""
    compiled = re.compile(expression)

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            yield Problem(f"must be {name}", at)

    return check


def array(item: Check, most: int, least: int = 1) -> Check:
    """A list of `least` to `most` items that each pass `item`."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, list | tuple):
            yield Problem("must provide an array", at)
            return
        if len(value) > most:
            yield Problem(f"no more than {most} items allowed", at)
        elif len(value) < least:
            yield Problem(f"no fewer than {least} items allowed", at)
        for index, one in enumerate(value):
            yield from item(one, f"{at}/{index}")

    return check


def record(required: Mapping[str, Check], optional: Mapping[str, Check], *rules: Check) -> Check:
    """An object with these fields and no others, which also passes the rules."""
    known = {**required, **optional}

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, Mapping):
            yield Problem("must provide an object", at)
            return
        yield from (Problem(f"missing required field: {name}", at) for name in required if value.get(name) is None)
        for name, part in value.items():
            if name not in known:
                yield Problem(f"invalid additional property: {name}", at)
            elif part is not None:
                yield from known[name](part, f"{at}/{name}")
        for rule in rules:
            yield from rule(value, at)

    return check


def by_type(kinds: Mapping[str, Check]) -> Check:
    """An object whose `type` says which check holds."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not isinstance(value, Mapping):
            yield Problem("must provide an object", at)
            return
        kind = value.get("type")
        if kind is None:
            yield Problem("missing required field: type", at)
        elif kind not in kinds:
            yield Problem(f"unsupported type: {kind}", f"{at}/type")
        else:
            yield from kinds[kind](value, at)

    return check


def at_least_one(*names: str) -> Check:
    """A rule: one of these fields is there."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if not any(value.get(name) for name in names):
            yield Problem(f"missing required field: {' or '.join(names)}", at)

    return check


def exactly_one(*names: str) -> Check:
    """A rule: one of these fields is there, and only one."""

    def check(value: Any, at: str) -> Iterator[Problem]:
        if sum(value.get(name) is not None for name in names) != 1:
            yield Problem(f"must provide exactly one of {', '.join(names)}", at)

    return check
