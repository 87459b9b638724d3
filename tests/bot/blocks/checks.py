"""What Slack would refuse in a payload, found without Slack: the SDK's own checks, and those it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from bot import limits
from bot.blocks import actions
from bot.blocks.actions import Subject
from bot.blocks.reading import read_view
from bot.blocks.review import ReviewCard

Json = dict[str, Any]
INPUTS_OF_A_FORM = {
    "plain_text_input",
    "number_input",
    "datepicker",
    "static_select",
    "multi_static_select",
    "checkboxes",
    "radio_buttons",
}


def parts(thing: Any) -> Iterator[Json]:
    """Every dict in a payload, at any depth."""
    if isinstance(thing, list):
        for one in thing:
            yield from parts(one)
    elif isinstance(thing, dict):
        yield thing
        for one in thing.values():
            yield from parts(one)


def texts(payload: Json) -> list[str]:
    """Every text that is shown, in order."""
    return [part["text"] for part in parts(payload["blocks"]) if isinstance(part.get("text"), str)]


def literal_text(payload: Json) -> str:
    """What the sections of plain text say, joined."""
    return "".join(block["text"]["text"] for block in payload["blocks"] if is_literal(block))


def is_literal(block: Json) -> bool:
    return block["type"] == "section" and block.get("text", {}).get("type") == "plain_text"


def mrkdwn_texts(payload: Json) -> list[str]:
    """Every text that Slack reads for mentions, links and dates, the notification's too."""
    read = [part["text"] for part in parts(payload["blocks"]) if part.get("type") == "mrkdwn"]
    return [*read, payload.get("text", "")]


def action_ids(payload: Json) -> list[str]:
    """The names of all buttons, menus and fields, in order."""
    return [str(part["action_id"]) for part in parts(payload["blocks"]) if "action_id" in part]


def read_through(card: ReviewCard) -> list[Json]:
    """Every page of a card, turned by its own button until there is none."""
    pages = [check_view(read_view(card))]
    while actions.READ_ON in action_ids(pages[-1]):
        pages.append(check_view(read_view(card, Subject.parse(element(pages[-1], actions.READ_ON)["value"]).page)))
    return pages


def element(payload: Json, action_id: str) -> Json:
    """The one button, menu or field of that name."""
    (found,) = [part for part in parts(payload["blocks"]) if part.get("action_id") == action_id]
    return found


def check_message(payload: Json) -> Json:
    """Assert that Slack would take this message; returns it."""
    assert 0 < len(payload["text"]) <= limits.UPDATE_TEXT
    assert 0 < len(payload["blocks"]) <= limits.MESSAGE_BLOCKS
    assert sum(map(len, texts(payload))) <= limits.MESSAGE_BLOCKS_TEXT
    assert not any(block["type"] == "input" for block in payload["blocks"])
    check_blocks(payload["blocks"])
    return payload


def check_view(view: Json) -> Json:
    """Assert that Slack would take this modal or Home tab; returns it."""
    View(**view).validate_json()
    assert len(str(view).encode("utf-8", "surrogatepass")) <= limits.VIEW_BYTES
    assert len(view["blocks"]) <= limits.VIEW_BLOCKS
    if view["type"] == "modal":
        assert 0 < len(view["title"]["text"]) <= limits.VIEW_TITLE
        assert len(view["private_metadata"]) <= limits.VIEW_PRIVATE_METADATA
        assert "submit" in view or not any(block["type"] == "input" for block in view["blocks"])
    check_blocks(view["blocks"])
    return view


def check_blocks(blocks: list[Json]) -> None:
    """Assert what holds for blocks wherever they stand."""
    for block in blocks:
        model = Block.parse(block)
        assert model is not None, f"Slack's SDK knows no block like {block['type']}"
        model.validate_json()
        assert set(block) >= {"type", "block_id"}
        assert 0 < len(block["block_id"]) <= limits.BLOCK_ID
        names = [part["action_id"] for part in parts(block) if "action_id" in part]
        assert repeated(names) == []
    assert repeated([block["block_id"] for block in blocks]) == []
    for part in parts(blocks):
        check_part(part)


def check_part(part: Json) -> None:
    """Assert what the SDK does not: fields, lengths of texts in rows, inputs, and that every text can be sent."""
    if isinstance(part.get("text"), str):
        assert part["text"].strip() or (part["text"] and part["type"] == "text"), "a text with nothing to see"
        assert not any("\ud800" <= character <= "\udfff" or character == "\0" for character in part["text"])
    for text in part.get("fields", []):
        assert 0 < len(text["text"]) <= limits.SECTION_FIELD
    assert len(part.get("fields", [])) <= limits.SECTION_FIELDS
    if part.get("type") == "section":
        assert "text" in part or part.get("fields")
        assert len(part.get("text", {}).get("text", "")) <= limits.SECTION_TEXT
    if part.get("type") == "plain_text_input":
        assert 1 <= part["max_length"] <= limits.INPUT_TEXT
        assert len(part.get("initial_value", "")) <= part["max_length"]
    if part.get("type") == "button":
        assert "url" not in part
    if part.get("type") == "input":
        assert part["element"]["type"] in INPUTS_OF_A_FORM
    offered = [*part.get("options", []), *(one for group in part.get("option_groups", []) for one in group["options"])]
    assert part.get("initial_option") is None or part["initial_option"] in offered


def repeated(names: list[str]) -> list[str]:
    return [name for name, often in Counter(names).items() if often > 1]
