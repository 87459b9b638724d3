"""Slack's structured text, `rich_text` and `table` blocks, as HTML."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.sandbox.emoji import EMOJI
from bot.sandbox.markup import Html, element, escape, join
from bot.sandbox.mrkdwn import Reader, channel_link, link, moment, mrkdwn
from bot.sandbox.place import unsupported
from bot.sandbox.records import JsonObject

_STYLES = (("code", "code"), ("bold", "strong"), ("italic", "em"), ("strike", "s"))


def rich_text(block: JsonObject, reader: Reader) -> Html:
    """A `rich_text` block."""
    return element("div", *(_part(part, reader) for part in block["elements"]), class_="rich")


def table(block: JsonObject, reader: Reader) -> Html:
    """A `table` block; its first row is the heading."""
    settings = block.get("column_settings") or []
    rows = [
        element("tr", *(_cell(cell, reader, settings, n, heading=i == 0) for n, cell in enumerate(row)))
        for i, row in enumerate(block["rows"])
    ]
    return element("div", element("table", *rows), class_="table", tabindex=0, role="region", aria_label="Table")


def _cell(cell: JsonObject, reader: Reader, settings: list[JsonObject | None], n: int, *, heading: bool) -> Html:
    setting = (settings[n] if n < len(settings) else None) or {}
    align = setting.get("align")
    inside = rich_text(cell, reader) if cell["type"] == "rich_text" else escape(str(cell["text"]))
    return element("th" if heading else "td", inside, class_=align if align in ("center", "right") else None)


def _part(part: JsonObject, reader: Reader) -> Html:
    match part["type"]:
        case "rich_text_section":
            return element("p", _pieces(part, reader))
        case "rich_text_quote":
            return element("blockquote", _pieces(part, reader))
        case "rich_text_preformatted":
            return element("pre", _pieces(part, reader))
        case "rich_text_list":
            items = (element("li", _pieces(item, reader)) for item in part["elements"])
            indent = min(int(part.get("indent") or 0), 6)
            return element("ol" if part.get("style") == "ordered" else "ul", *items, class_=f"indent-{indent}")
        case other:
            return unsupported(str(other))


def _pieces(part: JsonObject, reader: Reader) -> Html:
    return join(_styled(_piece(piece, reader), piece.get("style") or {}) for piece in part["elements"])


def _styled(inside: Html, style: JsonObject) -> Html:
    for key, tag in _STYLES:
        inside = element(tag, inside) if style.get(key) is True else inside
    return inside


def _piece(piece: JsonObject, reader: Reader) -> Html:
    match piece["type"]:
        case "text":
            return escape(piece["text"])
        case "link":
            return link(piece["url"], piece.get("text") or piece["url"])
        case "emoji":
            return escape(EMOJI.get(piece["name"], f":{piece['name']}:"))
        case "user":
            return mrkdwn(f"<@{piece['user_id']}>", reader)
        case "channel":
            key = piece["channel_id"]
            return channel_link(key, f"#{reader.channels.get(key, key)}", reader)
        case "broadcast":
            return mrkdwn(f"<!{piece['range']}>", reader)
        case "date":
            return moment(datetime.fromtimestamp(int(piece["timestamp"]), UTC), reader, piece["format"])
        case other:
            return element("code", escape(str(other)))
