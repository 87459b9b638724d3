"""Block Kit as escaped HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bot.sandbox.elements import Control, actions_html, control_html
from bot.sandbox.markdown import markdown
from bot.sandbox.markup import Html, element, join
from bot.sandbox.place import Place, bare, text_html, unsupported
from bot.sandbox.records import JsonObject
from bot.sandbox.richtext import rich_text, table

FOLD_CHARACTERS = 700
FOLD_LINES = 12
_IMAGES = ("data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;")
_SETS = ("radio_buttons", "checkboxes", "multi_static_select")
_MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError)


def blocks_html(blocks: Iterable[JsonObject], place: Place) -> Html:
    """All blocks of a message or view. One that cannot be drawn becomes a note and hides no other."""
    return join(block_html(block, f"{place.key}-b{n}", place) for n, block in enumerate(blocks))


def block_html(block: JsonObject, key: str, place: Place) -> Html:
    """One block; `key` starts the ids of its controls."""
    try:
        draw = _DRAWN.get(block["type"])
        return draw(block, key, place) if draw else unsupported(str(block["type"]))
    except _MALFORMED:
        return unsupported(str(block.get("type") if isinstance(block, dict) else type(block).__name__))


def folded(inside: Html, text: str, key: str) -> Html:
    """Long text behind a "See more" button, as Slack does; short text as it is."""
    if len(text) <= FOLD_CHARACTERS and text.count("\n") < FOLD_LINES:
        return inside
    part = f"{key}-fold"
    more = element("button", "See more", type="button", class_="more", aria_expanded="false", aria_controls=part)
    return join([element("div", inside, class_="fold", id=part), more])


def _section(block: JsonObject, key: str, place: Place) -> Html:
    parts: list[str] = []
    if text := block.get("text"):
        inside = element("div", text_html(text, place.reader), class_="text")
        parts.append(folded(inside, text["text"], key))
    if fields := block.get("fields"):
        cells = (element("div", text_html(field, place.reader), class_="text") for field in fields)
        parts.append(element("div", *cells, class_="fields"))
    accessory = block.get("accessory")
    main = element("div", *parts, class_="main")
    return element("div", main, *([_accessory(accessory, block, key, place)] if accessory else []), class_="section")


def _accessory(spec: JsonObject, block: JsonObject, key: str, place: Place) -> Html:
    if spec["type"] == "image":
        return element("div", _picture(spec), class_="accessory")
    label = bare(spec.get("placeholder")) or _first_line(block)
    control = Control(spec, str(block.get("block_id", "")), f"{key}-0", place, label=label)
    return element("div", control_html(control), class_="accessory")


def _first_line(block: JsonObject) -> str | None:
    text = str((block.get("text") or {}).get("text") or "")
    return text.strip("*_~> ").partition("\n")[0][:80] or None


def _header(block: JsonObject, place: Place) -> Html:
    return element("h3", text_html(block["text"], place.reader), class_="header")


def _context(block: JsonObject, place: Place) -> Html:
    parts = (
        _picture(part) if part["type"] == "image" else element("span", text_html(part, place.reader), class_="text")
        for part in block["elements"]
    )
    return element("div", *parts, class_="context")


def _actions(block: JsonObject, key: str, place: Place) -> Html:
    return actions_html(block["elements"], str(block.get("block_id", "")), key, place)


def _input(block: JsonObject, key: str, place: Place) -> Html:
    spec, block_id = block["element"], str(block.get("block_id", ""))
    hint, error = block.get("hint"), place.errors.get(block_id)
    notes = [element("p", text_html(hint, place.reader), class_="hint", id=f"{key}-hint")] if hint else []
    notes += [element("p", "⚠ ", error, class_="error", id=f"{key}-error")] if error else []
    optional = bool(block.get("optional"))
    control = Control(
        spec,
        block_id,
        f"{key}-0",
        place,
        describedby=" ".join(filter(None, [hint and f"{key}-hint", error and f"{key}-error"])) or None,
        required=not optional,
        invalid=error is not None,
        label=bare(block["label"]) if spec["type"] in _SETS else None,
    )
    label = join([text_html(block["label"], place.reader), element("small", " (optional)") if optional else ""])
    set_of = spec["type"] in _SETS
    title = element("span", label, class_="label") if set_of else element("label", label, for_=control.id)
    return element("div", title, control_html(control), *notes, class_="field invalid" if error else "field")


def _image(block: JsonObject, place: Place) -> Html:
    title = [element("figcaption", text_html(block["title"], place.reader))] if block.get("title") else []
    return element("figure", *title, _picture(block))


def _picture(image: JsonObject) -> Html:
    address, alt = str(image.get("image_url") or ""), str(image.get("alt_text") or "image")
    local = address.startswith("/") and not address.startswith(("//", "/\\"))
    if local or address.startswith(_IMAGES):
        return element("img", src=address, alt=alt)
    return element("span", "🖼 ", alt, class_="alt", title="Pictures from other addresses are not loaded here.")


def _markdown(block: JsonObject, key: str) -> Html:
    inside = element("div", markdown(block["text"]), class_="text markdown")
    return folded(inside, block["text"], key)


_DRAWN: dict[Any, Callable[[JsonObject, str, Place], Html]] = {
    "section": _section,
    "header": lambda block, key, place: _header(block, place),
    "context": lambda block, key, place: _context(block, place),
    "divider": lambda block, key, place: element("hr"),
    "actions": _actions,
    "input": _input,
    "image": lambda block, key, place: _image(block, place),
    "rich_text": lambda block, key, place: rich_text(block, place.reader),
    "markdown": lambda block, key, place: _markdown(block, key),
    "table": lambda block, key, place: table(block, place.reader),
}
