"""What was changed is told in a few words, whatever was changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from bot.blocks.difference import Change, difference
from bot.blocks.elements import text_units
from tests.bot.blocks.checks import parts
from tests.bot.blocks.examples import Text, any_text


def runs(old: str, new: str, limit: int = 1_500) -> list[tuple[str, str]]:
    """Each run of the quotation: "-" gone, "+" new, "" as it was."""
    blocks = difference([Change("Text", old, new)], limit)
    styles = {"strike": "-", "bold": "+"}
    marked = [
        (next(iter(part.get("style", {})), ""), part["text"]) for part in parts(blocks) if part.get("type") == "text"
    ]
    return [(styles.get(style, ""), text) for style, text in marked]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("a b c d", "a b x d", [("", "a b "), ("-", "c"), ("", " "), ("+", "x"), ("", " d")]),
        ("one two three four", "one two three four five", [("", "one two three four"), ("+", " five")]),
        ("9", "10", [("-", "9"), ("", "  →  "), ("+", "10")]),
        ("", "new", [("-", "(empty)"), ("", "  →  "), ("+", "new")]),
        ("*a* <@U1> b c d e", "*a* <@U1> b c d f", [("", "*a* <@U1> b c d "), ("-", "e"), ("", " "), ("+", "f")]),
    ],
)
def test_short_texts_are_compared_word_by_word(old: str, new: str, told: list[tuple[str, str]]) -> None:
    assert runs(old, new) == told


def test_long_texts_are_compared_line_by_line() -> None:
    lines = [f"line {number} of a long text" for number in range(200)]
    new = [*lines[:100], "another line", *lines[101:]]
    told = runs("\n".join(lines), "\n".join(new))
    assert ("-", "line 100 of a long text\n") in told
    assert ("+", "another line\n") in told
    assert sum(len(text) for _, text in told) < 100


@settings(deadline=None, max_examples=60)
@given(any_text, any_text)
def test_it_keeps_to_its_limit(old: Text, new: Text) -> None:
    change = Change("A & B " * 30, str(old), str(new))
    assert text_units(difference([change, change], 1_500)) <= 1_700
