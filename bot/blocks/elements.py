"""Block Kit's parts as plain dicts, each within its limit whatever it is given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bot import limits
from bot.blocks.text import Mrkdwn, clean, cut, escape, one_line, pieces, units, visible

Json = dict[str, Any]

# For chat.postMessage, the one method that unfurls.
QUIET: Final[Mapping[str, bool]] = {"unfurl_links": False, "unfurl_media": False}
FALLBACK = 600
_EMOJI_NAME = re.compile(r":[a-z0-9_+'-]+:")


def plain(text: str, limit: int) -> Json:
    """A `plain_text` object, in which Slack reads nothing.

    A text that spells an emoji's name, such as ":tada:", is shown as it is; then Slack spells out real emoji too.
    """
    return {"type": "plain_text", "text": visible(cut(text, limit)), "emoji": not _EMOJI_NAME.search(text)}


def label(text: str, limit: int) -> Json:
    """A `plain_text` object on one line: titles, buttons, options."""
    return plain(one_line(text, limit), limit)


def mrkdwn(text: str, limit: int = limits.SECTION_TEXT) -> Json:
    """A `mrkdwn` object; raw text is cut and escaped. Mrkdwn must fit already: cutting it could tear a link open."""
    shown = Mrkdwn(visible(text)) if isinstance(text, Mrkdwn) else escape(visible(cut(text, limit)))
    if units(shown) > limit:
        raise ValueError(f"This text has {units(shown)} units, over Slack's {limit}; cut its parts first.")
    return {"type": "mrkdwn", "text": str(shown), "verbatim": True}


def section(text: str) -> Json:
    """A paragraph of mrkdwn."""
    return {"type": "section", "text": mrkdwn(text)}


def literal(text: str) -> list[Json]:
    """Text exactly as it is, in as many sections as it needs."""
    parts = pieces(text, limits.SECTION_TEXT) or [""]
    return [{"type": "section", "text": plain(part, limits.SECTION_TEXT)} for part in parts]


def field_sections(fields: Sequence[str]) -> list[Json]:
    """Short texts of mrkdwn in two columns."""
    texts = [mrkdwn(text, limits.SECTION_FIELD) for text in fields]
    size = limits.SECTION_FIELDS
    return [{"type": "section", "fields": texts[at : at + size]} for at in range(0, len(texts), size)]


def header(text: str) -> Json:
    """A heading."""
    return {"type": "header", "text": label(text, limits.HEADER_TEXT)}


def context(text: str) -> Json:
    """A line in small print."""
    return {"type": "context", "elements": [mrkdwn(text, limits.CONTEXT_TEXT)]}


def divider() -> Json:
    """A line across."""
    return {"type": "divider"}


def button(
    text: str, action_id: str, value: str, *, style: str = "", confirm: Json | None = None, says: str = ""
) -> Json:
    """A button; `says` is read aloud instead of its text where one word is not enough."""
    made: Json = {"type": "button", "text": label(text, limits.BUTTON_TEXT), "action_id": action_id, "value": value}
    made |= {"style": style} if style else {}
    made |= {"confirm": confirm} if confirm else {}
    return made | ({"accessibility_label": one_line(says, limits.ACCESSIBILITY_LABEL)} if says else {})


def confirmation(title: str, text: str, yes: str, no: str = "Back", style: str = "primary") -> Json:
    """A dialog that asks once more."""
    return {
        "title": label(title, limits.CONFIRM_TITLE),
        "text": plain(text, limits.CONFIRM_TEXT),
        "confirm": label(yes, limits.CONFIRM_BUTTON),
        "deny": label(no, limits.CONFIRM_BUTTON),
        "style": style,
    }


def actions(block_id: str, elements: Sequence[Json]) -> Json:
    """A row of buttons."""
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


def option(text: str, value: str) -> Json:
    """One thing to choose."""
    return {"text": label(text, limits.OPTION_TEXT), "value": value}


def options(labels: Sequence[str]) -> Json:
    """All things to choose, by their number from 0: a list, or groups of a hundred where the list would be too long."""
    every = [option(text, str(number)) for number, text in enumerate(labels)]
    size = limits.SELECT_OPTIONS
    if len(every) <= size:
        return {"options": every}
    groups = [every[at : at + size] for at in range(0, min(len(every), size * limits.OPTION_GROUPS), size)]
    return {"option_groups": [{"label": _range(group), "options": group} for group in groups]}


def message(text: str, blocks: Sequence[Json], scope: str) -> Json:
    """What chat.postMessage, chat.update, chat.postEphemeral and respond take; `text` is for notifications.

    `scope` is what the blocks are named after.
    """
    told = mrkdwn(text if isinstance(text, Mrkdwn) else cut(text, FALLBACK), limits.UPDATE_TEXT)
    return {"text": told["text"], "blocks": numbered(blocks, scope)}


def modal(
    callback_id: str, title: str, blocks: Sequence[Json], *, metadata: str = "", submit: str = "", close: str = "Close"
) -> Json:
    """A window; `metadata` holds ids and nothing else."""
    view: Json = {
        "type": "modal",
        "callback_id": callback_id,
        "title": label(title, limits.VIEW_TITLE),
        "close": label(close, limits.VIEW_CLOSE),
        "private_metadata": metadata,
        "blocks": numbered(blocks, metadata or callback_id),
    }
    return view | ({"submit": label(submit, limits.VIEW_SUBMIT)} if submit else {})


def text_units(part: Any) -> int:
    """How much text Slack may count in a block or in anything within one."""
    if isinstance(part, list):
        return sum(map(text_units, part))
    if not isinstance(part, dict):
        return 0
    text = part.get("text")
    own = units(Mrkdwn(text) if part.get("type") == "mrkdwn" else clean(text)) if isinstance(text, str) else 0
    return own + sum(text_units(inner) for inner in part.values())


def numbered(blocks: Iterable[Json], scope: str) -> list[Json]:
    """The blocks, with a `block_id` for each that has none: `scope`, then its place."""
    return [block if "block_id" in block else block | {"block_id": f"{scope}/{n}"} for n, block in enumerate(blocks)]


def _range(group: Sequence[Json]) -> Json:
    first, last = int(group[0]["value"]) + 1, int(group[-1]["value"]) + 1
    return label(f"{first} to {last}", limits.OPTION_GROUP_LABEL)
