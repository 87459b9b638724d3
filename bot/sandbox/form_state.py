"""What a person entered into a form, in the shape Slack reports it, and what Slack's own window refuses to send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.sandbox.records import JsonObject

_PLAIN = {
    "plain_text_input": "value",
    "email_text_input": "value",
    "url_text_input": "value",
    "number_input": "value",
    "datepicker": "selected_date",
    "timepicker": "selected_time",
    "datetimepicker": "selected_date_time",
    "users_select": "selected_user",
    "conversations_select": "selected_conversation",
    "channels_select": "selected_channel",
    "multi_users_select": "selected_users",
    "multi_conversations_select": "selected_conversations",
    "multi_channels_select": "selected_channels",
    "rich_text_input": "rich_text_value",
}
_ONE_OPTION = ("static_select", "external_select", "radio_buttons", "overflow")
_MANY_OPTIONS = ("multi_static_select", "multi_external_select", "checkboxes")
_INITIAL = {
    "value": "initial_value",
    "selected_date": "initial_date",
    "selected_time": "initial_time",
    "selected_date_time": "initial_date_time",
    "selected_user": "initial_user",
    "selected_users": "initial_users",
    "selected_channel": "initial_channel",
    "selected_channels": "initial_channels",
    "selected_conversation": "initial_conversation",
    "selected_conversations": "initial_conversations",
    "rich_text_value": "initial_value",
    "selected_option": "initial_option",
    "selected_options": "initial_options",
}
REQUIRED = "Please complete this required field."


class UnknownOption(ValueError):
    """A value was chosen that the element does not offer."""


def elements(blocks: Sequence[JsonObject]) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Every block with each of its interactive elements."""
    for block in blocks:
        for element in _elements_of(block):
            if element.get("action_id"):
                yield block, element


def find(blocks: Sequence[JsonObject], block_id: str, action_id: str) -> JsonObject | None:
    """The element with these ids, or None."""
    for block, element in elements(blocks):
        if block.get("block_id") == block_id and element["action_id"] == action_id:
            return element
    return None


def chosen(element: JsonObject, value: Any) -> JsonObject:
    """The fields by which a payload reports that `value` was entered into or chosen from this element.

    `value` is a text, a number, an option's value, or a list of those; a mapping that already has Slack's shape is
    taken as it is. Raises `UnknownOption` for an option that is not offered.
    """
    kind = element["type"]
    if isinstance(value, Mapping) and value.get("type") == kind:
        return {name: part for name, part in value.items() if name != "type"}
    if kind in _ONE_OPTION:
        return {"selected_option": None if value in (None, "") else _option(element, value)}
    if kind in _MANY_OPTIONS:
        return {"selected_options": [_option(element, one) for one in _many(value)]}
    if kind == "button":
        sent = element.get("value") if value is None else value
        return {} if sent is None else {"value": sent}
    name = _PLAIN[kind]
    if kind.startswith("multi_"):
        return {name: _many(value)}
    if kind == "datetimepicker":
        return {name: int(value) if value not in (None, "") else None}
    return {name: None if value in (None, "") else (value if kind == "rich_text_input" else str(value))}


def initial(blocks: Sequence[JsonObject]) -> JsonObject:
    """The state of a form nobody has touched: `{block_id: {action_id: …}}`."""
    state: JsonObject = {}
    for block, element in elements(blocks):
        if element["type"] != "button" and element["type"] != "overflow":
            state.setdefault(block["block_id"], {})[element["action_id"]] = _untouched(element)
    return state


def filled(blocks: Sequence[JsonObject], before: JsonObject, entered: Mapping[str, Any]) -> JsonObject:
    """`before` with what was entered; `entered` is `{block_id: {action_id: value}}` or `{block_id: value}`."""
    state = {block_id: dict(values) for block_id, values in before.items()}
    for block, element in elements(blocks):
        if block["block_id"] not in entered or element["type"] in ("button", "overflow"):
            continue
        given = entered[block["block_id"]]
        by_action = given if isinstance(given, Mapping) and "type" not in given else {element["action_id"]: given}
        if element["action_id"] in by_action:
            value = {"type": element["type"], **chosen(element, by_action[element["action_id"]])}
            state.setdefault(block["block_id"], {})[element["action_id"]] = value
    return state


def refused(blocks: Sequence[JsonObject], state: JsonObject) -> dict[str, str]:
    """What Slack's window itself complains about before anything is sent: `{block_id: sentence}`."""
    errors: dict[str, str] = {}
    for block, element in elements(blocks):
        if block["type"] != "input":
            continue
        value = _content(state.get(block["block_id"], {}).get(element["action_id"], {}))
        if value in (None, "", []) and not block.get("optional"):
            errors[block["block_id"]] = REQUIRED
        elif isinstance(value, str) and (complaint := _complaint(element, value)):
            errors[block["block_id"]] = complaint
    return errors


def _complaint(element: JsonObject, value: str) -> str:
    if element["type"] == "number_input":
        return _number_complaint(element, value)
    if element["type"] != "plain_text_input" or not value:
        return ""
    if len(value) > element.get("max_length", len(value)):
        return f"Please enter no more than {element['max_length']} characters."
    if len(value) < element.get("min_length", 0):
        return f"Please enter at least {element['min_length']} characters."
    return ""


def _number_complaint(element: JsonObject, value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return "Please enter a number."
    if not element.get("is_decimal_allowed") and not number.is_integer():
        return "Please enter a whole number."
    if number < float(element.get("min_value", number)):
        return f"Please enter a number no less than {element['min_value']}."
    if number > float(element.get("max_value", number)):
        return f"Please enter a number no greater than {element['max_value']}."
    return ""


def _elements_of(block: JsonObject) -> list[JsonObject]:
    found = list(block.get("elements", [])) if block["type"] in ("actions", "context_actions") else []
    found += [block[name] for name in ("accessory", "element") if isinstance(block.get(name), dict)]
    return found


def _untouched(element: JsonObject) -> JsonObject:
    kind = element["type"]
    if kind in _ONE_OPTION:
        name = "selected_option"
    else:
        name = "selected_options" if kind in _MANY_OPTIONS else _PLAIN.get(kind, "value")
    empty: Any = [] if name.endswith("s") else None
    return {"type": kind, name: element.get(_INITIAL[name], empty)}


def _content(value: JsonObject) -> Any:
    return next((part for name, part in value.items() if name != "type"), None)


def _many(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return [value] if isinstance(value, str | int) else list(value)


def _option(element: JsonObject, value: Any) -> JsonObject:
    options = list(element.get("options", []))
    for group in element.get("option_groups", []):
        options += group["options"]
    wanted = value.get("value") if isinstance(value, Mapping) else str(value)
    for option in options:
        if option.get("value") == wanted:
            return dict(option)
    raise UnknownOption(f"{wanted!r} is not an option of {element['action_id']!r}; choose one that is shown.")
