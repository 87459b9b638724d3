"""What a text message costs: its encoding, and the segments it travels in (3GPP TS 23.038 and 23.040)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

Encoding = Literal["GSM-7", "UCS-2"]

_BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENSION = "\f^{}\\[~]|€"
GSM_CHARACTERS = frozenset(_BASIC + _EXTENSION)
"""What GSM-7 can write; those of the extension table take two units each."""

# Units in a lone segment, and in each of several, which lose some to the header that joins them.
_LIMITS: dict[Encoding, tuple[int, int]] = {"GSM-7": (160, 153), "UCS-2": (70, 67)}

_SPELLINGS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2022\u00b7",
    "...": "\u2026",
    " ": "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t",
    "\n": "\u2028\u2029",
    "": "\u200b\u2060\ufeff\u00ad",
}
_PLAIN = str.maketrans({typographic: plain for plain, many in _SPELLINGS.items() for typographic in many})


def segments(text: str) -> tuple[Encoding, int, int]:
    """The encoding of `text`, its length in units of that encoding, and how many segments it is sent (and paid) as."""
    encoding: Encoding = "GSM-7" if GSM_CHARACTERS.issuperset(text) else "UCS-2"
    widths = [_width(character, encoding) for character in text]
    alone, joined = _LIMITS[encoding]
    units = sum(widths)
    return encoding, units, _pack(widths, joined) if units > alone else min(1, len(text))


def normalise(text: str) -> str:
    """`text` with typographic quotes, dashes and spaces made plain: one of them makes a whole message UCS-2."""
    # Composing turns some rare spaces and accents into others of the table, so it is gone through twice.
    composed = unicodedata.normalize("NFC", text.translate(_PLAIN))
    return re.sub(r"\r\n?", "\n", composed.translate(_PLAIN))


def _width(character: str, encoding: Encoding) -> int:
    if encoding == "GSM-7":
        return 2 if character in _EXTENSION else 1
    return 2 if ord(character) > 0xFFFF else 1


def _pack(widths: Iterable[int], size: int) -> int:
    """Segments needed: a character of two units is never split between two of them."""
    count, room = 0, 0
    for width in widths:
        if width > room:
            count, room = count + 1, size
        room -= width
    return count
