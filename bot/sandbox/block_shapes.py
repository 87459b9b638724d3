"""The shape of every block, element and view that the stand-in takes, with its limits.

Blocks newer than these (cards, carousels, data tables, charts, videos, files) are refused as unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot import limits
from bot.sandbox.shapes import (
    Check,
    Problem,
    anything,
    array,
    at_least_one,
    boolean,
    by_type,
    exactly_one,
    one_of,
    pattern,
    record,
    string,
    whole,
)

_TYPE: dict[str, Check] = {"type": anything}
_DATE = pattern(r"\d{4}-\d{2}-\d{2}", "a date as YYYY-MM-DD")
_TIME = pattern(r"\d{2}:\d{2}", "a time as HH:mm")
_NUMBER = pattern(r"-?\d+(\.\d+)?", "a number in a string")
_IDS = array(string(), limits.SELECT_OPTIONS, 0)
_URL = pattern(rf"(https?|mailto|slack)[:/]\S{{1,{limits.BUTTON_URL}}}", "a url")


def plain(most: int) -> Check:
    """A plain_text object of 1 to `most` characters."""
    fields: dict[str, Check] = {"text": string(most, 1), "type": one_of("plain_text")}
    return record(fields, {"emoji": boolean})


def text(most: int) -> Check:
    """A plain_text or mrkdwn object of 1 to `most` characters."""
    mrkdwn = record({"type": anything, "text": string(most, 1)}, {"verbatim": boolean})
    return by_type({"plain_text": plain(most), "mrkdwn": mrkdwn})


CONFIRM = record(
    {"title": plain(limits.CONFIRM_TITLE), "text": text(limits.CONFIRM_TEXT)},
    {
        "confirm": plain(limits.CONFIRM_BUTTON),
        "deny": plain(limits.CONFIRM_BUTTON),
        "style": one_of("primary", "danger"),
    },
)
_ACTION: dict[str, Check] = {"action_id": string(limits.ACTION_ID, 1)}
_CONFIRM: dict[str, Check] = {"confirm": CONFIRM}
_FOCUS: dict[str, Check] = {"focus_on_load": boolean}
_PLACEHOLDER: dict[str, Check] = {"placeholder": plain(limits.PLACEHOLDER)}
_DISPATCH: dict[str, Check] = {
    "dispatch_action_config": record(
        {}, {"trigger_actions_on": array(one_of("on_enter_pressed", "on_character_entered"), 2)}
    )
}


def option(description: bool = True, url: bool = False, mrkdwn: bool = False) -> Check:
    """An option object."""
    optional: dict[str, Check] = {"value": string(limits.OPTION_VALUE)}
    if description:
        optional["description"] = (text if mrkdwn else plain)(limits.OPTION_DESCRIPTION)
    if url:
        optional["url"] = string(limits.OPTION_URL)
    return record({"text": (text if mrkdwn else plain)(limits.OPTION_TEXT)}, optional)


_OPTION = option()
_RICH_OPTION = option(mrkdwn=True)
_GROUP = record({"label": plain(limits.OPTION_GROUP_LABEL), "options": array(_OPTION, limits.SELECT_OPTIONS)}, {})


def _element(required: Mapping[str, Check], *optional: Mapping[str, Check], rules: tuple[Check, ...] = ()) -> Check:
    known: dict[str, Check] = {}
    for part in (_ACTION, *optional):
        known |= part
    return record({**_TYPE, **required}, known, *rules)


def _menu(own: Mapping[str, Check], *rules: Check) -> Check:
    return _element({}, _PLACEHOLDER, _CONFIRM, _FOCUS, own, rules=rules)


def _initial_is_offered(name: str) -> Check:
    def check(value: Any, at: str) -> Iterator[Problem]:
        chosen = value.get(name)
        if chosen is None:
            return
        offered = list(value.get("options") or [])
        for group in value.get("option_groups") or []:
            offered += group.get("options", []) if isinstance(group, Mapping) else []
        for one in chosen if isinstance(chosen, list) else [chosen]:
            if one not in offered:
                yield Problem(f"`{name}` must match an option exactly", f"{at}/{name}")

    return check


def _fits_max_length(value: Any, at: str) -> Iterator[Problem]:
    most, least, before = value.get("max_length"), value.get("min_length"), value.get("initial_value")
    if isinstance(most, int) and isinstance(before, str) and len(before) > most:
        yield Problem(f"must be less than {most + 1} characters", f"{at}/initial_value")
    if isinstance(most, int) and isinstance(least, int) and least > most:
        yield Problem("min_length must not exceed max_length", at)


_STATIC: dict[str, Check] = {
    "options": array(_OPTION, limits.SELECT_OPTIONS),
    "option_groups": array(_GROUP, limits.OPTION_GROUPS),
}
_MANY: dict[str, Check] = {"max_selected_items": whole(1, limits.SELECT_OPTIONS)}
_QUERY: dict[str, Check] = {"min_query_length": whole(0, limits.SELECT_OPTIONS)}
_RESPONDS: dict[str, Check] = {"response_url_enabled": boolean}
_CONVERSATIONS: dict[str, Check] = {"filter": anything, "default_to_current_conversation": boolean}
_STATIC_RULE = exactly_one("options", "option_groups")
_TYPED = (_PLACEHOLDER, _FOCUS, _DISPATCH)
_RICH_TEXT_PARTS = frozenset(
    {"text", "link", "user", "usergroup", "team", "channel", "broadcast", "emoji", "date", "color"}
)


def _choice(options: Check, least_one: str) -> Check:
    own: dict[str, Check] = {least_one: anything}
    return _element({"options": options}, _CONFIRM, _FOCUS, own, rules=(_initial_is_offered(least_one),))


BUTTON = _element(
    {"text": plain(limits.BUTTON_TEXT)},
    _CONFIRM,
    {
        "value": string(limits.BUTTON_VALUE),
        "url": _URL,
        "style": one_of("primary", "danger"),
        "accessibility_label": string(limits.ACCESSIBILITY_LABEL),
    },
)
IMAGE = record(
    {**_TYPE, "alt_text": string(limits.IMAGE_ALT_TEXT, 1)},
    {"image_url": string(limits.IMAGE_URL, 1), "slack_file": anything},
    exactly_one("image_url", "slack_file"),
)

MENUS: dict[str, Check] = {
    "static_select": _menu({**_STATIC, "initial_option": _OPTION}, _STATIC_RULE, _initial_is_offered("initial_option")),
    "multi_static_select": _menu(
        {**_STATIC, **_MANY, "initial_options": array(_OPTION, limits.SELECT_OPTIONS)},
        _STATIC_RULE,
        _initial_is_offered("initial_options"),
    ),
    "external_select": _menu({**_QUERY, "initial_option": _OPTION}),
    "multi_external_select": _menu({**_QUERY, **_MANY, "initial_options": array(_OPTION, limits.SELECT_OPTIONS)}),
    "users_select": _menu({"initial_user": string()}),
    "multi_users_select": _menu({**_MANY, "initial_users": _IDS}),
    "conversations_select": _menu({**_CONVERSATIONS, **_RESPONDS, "initial_conversation": string()}),
    "multi_conversations_select": _menu({**_CONVERSATIONS, **_MANY, "initial_conversations": _IDS}),
    "channels_select": _menu({**_RESPONDS, "initial_channel": string()}),
    "multi_channels_select": _menu({**_MANY, "initial_channels": _IDS}),
    "datepicker": _menu({"initial_date": _DATE}),
    "timepicker": _menu({"initial_time": _TIME, "timezone": string()}),
    "datetimepicker": _element({}, _CONFIRM, _FOCUS, {"initial_date_time": whole(10**9, 10**10 - 1)}),
    "checkboxes": _choice(array(_RICH_OPTION, limits.CHECKBOX_OPTIONS), "initial_options"),
    "radio_buttons": _choice(array(_RICH_OPTION, limits.RADIO_OPTIONS), "initial_option"),
}
INPUTS: dict[str, Check] = {
    "plain_text_input": _element(
        {},
        *_TYPED,
        {
            "initial_value": string(limits.INPUT_TEXT),
            "multiline": boolean,
            "min_length": whole(0, limits.INPUT_TEXT),
            "max_length": whole(1, limits.INPUT_TEXT),
        },
        rules=(_fits_max_length,),
    ),
    "email_text_input": _element({}, *_TYPED, {"initial_value": string()}),
    "url_text_input": _element({}, *_TYPED, {"initial_value": string()}),
    "number_input": _element(
        {"is_decimal_allowed": boolean},
        *_TYPED,
        {"initial_value": _NUMBER, "min_value": _NUMBER, "max_value": _NUMBER},
    ),
    "rich_text_input": _element({}, *_TYPED, {"initial_value": anything}),
}
_OVERFLOW = _element({"options": array(option(url=True), limits.OVERFLOW_OPTIONS)}, _CONFIRM)
ELEMENTS: dict[str, Check] = {**MENUS, **INPUTS, "button": BUTTON, "overflow": _OVERFLOW, "image": IMAGE}
_PRESSED: dict[str, Check] = {**MENUS, "button": BUTTON, "overflow": _OVERFLOW}
_FEEDBACK = record(
    {"text": plain(limits.BUTTON_TEXT), "value": string(limits.BUTTON_VALUE)},
    {"accessibility_label": string(limits.ACCESSIBILITY_LABEL)},
)
_CONTEXT_ACTIONS: dict[str, Check] = {
    "feedback_buttons": _element({"positive_button": _FEEDBACK, "negative_button": _FEEDBACK}),
    "icon_button": _element(
        {"icon": string(), "text": plain(limits.BUTTON_TEXT)},
        _CONFIRM,
        {
            "value": string(limits.BUTTON_VALUE),
            "accessibility_label": string(limits.ACCESSIBILITY_LABEL),
            "visible_to_user_ids": _IDS,
        },
    ),
}


def _rich_text_part(value: Any, at: str) -> Iterator[Problem]:
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in _RICH_TEXT_PARTS:
        yield Problem(f"unsupported type: {kind}", f"{at}/type")


_PARTS = array(_rich_text_part, 1_000, 0)
_SECTION_OF_RICH_TEXT = record({**_TYPE, "elements": _PARTS}, {"border": anything})
RICH_TEXT = by_type(
    {
        "rich_text_section": _SECTION_OF_RICH_TEXT,
        "rich_text_quote": _SECTION_OF_RICH_TEXT,
        "rich_text_preformatted": record({**_TYPE, "elements": _PARTS}, {"border": anything, "language": string()}),
        "rich_text_list": record(
            {**_TYPE, "style": one_of("bullet", "ordered"), "elements": array(_SECTION_OF_RICH_TEXT, 1_000, 0)},
            {"indent": whole(0, 8), "offset": whole(0, 10**6), "border": whole(0, 1)},
        ),
    }
)


def _block(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None, *rules: Check) -> Check:
    own: dict[str, Check] = {"block_id": string(limits.BLOCK_ID, 1), **(optional or {})}
    return record({**_TYPE, **required}, own, *rules)


_RICH_TEXT_BLOCK = _block({"elements": array(RICH_TEXT, 1_000, 0)})
_CELL = by_type({"raw_text": record({**_TYPE, "text": string()}, {}), "rich_text": _RICH_TEXT_BLOCK})
_TASK = _block(
    {"task_id": string(limits.BLOCK_ID, 1), "title": string(limits.SECTION_TEXT, 1)},
    {
        "status": one_of("pending", "in_progress", "complete", "error"),
        "details": _RICH_TEXT_BLOCK,
        "output": _RICH_TEXT_BLOCK,
        "sources": anything,
    },
)

BLOCKS: dict[str, Check] = {
    "section": _block(
        {},
        {
            "text": text(limits.SECTION_TEXT),
            "fields": array(text(limits.SECTION_FIELD), limits.SECTION_FIELDS),
            "accessory": by_type({**_PRESSED, "image": IMAGE}),
            "expand": boolean,
        },
        at_least_one("text", "fields"),
    ),
    "divider": _block({}),
    "header": _block({"text": plain(limits.HEADER_TEXT)}),
    "context": _block(
        {
            "elements": array(
                by_type({"image": IMAGE, "mrkdwn": text(limits.CONTEXT_TEXT), "plain_text": text(limits.CONTEXT_TEXT)}),
                limits.CONTEXT_ELEMENTS,
            )
        }
    ),
    "actions": _block({"elements": array(by_type(_PRESSED), limits.ACTIONS_ELEMENTS)}),
    "context_actions": _block({"elements": array(by_type(_CONTEXT_ACTIONS), limits.CONTEXT_ACTIONS_ELEMENTS)}),
    "input": _block(
        {"label": plain(limits.INPUT_LABEL), "element": by_type({**MENUS, **INPUTS})},
        {"hint": plain(limits.INPUT_HINT), "optional": boolean, "dispatch_action": boolean},
    ),
    "image": _block(
        {"alt_text": string(limits.IMAGE_ALT_TEXT, 1)},
        {"image_url": string(limits.IMAGE_URL, 1), "slack_file": anything, "title": plain(limits.IMAGE_TITLE)},
        exactly_one("image_url", "slack_file"),
    ),
    "markdown": _block({"text": string(limits.MARKDOWN_TEXT, 1)}),
    "rich_text": _RICH_TEXT_BLOCK,
    "table": _block(
        {"rows": array(array(_CELL, limits.TABLE_COLUMNS), limits.TABLE_ROWS)},
        {"column_settings": array(anything, limits.TABLE_COLUMNS, 0)},
    ),
    "task_card": _TASK,
    "plan": _block({"title": string(limits.HEADER_TEXT, 1)}, {"tasks": array(_TASK, limits.PLAN_TASKS, 0)}),
}
MESSAGE_BLOCKS = frozenset(BLOCKS)
VIEW_BLOCKS = MESSAGE_BLOCKS - {"markdown", "table", "task_card", "plan", "context_actions"}

_VIEW_FIELDS: dict[str, Check] = {
    "private_metadata": string(limits.VIEW_PRIVATE_METADATA),
    "callback_id": string(limits.VIEW_CALLBACK_ID),
    "external_id": string(limits.VIEW_EXTERNAL_ID),
}
_VIEW_REQUIRED: dict[str, Check] = {**_TYPE, "blocks": anything}
VIEW: dict[str, Check] = {
    "home": record(_VIEW_REQUIRED, _VIEW_FIELDS),
    "modal": record(
        {**_VIEW_REQUIRED, "title": plain(limits.VIEW_TITLE)},
        {
            **_VIEW_FIELDS,
            "submit": plain(limits.VIEW_SUBMIT),
            "close": plain(limits.VIEW_CLOSE),
            "clear_on_close": boolean,
            "notify_on_close": boolean,
            "submit_disabled": boolean,
        },
    ),
}
