"""What somebody changed in a draft, readable: word by word where texts are short, line by line where they are long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from bot.blocks.elements import Json, section
from bot.blocks.text import EMPTY, clean, cut, fill, one_line, units

_WORDS = re.compile(r"\s+|\S+")
_MOST_WORDS = 300
_ALIKE = 0.4
_SHORTEST_CUT = 20
Run = tuple[str, str]  # how it stands ("same", "old", "new") and the text


@dataclass(frozen=True, slots=True)
class Change:
    """One field of a draft, by its label, as it was and as it is."""

    label: str
    old: str
    new: str


def difference(changes: Sequence[Change], limit: int) -> list[Json]:
    """Each change as its label and a quotation: struck out what is gone, bold what is new; all within `limit` units."""
    blocks: list[Json] = []
    room = limit // max(len(changes), 1)
    for change in changes:
        runs = _cut(_runs(clean(change.old), clean(change.new)), max(room - 100, _SHORTEST_CUT))
        blocks += [section(fill("*Changed: {label}*", label=one_line(change.label, 60))), _quotation(runs)]
    return blocks


def _runs(old: str, new: str) -> list[Run]:
    words = _WORDS.findall(old), _WORDS.findall(new)
    if max(map(len, words)) > _MOST_WORDS:
        return _of_lines(old.splitlines(keepends=True), new.splitlines(keepends=True))
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if old and new and matcher.ratio() >= _ALIKE:
        return _grouped(_compared(matcher, *words))
    return [("old", old or EMPTY), ("same", "  →  "), ("new", new or EMPTY)]


def _of_lines(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Only the lines that changed, because nobody finds one word in pages of text."""
    runs = _compared(SequenceMatcher(None, old, new, autojunk=False), old, new)
    return [("same", "…\n") if how == "same" else (how, text) for how, text in _grouped(runs)]


def _compared(matcher: SequenceMatcher[str], old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            yield "same", "".join(old[old_from:old_to])
            continue
        yield "old", "".join(old[old_from:old_to])
        if old_to > old_from and new_to > new_from:
            yield "same", " "
        yield "new", "".join(new[new_from:new_to])


def _grouped(runs: Iterator[Run]) -> list[Run]:
    told = groupby((run for run in runs if run[1]), key=lambda run: run[0])
    return [(how, "".join(text for _, text in group)) for how, group in told]


def _cut(runs: Sequence[Run], room: int) -> list[Run]:
    """The runs within `room`: each is cut to its share, and the last ones fall away where there are too many."""
    if sum(units(text) for _, text in runs) <= room:
        return list(runs)
    share = max(room // max(len(runs), 1), _SHORTEST_CUT)
    kept: list[Run] = []
    for how, text in runs:
        shorter = cut(text, min(share, room)) if room > _SHORTEST_CUT else ""
        if not shorter:
            return [*kept, ("same", " …")]
        kept.append((how, shorter))
        room -= units(shorter)
    return kept


def _quotation(runs: Sequence[Run]) -> Json:
    # Rich text, because there nothing in a text can be read as a mark of ours.
    styles: dict[str, Json] = {"same": {}, "old": {"style": {"strike": True}}, "new": {"style": {"bold": True}}}
    elements = [{"type": "text", "text": text, **styles[how]} for how, text in runs]
    return {"type": "rich_text", "elements": [{"type": "rich_text_quote", "elements": elements}]}
