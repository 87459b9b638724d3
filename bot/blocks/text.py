"""Makes any text safe and small enough for Slack: cleaning, escaping, measuring, cutting, splitting."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

EMPTY = "(empty)"
_COSTS = {"&": 5, "<": 4, ">": 4}
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Reading direction, zero width and tag characters: a reader does not see them, a phone acts on them.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u2060-\u2069\u202a-\u202e\ufeff\ud800-\udfff]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_TAG = re.compile("[\U000e0000-\U000e007f]")
_JOINER = "\u200d"
_BREAKS = ("\n\n", "\n", " ")
_LONGEST_CLUSTER = 64


class Mrkdwn(str):
    """Text in Slack's mrkdwn that is escaped already; every other `str` counts as raw and is escaped when used."""

    __slots__ = ()


def clean(text: str) -> str:
    """`text` without what Slack cannot show: control characters and lone surrogates become U+FFFD, CR becomes LF."""
    return _UNSHOWABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def escape(text: str) -> Mrkdwn:
    """`text` for mrkdwn, so that nothing in it is a mention, a link or a date; `Mrkdwn` is returned as it is."""
    if isinstance(text, Mrkdwn):
        return text
    return Mrkdwn(clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def fill(template: str, **parts: str) -> Mrkdwn:
    """`template`, which is ours and holds mrkdwn, with the parts escaped."""
    return Mrkdwn(template.format(**{name: escape(part) for name, part in parts.items()}))


def joined(parts: Iterable[str], between: str = "\n") -> Mrkdwn:
    """The parts that are not empty, escaped, with `between` (ours) between them."""
    return Mrkdwn(between.join(escape(part) for part in parts if part))


def units(text: str) -> int:
    """The length Slack may count at worst: UTF-16 units after escaping."""
    astral = sum(character > "\uffff" for character in text)
    if isinstance(text, Mrkdwn):
        return len(text) + astral
    return len(text) + astral + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def fits(text: str, limit: int) -> bool:
    """Whether Slack takes `text` where `limit` holds."""
    return units(text) <= limit


def cut(text: str, limit: int) -> str:
    """Raw text that fits `limit`, ending in an ellipsis if something was left out."""
    whole = clean(text)
    if fits(whole, limit):
        return whole
    return whole[: _unjoined(whole, _fitting(whole, limit - 1))].rstrip() + "…"


def pieces(text: str, limit: int) -> list[str]:
    """`clean(text)` in pieces that each fit `limit`; joined they are the text again.

    Breaks fall between paragraphs, lines or words where the second half of a piece has one, never inside a character
    that is made of several code points, unless it is longer than any should be.
    """
    rest, parts = clean(text), []
    while rest:
        end = _fitting(rest, limit)
        end = end if end == len(rest) else _break(rest, end)
        parts.append(rest[:end])
        rest = rest[end:]
    return parts


def one_line(text: str, limit: int) -> str:
    """`text` on one line that fits `limit`."""
    return cut(" ".join(clean(text).split()), limit)


def visible(text: str) -> str:
    """`text`, or a word for it where there is nothing to see, because Slack refuses empty text."""
    if text.strip():
        return text
    return f"({len(text)} blank characters)" if text else EMPTY


def hidden(text: str) -> dict[str, int]:
    """The characters in `text` that cannot be seen but change what is received: their names, with how often."""
    return dict(Counter(map(_name, [*_HIDDEN.findall(text), *_TAG.findall(_FLAG.sub("", text))])))


def _name(character: str) -> str:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "").lower()
    return f"{code} {name}" if name else code


def _cost(character: str) -> int:
    return _COSTS.get(character) or (2 if character > "\uffff" else 1)


def _fitting(text: str, limit: int) -> int:
    """How many characters from the start fit."""
    return bisect_right(list(accumulate(map(_cost, text[:limit]))), limit)


def _break(text: str, end: int) -> int:
    for between in _BREAKS:
        at = text.rfind(between, end // 2, end)
        if at > 0:
            return at + len(between)
    return _unjoined(text, end)


def _unjoined(text: str, end: int) -> int:
    """The nearest end that does not tear a character apart."""
    for at in range(end, max(end - _LONGEST_CLUSTER, 0), -1):
        if not _is_joined(text, at):
            return at
    return end


def _is_joined(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at : at + 1]
    if not after:
        return False
    if _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Me", "Mc"):
        return True
    return "\U0001f3fb" <= after <= "\U0001f3ff" or (_is_flag(before) and _is_flag(after))


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
