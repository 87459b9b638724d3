"""The stand-in's checks of Block Kit: every limit at its edge, and the same verdicts as the published schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator

from bot import limits
from bot.sandbox import block_kit
from tests.shared import SHARED

SCHEMAS = SHARED / "slack/schemas"


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def button(text: str = "Go", **fields: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": "go", "text": plain(text), **fields}


def actions(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "elements": list(elements)}


def field(**element: Any) -> dict[str, Any]:
    return {"type": "input", "label": plain("Label"), "element": {"action_id": "a", **element}}


def options(number: int) -> list[dict[str, Any]]:
    return [{"text": plain(f"Option {n}"), "value": str(n)} for n in range(number)]


def select(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "static_select", "action_id": "s", "options": options(number), **fields}


def confirm(title: int = 10, text: int = 10, word: int = 10) -> dict[str, Any]:
    return {
        "title": plain("x" * title),
        "text": plain("x" * text),
        "confirm": plain("x" * word),
        "deny": plain("No"),
    }


FITS: list[dict[str, Any]] = [
    {"type": "section", "text": mrkdwn("x" * 3000)},
    {"type": "section", "fields": [mrkdwn("x" * 2000)] * 5},
    {"type": "section", "text": plain("x"), "accessory": button()},
    {"type": "header", "text": plain("x" * 150)},
    {"type": "divider"},
    {"type": "context", "elements": [mrkdwn("x")] * 10},
    actions(button("x" * 75, value="x" * 2000, style="danger", url="https://example.org")),
    actions(button(confirm=confirm(100, 300, 30))),
    actions(select(100), {"type": "overflow", "action_id": "o", "options": options(5)}),
    actions(*({"type": "button", "action_id": f"b{n}", "text": plain("x")} for n in range(25))),
    actions({"type": "datepicker", "action_id": "d", "initial_date": "2026-06-06"}),
    actions({"type": "checkboxes", "action_id": "c", "options": options(10)}),
    actions({"type": "radio_buttons", "action_id": "r", "options": options(10), "initial_option": options(1)[0]}),
    {"type": "image", "image_url": "https://example.org/a.png", "alt_text": "A map"},
    {"type": "markdown", "text": "# Title"},
    {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "plain"}]}],
    },
    field(type="plain_text_input", initial_value="x" * 3000, max_length=3000, placeholder=plain("x" * 150)),
    field(type="number_input", is_decimal_allowed=False, min_value="1"),
    field(**select(3, initial_option=options(3)[2])),
    field(type="multi_users_select", max_selected_items=3),
]
TOO_MUCH: list[dict[str, Any]] = [
    {"type": "section", "text": mrkdwn("x" * 3001)},
    {"type": "section", "fields": [mrkdwn("x" * 2001)]},
    {"type": "section", "fields": [mrkdwn("x")] * 11},
    {"type": "section", "text": mrkdwn("")},
    {"type": "header", "text": plain("x" * 151)},
    {"type": "header", "text": mrkdwn("x")},
    {"type": "context", "elements": [mrkdwn("x")] * 11},
    {"type": "context", "elements": [button()]},
    {"type": "teleport"},
    {"type": "section", "text": mrkdwn("x"), "colour": "red"},
    {"type": "section", "text": mrkdwn("x"), "block_id": "x" * 256},
    actions(button("x" * 76)),
    actions(button(value="x" * 2001)),
    actions(button(style="loud")),
    actions({**button(), "action_id": "x" * 256}),
    actions({"type": "button", "action_id": "a"}),
    actions(button(confirm=confirm(title=101))),
    actions(button(confirm=confirm(text=301))),
    actions(button(confirm=confirm(word=31))),
    actions(*({"type": "button", "action_id": f"b{n}", "text": plain("x")} for n in range(26))),
    actions({"type": "plain_text_input", "action_id": "p"}),
    {"type": "image", "image_url": "https://example.org/a.png"},
    {"type": "input", "element": {"type": "plain_text_input", "action_id": "a"}},
    {**field(type="plain_text_input"), "label": plain("x" * 2001)},
    field(type="plain_text_input", max_length=3001),
    field(type="plain_text_input", placeholder=plain("x" * 151)),
    field(type="number_input"),
    {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}]] * 101},
    {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}] * 21]},
    actions({"type": "static_select", "action_id": "s", "options": [{"text": plain("x" * 76), "value": "1"}]}),
    actions({"type": "static_select", "action_id": "s", "options": [{"text": plain("x"), "value": "1" * 151}]}),
]
BEYOND_THE_SCHEMA: list[dict[str, Any]] = [
    {"type": "section"},
    actions(button(), button()),
    actions(select(101)),
    actions({"type": "overflow", "action_id": "o", "options": options(6)}),
    actions({"type": "checkboxes", "action_id": "c", "options": options(11)}),
    actions({"type": "static_select", "action_id": "s"}),
    actions(select(2, initial_option=options(3)[2])),
    actions(button(url="javascript:alert(1)")),
    actions({"type": "datepicker", "action_id": "d", "initial_date": "tomorrow"}),
    {"type": "image", "alt_text": "neither url nor file"},
    field(type="plain_text_input", initial_value="four", max_length=3),
    field(type="plain_text_input", min_length=4, max_length=3),
]


def schema_takes(block: dict[str, Any]) -> bool:
    path = SCHEMAS / "MessageBlocks.with-limits.schema.json"
    if not path.exists():
        pytest.skip("The published schema of Block Kit is not on this machine.")
    return bool(Draft7Validator(json.loads(path.read_text())).is_valid([block]))


def named(blocks: list[dict[str, Any]]) -> list[str]:
    return [f"{block['type']}-{at}" for at, block in enumerate(blocks)]


@pytest.mark.parametrize("block", FITS, ids=named(FITS))
def test_a_block_within_its_limits_is_taken(block: dict[str, Any]) -> None:
    assert block_kit.check_message([block]) == []


@pytest.mark.parametrize("block", TOO_MUCH + BEYOND_THE_SCHEMA, ids=named(TOO_MUCH + BEYOND_THE_SCHEMA))
def test_a_block_beyond_its_limits_is_refused(block: dict[str, Any]) -> None:
    assert block_kit.check_message([block])


@pytest.mark.allowed_skip
@pytest.mark.parametrize("block", FITS, ids=named(FITS))
def test_the_published_schema_takes_it_too(block: dict[str, Any]) -> None:
    assert schema_takes(block)


@pytest.mark.allowed_skip
@pytest.mark.parametrize("block", TOO_MUCH, ids=named(TOO_MUCH))
def test_the_published_schema_refuses_it_too(block: dict[str, Any]) -> None:
    assert not schema_takes(block)


def test_a_message_takes_50_blocks_and_a_view_100() -> None:
    divider = {"type": "divider"}
    assert block_kit.check_message([divider] * 50) == []
    assert block_kit.check_message([divider] * 51) == [block_kit.Problem("no more than 50 items allowed", "/blocks")]
    home = {"type": "home", "blocks": [divider] * 101}
    assert block_kit.check_view(home, "home") == [block_kit.Problem("no more than 100 items allowed", "/view/blocks")]


def test_markdown_counts_over_all_blocks_of_a_message() -> None:
    half = {"type": "markdown", "text": "x" * 6_001}
    assert block_kit.check_message([half]) == []
    assert block_kit.check_message([half, half])


def test_two_blocks_with_one_id_are_refused() -> None:
    twins = [{"type": "divider", "block_id": "same"}] * 2
    assert [problem.pointer for problem in block_kit.check_message(twins)] == [
        "/blocks/0/block_id",
        "/blocks/1/block_id",
    ]


def test_blocks_that_are_no_list_or_no_objects_are_refused() -> None:
    assert block_kit.check_message("text")
    assert block_kit.check_message(["text", 5, None])


def modal(**fields: Any) -> dict[str, Any]:
    return {"type": "modal", "title": plain("Edit"), "submit": plain("Send"), "blocks": [], **fields}


@pytest.mark.parametrize(
    "view",
    [
        modal(title=plain("x" * 25)),
        modal(submit=plain("x" * 25)),
        modal(close=plain("x" * 25)),
        modal(private_metadata="x" * 3001),
        modal(callback_id="x" * 256),
        modal(external_id="x" * 256),
        modal(blocks=[{"type": "markdown", "text": "x"}]),
        modal(blocks=[field(type="plain_text_input")], submit=None),
        modal(colour="red"),
        {"type": "modal", "blocks": []},
        {"type": "modal", "title": plain("Edit")},
        {"type": "home", "blocks": []},
    ],
)
def test_a_modal_that_slack_would_refuse_is_refused(view: dict[str, Any]) -> None:
    assert block_kit.check_view(view, "modal")


def test_a_modal_at_every_limit_is_taken() -> None:
    view = modal(
        title=plain("x" * limits.VIEW_TITLE),
        submit=plain("x" * limits.VIEW_SUBMIT),
        close=plain("x" * limits.VIEW_CLOSE),
        private_metadata="x" * limits.VIEW_PRIVATE_METADATA,
        callback_id="x" * limits.VIEW_CALLBACK_ID,
        external_id="x" * limits.VIEW_EXTERNAL_ID,
        blocks=[field(type="plain_text_input", min_length=0, max_length=limits.INPUT_TEXT)],
        notify_on_close=True,
    )
    assert block_kit.check_view(view, "modal") == []


def test_the_text_of_a_message_is_counted_however_deep_it_stands() -> None:
    blocks = [{"type": "section", "text": mrkdwn("1234"), "fields": [mrkdwn("56")]}, actions(button("789"))]
    assert block_kit.text_length(blocks) == 9


def test_missing_ids_are_made_up_and_given_ones_kept() -> None:
    blocks = [actions({"type": "button", "text": plain("Go")}), {"type": "divider", "block_id": "mine"}]
    first, second = block_kit.with_ids(blocks)
    assert first["block_id"] and first["elements"][0]["action_id"]
    assert second["block_id"] == "mine"
    assert "block_id" not in blocks[0]
