"""JSON as it is stored: everything comes back as it was, whichever parser reads it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphs.engine.values import dump, load, same

TEXT = st.text(st.characters())  # halves of surrogate pairs as well
NUMBERS = st.integers() | st.integers(-(10**60), 10**60) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=30,
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@settings(deadline=None)
@given(PLAIN)
@example(["nul \x00", "half \ud83d", {"\udc00": "\U0001f3d4"}])
@example([5e-324, 1.7976931348623157e308, 0.1 + 0.2, 2**63, -(2**64) - 1])
@example(nested(300))
def test_whatever_is_written_comes_back_equal_in_value_and_type(value: Any) -> None:
    assert same(load(dump(value)), value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(-0.0)
def test_a_number_keeps_its_last_bit(value: float) -> None:
    back = load(dump(value))
    assert (type(back), back, math.copysign(1, back)) == (float, value, math.copysign(1, value))


@given(PLAIN)
def test_what_is_written_is_the_shortest_ascii_of_the_standard_library(value: Any) -> None:
    assert dump(value) == json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_word_for_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        dump({"n": [value]})


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
def test_what_is_no_json_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="JSON"):
        dump([value])


def test_a_value_that_holds_itself_is_not_written() -> None:
    value: list[Any] = []
    value.append({"self": value})
    with pytest.raises(RecursionError):
        dump(value)


@pytest.mark.parametrize("text", ["", "{", '{"a":1}x', "'a'", "[1,]", '"\n"', "{bad", "nan", '"\\ud83"'])
def test_what_is_no_json_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        load(text)
