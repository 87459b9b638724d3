"""Text is made safe and fitting without losing any of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.blocks.text import Mrkdwn, clean, cut, escape, fill, hidden, joined, one_line, pieces, units, visible
from tests.bot.blocks.examples import Text, any_text


@settings(deadline=None, max_examples=80)
@given(any_text, st.integers(20, 3_000))
def test_pieces_fit_and_are_together_the_text(text: Text, limit: int) -> None:
    parts = pieces(str(text), limit)
    assert "".join(parts) == clean(str(text))
    assert all(0 < units(part) <= limit and len(escape(part)) <= limit for part in parts)


@settings(deadline=None, max_examples=80)
@given(any_text, st.integers(20, 3_000))
def test_what_is_cut_fits_and_says_so(text: Text, limit: int) -> None:
    whole, shown = clean(str(text)), cut(str(text), limit)
    assert units(shown) <= limit
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


@settings(deadline=None)
@given(any_text)
def test_escaped_text_holds_no_sign_that_slack_reads(text: Text) -> None:
    escaped = escape(str(text))
    assert "<" not in escaped
    assert ">" not in escaped
    assert escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == clean(str(text))
    assert len(escaped) <= units(str(text))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One two. Three\n\nfour five six seven eight", "One two. Three\n\n"),
        ("one two three four five six", "one two three four "),
        ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrst"),
    ],
)
def test_a_break_falls_where_a_reader_would_put_it(text: str, first: str) -> None:
    assert pieces(text, 20)[0] == first


@pytest.mark.parametrize("character", ["👩‍👩‍👧", "e\u0301", "👍🏽", "🇳🇴", "☀️"])
def test_no_character_is_torn_apart(character: str) -> None:
    for before in range(12):
        parts = pieces("x" * before + character * 30, 24)
        assert all(part.replace("x", "") == character * part.count(character) for part in parts)


def test_what_slack_cannot_show_is_replaced_where_it_stood() -> None:
    assert clean("a\0b\ud800c\r\nd\re\x1bf") == "a\ufffdb\ufffdc\nd\ne\ufffdf"


def test_ours_stays_and_theirs_is_escaped() -> None:
    assert escape(Mrkdwn("<@U1>")) == "<@U1>"
    assert fill("*{a}* {b}", a="<@U1>", b=Mrkdwn("<@U1>")) == "*&lt;@U1&gt;* <@U1>"
    assert joined(["a & b", "", Mrkdwn("<#C1>")], " · ") == "a &amp; b · <#C1>"


def test_what_cannot_be_seen_is_named() -> None:
    found = hidden("safe\u202e \u200bx\u200b \0 \U000e0041")
    assert found == {
        "U+202E right-to-left override": 1,
        "U+200B zero width space": 2,
        "U+0000": 1,
        "U+E0041 tag latin capital letter a": 1,
    }


def test_ordinary_text_has_nothing_hidden() -> None:
    assert hidden("Ünïcode, 日本語, مرحبا, 👩‍👩‍👧‍👦, 🏴\U000e0067\U000e0062\U000e007f\n\ttab\r\n") == {}


def test_nothing_to_see_is_said_in_words() -> None:
    assert (visible(""), visible("   "), visible(" a ")) == ("(empty)", "(3 blank characters)", " a ")
    assert one_line(" a\n\n b ", 20) == "a b"
