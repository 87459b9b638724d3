"""Fields as inputs of a form, and a submitted form as values again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from pydantic import JsonValue

from bot import limits
from bot.blocks.actions import FIELD, Malformed
from bot.blocks.elements import Json, label, option, options, plain
from bot.blocks.phrases import count, shown
from bot.blocks.text import clean, cut, one_line, pieces, units
from graphs.flow import Field

_MARGIN: Final = 200  # room to type in each part of a text that needs several inputs
_SENTENCE = 300
_MOST_INPUTS = 60
_AROUND = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


def inputs(fields: Mapping[str, Field], scope: str) -> list[Json]:
    """One input for each field; a text longer than an input can hold gets several, one after the other."""
    return [block for name, part in fields.items() for block in _inputs(name, part, scope)]


def can_be_edited(fields: Mapping[str, Field]) -> bool:
    """Whether one form can hold all of it."""
    return len(inputs(fields, "")) <= _MOST_INPUTS


def values_of(state: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, JsonValue]:
    """The values of a submitted view's `state`, by field name, each of its field's kind.

    `fields` are those the view was made from. Text left empty is "", anything else left empty None; a field that the
    view did not show keeps its value. Raises `Malformed` for what Slack's own window cannot have sent.
    """
    entered: dict[str, list[tuple[int, Any]]] = {}
    for block_id, contents in dict(state.get("values") or {}).items():
        _, _, place = str(block_id).partition("/")
        name, _, number = place.rpartition("/")
        if name in fields and isinstance(contents, Mapping) and FIELD in contents and number.isdecimal():
            entered.setdefault(name, []).append((int(number), contents[FIELD]))
    return {
        name: _value(part, [content for _, content in sorted(entered[name], key=lambda pair: pair[0])])
        if name in entered
        else part.value
        for name, part in fields.items()
    }


def problems(values: Mapping[str, JsonValue], fields: Mapping[str, Field]) -> dict[str, str]:
    """What is wrong with the values by their fields alone: `{name: sentence}`."""
    found = {name: _problem(part, values.get(name)) for name, part in fields.items()}
    return {name: sentence for name, sentence in found.items() if sentence}


def errors(told: Mapping[str, str], fields: Mapping[str, Field], scope: str) -> dict[str, str]:
    """Sentences by field name as the `errors` of an ack, by `block_id`.

    What belongs to no field goes to the first one, because Slack shows nothing at all for a block it does not know.
    """
    placed: dict[str, str] = {}
    for name, sentence in told.items():
        block_id = block_id_of(scope, name if name in fields else next(iter(fields), name))
        placed[block_id] = one_line(f"{placed[block_id]} {sentence}" if block_id in placed else sentence, _SENTENCE)
    return placed


def block_id_of(scope: str, name: str, number: int = 0) -> str:
    """The block of a field's input; `number` counts the inputs of a long text."""
    return f"{scope}/{name}/{number}"


def input_block(block_id: str, title: str, element: Json, *, hint: str = "", optional: bool = False) -> Json:
    """An input with its label."""
    block: Json = {
        "type": "input",
        "block_id": block_id,
        "label": label(title, limits.INPUT_LABEL),
        "element": element | {"action_id": FIELD},
        "optional": optional,
    }
    return block | ({"hint": plain(hint, limits.INPUT_HINT)} if hint else {})


def text_input(value: str, *, lines: bool, most: int | None = None) -> Json:
    """A text field that holds `value`, which must fit one, and takes up to `most` characters."""
    longest = max(min(most or limits.INPUT_TEXT, limits.INPUT_TEXT), min(units(value), limits.INPUT_TEXT), 1)
    element: Json = {"type": "plain_text_input", "multiline": lines, "max_length": longest}
    return element | ({"initial_value": value} if value else {})


def radio(labels: Mapping[str, str], chosen: str) -> Json:
    """A few things of which one is chosen, by value."""
    made = {value: option(text, value) for value, text in labels.items()}
    return {"type": "radio_buttons", "options": list(made.values()), "initial_option": made[chosen]}


def _inputs(name: str, part: Field, scope: str) -> list[Json]:
    hint = _hint(part)
    if part.kind not in ("text", "line"):
        element = {"number": _number, "date": _date, "choice": _menu}[part.kind](part)
        return [input_block(block_id_of(scope, name), part.label, element, hint=hint, optional=not part.required)]
    texts, _ = parts_of(shown(part))
    most = part.max_length if len(texts) == 1 else None
    return [
        input_block(
            block_id_of(scope, name, number),
            part.label if len(texts) == 1 else f"{part.label} ({number + 1} of {len(texts)})",
            text_input(text, lines=part.kind == "text" or "\n" in text, most=most),
            hint=hint,
            optional=not part.required or len(texts) > 1,
        )
        for number, text in enumerate(texts)
    ]


def parts_of(text: str) -> tuple[list[str], list[str]]:
    """`text` as it is put into inputs, and what stands around and between them; one input holds it as it is.

    White space at the ends of a part is kept out of its input, because a form may drop it there.
    """
    text = clean(text)
    if units(text) <= limits.INPUT_TEXT:
        return [text], ["", ""]
    texts: list[str] = []
    between = [""]
    for piece in pieces(text, limits.INPUT_TEXT - _MARGIN):
        before, inside, after = _AROUND.fullmatch(piece).groups()  # type: ignore[union-attr]
        between[-1] += before
        if inside:
            texts.append(inside)
            between.append(after)
        else:
            between[-1] += after
    return (texts, between) if texts else ([""], [text, ""])


def _hint(part: Field) -> str:
    most = f"At most {count(part.max_length, 'character')}." if part.max_length else ""
    return " ".join(piece.rstrip(".") + "." for piece in (part.hint, most) if piece)


def _number(part: Field) -> Json:
    element: Json = {"type": "number_input", "is_decimal_allowed": True}
    is_number = isinstance(part.value, int | float) and not isinstance(part.value, bool)
    return element | ({"initial_value": f"{part.value}"} if is_number and _NUMBER.fullmatch(f"{part.value}") else {})


def _date(part: Field) -> Json:
    return {"type": "datepicker"} | ({"initial_date": str(part.value)} if _is_date(part.value) else {})


def _menu(part: Field) -> Json:
    if not part.choices:
        return text_input(cut(shown(part), limits.INPUT_TEXT), lines=False)
    menu = {"type": "static_select", "placeholder": label("Choose", limits.PLACEHOLDER)}
    at = [number for number, choice in enumerate(part.choices) if choice.value == part.value]
    initial = {"initial_option": option(part.choices[at[0]].label, str(at[0]))} if at else {}
    return menu | options([choice.label for choice in part.choices]) | initial


def _value(part: Field, contents: Sequence[Mapping[str, Any]]) -> JsonValue:
    first = contents[0]
    if part.kind in ("text", "line"):
        return _text(part, [clean(str(content.get("value") or "")) for content in contents])
    if part.kind == "date":
        chosen = first.get("selected_date")
        return str(chosen) if chosen else None
    if part.kind == "number":
        return number_of(first.get("value"))
    if not part.choices:
        return str(first.get("value") or "")
    selected = first.get("selected_option")
    return _choice(part, str(selected.get("value"))) if isinstance(selected, Mapping) else None


def _text(part: Field, entered: Sequence[str]) -> str:
    texts, between = parts_of(shown(part))
    if len(entered) != len(texts):
        raise Malformed("The form does not match the draft any more; close it and open it again.")
    rest = [text + (after if text else "") for text, after in zip(entered, between[1:], strict=True)]
    return between[0] + "".join(rest)


def _choice(part: Field, number: str) -> JsonValue:
    if not (number.isascii() and number.isdecimal()) or len(number) > 5 or int(number) >= len(part.choices):
        raise Malformed(f"{part.label}: that is not among the choices; close the form and open it again.")
    return part.choices[int(number)].value


def number_of(value: object) -> int | float | None:
    """A number as a form reports it; raises `Malformed` for anything that is none."""
    text = str(value or "").strip()
    if not text:
        return None
    if not text.isascii() or not _NUMBER.fullmatch(text) or len(text) > 30:
        raise Malformed(f"{text[:40]!r} is not a number; write it like 12 or 12.5.")
    return float(text) if "." in text else int(text)


def _problem(part: Field, value: JsonValue) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        return f"{part.label} is needed." if part.required else ""
    if part.kind == "date" and not _is_date(value):
        return f"{part.label} must be a date like 2026-08-01."
    if part.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"{part.label} must be a number."
    if part.kind == "choice" and part.choices and value not in [choice.value for choice in part.choices]:
        return f"{part.label} must be one of: {', '.join(choice.label for choice in part.choices[:10])}."
    if part.max_length is not None and len(str(value)) > part.max_length:
        return f"{part.label} has {len(str(value)):,} characters; {part.max_length:,} at most."
    return ""


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
