"""A window as Slack reports it back: untouched, or with other things entered."""

from __future__ import annotations

from typing import Any

from bot.blocks.actions import FIELD

Json = dict[str, Any]
REPORTED = {
    "plain_text_input": ("value", "initial_value"),
    "number_input": ("value", "initial_value"),
    "datepicker": ("selected_date", "initial_date"),
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "multi_static_select": ("selected_options", "initial_options"),
    "checkboxes": ("selected_options", "initial_options"),
}


def state_of(view: Json, **entered: Any) -> Json:
    """The state of the view: what it was opened with, and `entered` by the name of the field."""
    values: Json = {}
    for block in view["blocks"]:
        if block["type"] == "input":
            element = block["element"]
            key, initial = REPORTED[element["type"]]
            name = block["block_id"].split("/")[1]
            value = entered[name] if name in entered else element.get(initial, [] if key.endswith("s") else None)
            values[block["block_id"]] = {FIELD: {"type": element["type"], key: value}}
    return {"values": values}


def option(view: Json, name: str, number: int) -> Json:
    """The option with this number of the field with this name."""
    (block,) = [b for b in view["blocks"] if b["type"] == "input" and b["block_id"].split("/")[1] == name]
    groups = block["element"].get("option_groups", [{"options": block["element"].get("options", [])}])
    every: list[Json] = [one for group in groups for one in group["options"]]
    return every[number]
