"""Buttons, menus and fields of Block Kit as HTML controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.markup import Attribute, Html, element, join
from bot.sandbox.mrkdwn import Reader
from bot.sandbox.place import Place, bare, field_name, text_html, unsupported
from bot.sandbox.records import JsonObject

_TEXT_INPUTS = {"email_text_input": "email", "url_text_input": "url", "number_input": "number"}


@dataclass(frozen=True, slots=True)
class Control:
    """One element to draw. `label` names it where the block does not; `describedby` are ids of hint and error."""

    spec: JsonObject
    block_id: str
    id: str
    place: Place
    describedby: str | None = None
    required: bool = False
    invalid: bool = False
    label: str | None = None

    @property
    def action_id(self) -> str:
        return str(self.spec.get("action_id", ""))

    @property
    def reader(self) -> Reader:
        return self.place.reader

    @property
    def name(self) -> str:
        return field_name(self.block_id, self.action_id)

    @property
    def entered(self) -> JsonObject | None:
        return self.place.entered(self.block_id, self.action_id)

    def attributes(self) -> dict[str, Attribute]:
        """What every field has: its name, its description and whether it is in error."""
        return {
            "id": self.id,
            "name": self.name,
            "data_control": self.spec["type"],
            "aria_describedby": self.describedby,
            "aria_invalid": "true" if self.invalid else None,
            "aria_required": "true" if self.required else None,
            "aria_label": self.label,
            "data_focus": bool(self.spec.get("focus_on_load")),
        }


def control_html(control: Control) -> Html:
    """The element with its confirmation, or a note that it is not supported."""
    draw = _DRAWN.get(control.spec["type"])
    if draw is None:
        return unsupported(str(control.spec["type"]))
    confirm = control.spec.get("confirm")
    asked = [_confirm(confirm, control.reader)] if confirm else []
    return element("span", draw(control), *asked, class_="control")


def _confirm(confirm: JsonObject, reader: Reader) -> Html:
    return element(
        "template",
        element("h2", text_html(confirm["title"], reader)),
        element("p", text_html(confirm["text"], reader)),
        element("button", bare(confirm.get("deny")) or "Cancel", type="button", class_="button", value="deny"),
        element(
            "button",
            bare(confirm.get("confirm")) or "Yes",
            type="button",
            class_=f"button {'danger' if confirm.get('style') == 'danger' else 'primary'}",
            value="confirm",
        ),
        class_="confirm",
    )


def _button(control: Control) -> Html:
    spec = control.spec
    style = spec.get("style")
    common: dict[str, Attribute] = {
        "id": control.id,
        "class_": f"button {style}" if style in ("primary", "danger") else "button",
        "data_control": "button",
        "data_name": control.name,
        "aria_label": spec.get("accessibility_label"),
    }
    label = text_html(spec["text"], control.reader)
    if str(spec.get("url", "")).startswith(("https://", "http://")):
        return element("a", label, **common, href=spec["url"], title=spec["url"], target="_blank", rel="noopener")
    return element("button", label, **common, type="button")


def _overflow(control: Control) -> Html:
    items = [
        element(
            "button",
            text_html(option["text"], control.reader),
            type="button",
            data_control="overflow",
            data_name=control.name,
            value=option.get("value", ""),
        )
        for option in control.spec["options"]
    ]
    summary = element("summary", "⋯", aria_label=control.label or "More actions", class_="button")
    return element("details", summary, element("div", *items, class_="menu"), class_="overflow", id=control.id)


def _line(control: Control) -> Html:
    spec = control.spec
    kind = _TEXT_INPUTS.get(spec["type"], "text")
    decimal = bool(spec.get("is_decimal_allowed"))
    return element(
        "input",
        **control.attributes(),
        type=kind,
        value=_text_value(control),
        placeholder=bare(spec.get("placeholder")) or None,
        minlength=spec.get("min_length"),
        maxlength=spec.get("max_length"),
        min=spec.get("min_value"),
        max=spec.get("max_value"),
        step="any" if decimal else None,
        autocomplete="off",
    )


def _text(control: Control) -> Html:
    spec = control.spec
    if not spec.get("multiline"):
        return _line(control)
    return element(
        "textarea",
        # A browser drops the first line break of a textarea: this one is there to be dropped.
        "\n" + _text_value(control),
        **control.attributes(),
        placeholder=bare(spec.get("placeholder")) or None,
        minlength=spec.get("min_length"),
        maxlength=spec.get("max_length"),
        rows=5,
    )


def _text_value(control: Control) -> str:
    entered = control.entered
    value = control.spec.get("initial_value") if entered is None else entered.get("value")
    return "" if value is None else str(value)


def _moment(kind: str, entered_key: str) -> Callable[[Control], Html]:
    def draw(control: Control) -> Html:
        entered = control.entered
        value = control.spec.get(f"initial_{kind}") if entered is None else entered.get(entered_key)
        return element("input", **control.attributes(), type=kind, value=value)

    return draw


def _chosen(control: Control) -> set[str]:
    """The values of the options that are chosen now."""
    spec, entered = control.spec, control.entered
    if entered is None:
        chosen = [spec.get("initial_option"), *(spec.get("initial_options") or [])]
    else:
        chosen = [entered.get("selected_option"), *(entered.get("selected_options") or [])]
    return {str(option.get("value")) for option in chosen if option}


def _groups(control: Control) -> list[tuple[str, list[JsonObject]]]:
    spec = control.spec
    groups = spec.get("option_groups")
    return [(bare(group["label"]), group["options"]) for group in groups] if groups else [("", spec["options"])]


def _select(control: Control) -> Html:
    chosen = _chosen(control)
    choices = [
        (label, [(str(option["value"]), bare(option["text"])) for option in options])
        for label, options in _groups(control)
    ]
    return _menu(control, choices, chosen)


def _menu(control: Control, groups: list[tuple[str, list[tuple[str, str]]]], chosen: set[str]) -> Html:
    placeholder = bare(control.spec.get("placeholder")) or "Select an option"
    parts = [element("option", placeholder, value="", selected=not chosen)]
    for label, options in groups:
        drawn = [element("option", text, value=value, selected=value in chosen) for value, text in options]
        parts += [element("optgroup", *drawn, label=label)] if label else drawn
    return element("select", *parts, **control.attributes())


def _directory(names: Callable[[Reader], list[tuple[str, str]]], key: str) -> Callable[[Control], Html]:
    def draw(control: Control) -> Html:
        entered = control.entered
        chosen = control.spec.get(f"initial_{key}") if entered is None else entered.get(f"selected_{key}")
        return _menu(control, [("", names(control.reader))], {str(chosen)} if chosen else set())

    return draw


def _people(reader: Reader) -> list[tuple[str, str]]:
    return list(reader.people.items())


def _channels(reader: Reader) -> list[tuple[str, str]]:
    return [(key, f"#{name}") for key, name in reader.channels.items()]


def _ticks(kind: str) -> Callable[[Control], Html]:
    def draw(control: Control) -> Html:
        chosen = _chosen(control)
        options = [option for _, group in _groups(control) for option in group]
        rows = [_tick(control, kind, option, str(option["value"]) in chosen, n) for n, option in enumerate(options)]
        role = "radiogroup" if kind == "radio" else "group"
        return element(
            "div",
            *rows,
            class_="ticks",
            role=role,
            id=control.id,
            aria_label=control.label,
            aria_describedby=control.describedby,
        )

    return draw


def _tick(control: Control, kind: str, option: JsonObject, checked: bool, n: int) -> Html:
    box = element(
        "input",
        type=kind,
        name=control.name,
        value=str(option["value"]),
        id=f"{control.id}-{n}",
        checked=checked,
        data_control=control.spec["type"],
    )
    about = option.get("description")
    more = [element("small", text_html(about, control.reader))] if about else []
    return element("label", box, element("span", text_html(option["text"], control.reader), *more))


def _multi(control: Control) -> Html:
    chosen = _chosen(control)
    picked = [bare(o["text"]) for _, group in _groups(control) for o in group if str(o["value"]) in chosen]
    summary = ", ".join(picked) or bare(control.spec.get("placeholder")) or "Select options"
    return element(
        "details",
        element("summary", summary, class_="button", aria_label=control.label and f"{control.label}: {summary}"),
        element("div", _ticks("checkbox")(control), class_="menu"),
        class_="multi",
    )


def actions_html(specs: list[JsonObject], block_id: str, key: str, place: Place) -> Html:
    """The elements of an actions block, side by side."""
    controls = (
        Control(spec, block_id, f"{key}-{n}", place, label=bare(spec.get("placeholder")) or _fallback_label(spec))
        for n, spec in enumerate(specs)
    )
    return element("div", join(map(control_html, controls)), class_="actions")


def _fallback_label(spec: JsonObject) -> str | None:
    return None if spec["type"] == "button" else str(spec.get("action_id", spec["type"])).replace("_", " ")


_DRAWN: dict[str, Callable[[Control], Html]] = {
    "button": _button,
    "overflow": _overflow,
    "plain_text_input": _text,
    "email_text_input": _line,
    "url_text_input": _line,
    "number_input": _line,
    "datepicker": _moment("date", "selected_date"),
    "timepicker": _moment("time", "selected_time"),
    "static_select": _select,
    "multi_static_select": _multi,
    "users_select": _directory(_people, "user"),
    "channels_select": _directory(_channels, "channel"),
    "conversations_select": _directory(_channels, "conversation"),
    "radio_buttons": _ticks("radio"),
    "checkboxes": _ticks("checkbox"),
}
