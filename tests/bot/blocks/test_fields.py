"""What people enter comes back as values of the field's kind, and nothing is lost on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.blocks.actions import FIELD, Malformed
from bot.blocks.elements import modal
from bot.blocks.fields import can_be_edited, errors, inputs, number_of, parts_of, problems, values_of
from bot.blocks.text import clean
from graphs.flow import Choice, Field
from tests.bot.blocks.checks import check_view
from tests.bot.blocks.examples import Text, any_text
from tests.bot.blocks.submitted import option, state_of

SCOPE = "a1:3"
TRAILS = [Choice(value=f"trail {n}", label=f"Trail no. {n}") for n in range(150)]


def view_of(fields: dict[str, Field]) -> dict[str, Any]:
    return check_view(modal("x", "Title", inputs(fields, SCOPE), metadata=SCOPE, submit="Go"))


def returned(fields: dict[str, Field], **entered: Any) -> dict[str, JsonValue]:
    return values_of(state_of(view_of(fields), **entered), fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Field(label="L", kind="text", value="a\nb"), "a\nb"),
        (Field(label="L", kind="line", value=" a "), " a "),
        (Field(label="L", kind="text", value=None), ""),
        (Field(label="L", kind="number", value=12), 12),
        (Field(label="L", kind="number", value=-1.5), -1.5),
        (Field(label="L", kind="number", value=0), 0),
        (Field(label="L", kind="number", value=None), None),
        (Field(label="L", kind="date", value="2026-08-01"), "2026-08-01"),
        (Field(label="L", kind="date", value="soon"), None),
        (Field(label="L", kind="choice", value="trail 149", choices=TRAILS), "trail 149"),
        (Field(label="L", kind="choice", value="gone", choices=TRAILS), None),
        (Field(label="L", kind="choice", value="free", choices=[]), "free"),
    ],
)
def test_an_untouched_form_returns_the_values_it_showed(field: Field, value: JsonValue) -> None:
    assert returned({"f": field}) == {"f": value}


@settings(deadline=None, max_examples=60)
@given(any_text)
def test_a_text_of_any_length_survives_the_form(text: Text) -> None:
    fields = {"text": Field(label="Text", value=str(text))}
    if can_be_edited(fields):
        assert returned(fields) == {"text": clean(str(text))}


@settings(deadline=None, max_examples=60)
@given(any_text)
def test_a_form_that_trims_its_inputs_changes_no_long_text(text: Text) -> None:
    fields = {"text": Field(label="Text", value=str(text))}
    if len(parts_of(str(text))[0]) == 1 or not can_be_edited(fields):
        return
    state = state_of(view_of(fields))
    for contents in state["values"].values():
        contents[FIELD]["value"] = (contents[FIELD]["value"] or "").strip()
    assert values_of(state, fields) == {"text": clean(str(text))}


def test_one_part_of_a_long_text_can_be_changed_and_one_emptied() -> None:
    paragraphs = [f"{letter * 2_500}" for letter in "abc"]
    fields = {"text": Field(label="Text", value="\n\n".join(paragraphs))}
    state = state_of(view_of(fields))
    assert len(state["values"]) == 3
    state["values"][f"{SCOPE}/text/0"][FIELD]["value"] = "first"
    state["values"][f"{SCOPE}/text/1"][FIELD]["value"] = None
    assert values_of(state, fields) == {"text": "first\n\n" + paragraphs[2]}


def test_what_is_entered_comes_back_in_its_kind() -> None:
    fields = {
        "text": Field(label="Text", value="old"),
        "people": Field(label="People", kind="number"),
        "day": Field(label="Day", kind="date", required=False),
        "trail": Field(label="Trail", kind="choice", choices=TRAILS),
    }
    chosen = option(view_of(fields), "trail", 120)
    entered = returned(fields, text="new & <b>", people="7.50", day="2026-08-02", trail=chosen)
    assert entered == {"text": "new & <b>", "people": 7.5, "day": "2026-08-02", "trail": "trail 120"}


def test_a_field_that_was_not_shown_keeps_its_value() -> None:
    assert values_of({"values": {}}, {"text": Field(label="Text", value="kept")}) == {"text": "kept"}


@pytest.mark.parametrize("content", [{"value": "1e5"}, {"value": "²"}, {"value": "nan"}, {"value": "1" * 40}])
def test_what_no_form_can_have_sent_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="is not a number"):
        values_of({"values": {f"{SCOPE}/n/0": {FIELD: content}}}, {"n": Field(label="N", kind="number")})


@pytest.mark.parametrize("number", ["150", "-1", "x", "٣", "9" * 9])
def test_a_choice_that_was_not_offered_is_refused(number: str) -> None:
    state = {"values": {f"{SCOPE}/t/0": {FIELD: {"selected_option": {"value": number}}}}}
    with pytest.raises(Malformed, match="not among the choices"):
        values_of(state, {"t": Field(label="Trail", kind="choice", choices=TRAILS)})


def test_a_form_of_another_draft_is_refused() -> None:
    fields = {"text": Field(label="Text", value="short")}
    state = {"values": {f"{SCOPE}/text/{n}": {FIELD: {"value": "x"}} for n in range(2)}}
    with pytest.raises(Malformed, match="close it and open it again"):
        values_of(state, fields)


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12) | st.floats(-1e6, 1e6).map(lambda value: round(value, 3)))
def test_numbers_are_read_as_they_are_written(number: float) -> None:
    assert number_of(f"{number}") == number or "e" in f"{number}"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        (Field(label="Text"), " ", "Text is needed."),
        (Field(label="Text", required=False), "", ""),
        (Field(label="Text", max_length=5), "123456", "Text has 6 characters; 5 at most."),
        (Field(label="Day", kind="date"), "1.8.2026", "Day must be a date like 2026-08-01."),
        (Field(label="People", kind="number"), True, "People must be a number."),
        (Field(label="People", kind="number"), 0, ""),
        (
            Field(label="Trail", kind="choice", choices=TRAILS[:2]),
            "x",
            "Trail must be one of: Trail no. 0, Trail no. 1.",
        ),
    ],
)
def test_values_are_checked_by_their_fields(field: Field, value: JsonValue, says: str) -> None:
    assert problems({"f": value}, {"f": field}) == ({"f": says} if says else {})


def test_sentences_land_on_blocks_that_the_form_has() -> None:
    fields = {"text": Field(label="Text", value="x" * 7_000), "day": Field(label="Day", kind="date")}
    told = errors({"text": "Too long.", "day": "Too late.", "gone": "Not allowed."}, fields, SCOPE)
    assert told == {f"{SCOPE}/text/0": "Too long. Not allowed.", f"{SCOPE}/day/0": "Too late."}
    assert set(told) <= {block["block_id"] for block in view_of(fields)["blocks"]}


def test_a_limit_holds_while_typing_but_never_refuses_what_is_there() -> None:
    (short,) = inputs({"t": Field(label="Text", value="abc", max_length=299, hint="1 segment.")}, SCOPE)
    (long,) = inputs({"t": Field(label="Text", value="x" * 400, max_length=299)}, SCOPE)
    assert (short["element"]["max_length"], long["element"]["max_length"]) == (299, 400)
    assert short["hint"]["text"] == "1 segment. At most 299 characters."
