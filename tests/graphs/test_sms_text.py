"""What a text costs, checked against the standard's numbers and against a slow way of counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.sms_text import GSM_CHARACTERS, normalise, segments

PLAIN = "".join(sorted(GSM_CHARACTERS - set("\f^{}\\[~]|€")))


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", ("GSM-7", 0, 0)),
        ("a", ("GSM-7", 1, 1)),
        ("a" * 160, ("GSM-7", 160, 1)),
        ("a" * 161, ("GSM-7", 161, 2)),
        ("a" * 306, ("GSM-7", 306, 2)),
        ("a" * 307, ("GSM-7", 307, 3)),
        ("€" * 80, ("GSM-7", 160, 1)),
        ("€" * 81, ("GSM-7", 162, 2)),
        # 153 is odd: the 77th euro sign does not fit into the first segment.
        ("€" * 152, ("GSM-7", 304, 2)),
        ("€" * 153, ("GSM-7", 306, 3)),
        ("@£$¥èéùìòÇØøÅåΔÆæßÉ¤¡ÄÖÑÜ§¿äöñüà\n\r", ("GSM-7", 34, 1)),
        ("\u2013", ("UCS-2", 1, 1)),
        ("ç", ("UCS-2", 1, 1)),
        ("`", ("UCS-2", 1, 1)),
        ("é" * 70 + "\u2019", ("UCS-2", 71, 2)),
        ("я" * 70, ("UCS-2", 70, 1)),
        ("я" * 71, ("UCS-2", 71, 2)),
        ("я" * 134, ("UCS-2", 134, 2)),
        ("я" * 135, ("UCS-2", 135, 3)),
        ("🥾" * 35, ("UCS-2", 70, 1)),
        ("🥾" * 36, ("UCS-2", 72, 2)),
        ("🥾" * 67, ("UCS-2", 134, 3)),
        ("a" * 299 + "\u2013", ("UCS-2", 300, 5)),
        ("\ud800", ("UCS-2", 1, 1)),
    ],
)
def test_a_text_costs_what_the_standard_says(text: str, cost: tuple[str, int, int]) -> None:
    assert segments(text) == cost


def test_the_alphabet_has_all_its_characters() -> None:
    assert len(GSM_CHARACTERS) == 137


@given(st.text(PLAIN))
def test_plain_gsm_is_counted_by_division(text: str) -> None:
    parts = 1 if len(text) <= 160 else -(-len(text) // 153)
    assert segments(text) == ("GSM-7", len(text), min(parts, len(text)))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=400))
def test_units_are_octets_of_utf16_or_septets(text: str) -> None:
    encoding, units, count = segments(text)
    if encoding == "UCS-2":
        assert units == len(text.encode("utf-16-be")) // 2
    else:
        assert units == len(text) + sum(c in "\f^{}\\[~]|€" for c in text)
    alone, joined = (160, 153) if encoding == "GSM-7" else (70, 67)
    assert (count <= 1) == (units <= alone)
    if count > 1:
        # Every segment but the last is full, up to one unit that a wide character could not use.
        assert (count - 1) * (joined - 1) < units <= count * joined


@given(st.text(), st.text())
def test_a_longer_text_never_costs_less(text: str, more: str) -> None:
    assert segments(text + more)[2] >= segments(text)[2]


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(PLAIN + "^{}\\[~]|€"))
def test_what_gsm_can_write_stays_as_it_is_but_for_line_ends(text: str) -> None:
    assert normalise(text) == text.replace("\r\n", "\n").replace("\r", "\n")


def test_typography_becomes_plain_and_cheap() -> None:
    text = "\u201cFern\u00a0Hollow\u201d \u2013 it\u2019s 7\u202fkm\u2026\u200b \u2022 water\u2028bye\r\n"
    assert normalise(text) == '"Fern Hollow" - it\'s 7 km... - water\nbye\n'
    assert segments(normalise(text))[0] == "GSM-7"
    assert normalise("cafe\u0301 🥾") == "café 🥾"
