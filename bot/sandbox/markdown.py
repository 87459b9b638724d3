"""The `markdown` block: headings, lists, quotes, code, emphasis and links."""

from __future__ import annotations

import re
from itertools import groupby

from bot.sandbox.emoji import EMOJI
from bot.sandbox.markup import Html, element, escape, join
from bot.sandbox.mrkdwn import link

_FENCE = re.compile(r"^```[^\n]*\n(.*?)(?:\n```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(
    r"(?P<heading>#{1,6}) +(?P<title>.*)|(?P<rule>(?:-{3,}|\*{3,}))\s*$"
    r"|(?P<bullet>\s*[-*+]) +(?P<item>.*)|(?P<number>\s*\d{1,9}[.)]) +(?P<step>.*)|> ?(?P<quote>.*)"
)
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\[(?P<label>[^\[\]\n]+)\]\((?P<url>[^()\s]+)\)|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|(?<!\w)[*_](?P<em>[^*_\n]+)[*_](?!\w)|~~(?P<s>[^~\n]+)~~|:(?P<emoji>[a-z0-9_+-]+):"
)
_WHOLE = {"bullet": "ul", "number": "ol", "quote": "blockquote"}


def markdown(text: str) -> Html:
    """Markdown as Slack's `markdown` block draws it; HTML in it is shown as text."""
    parts = _FENCE.split(text)
    return join(element("pre", part) if index % 2 else _blocks(part) for index, part in enumerate(parts))


def _blocks(text: str) -> Html:
    lines = [(_kind(line), line) for line in text.split("\n")]
    return join(_block(kind, [line for _, line in group]) for kind, group in groupby(lines, lambda pair: pair[0]))


def _kind(line: str) -> str:
    found = _LINE.match(line)
    if found is None:
        return "text" if line.strip() else "gap"
    return next(kind for kind in ("heading", "rule", "bullet", "number", "quote") if found[kind] is not None)


def _block(kind: str, lines: list[str]) -> Html:
    match kind:
        case "gap":
            return Html("")
        case "rule":
            return element("hr")
        case "heading":
            return join(_heading(line) for line in lines)
        case "bullet" | "number":
            return element(_WHOLE[kind], *(element("li", _inline(_content(line))) for line in lines))
        case "quote":
            return element("blockquote", _inline("\n".join(map(_content, lines))))
        case _:
            return element("p", _inline("\n".join(lines)))


def _heading(line: str) -> Html:
    marks, _, title = line.partition(" ")
    # The page's own headings end at level 2; a message's start below it.
    return element(f"h{min(len(marks) + 2, 6)}", _inline(title.strip()))


def _content(line: str) -> str:
    found = _LINE.match(line)
    return next((found[k] for k in ("item", "step", "quote") if found[k] is not None), line) if found else line


def _inline(text: str) -> Html:
    parts: list[str] = []
    end = 0
    for found in _INLINE.finditer(text):
        parts += [text[end : found.start()], _piece(found)]
        end = found.end()
    return join([*parts, text[end:]])


def _piece(found: re.Match[str]) -> Html:
    if found["code"]:
        return element("code", found["code"])
    if found["url"]:
        return link(found["url"], found["label"])
    if found["emoji"]:
        return escape(EMOJI.get(found["emoji"], found[0]))
    tag = next(tag for tag in ("strong", "em", "s") if found[tag])
    return element(tag, _inline(found[tag]))
