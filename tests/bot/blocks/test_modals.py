"""Windows carry ids only, ask for what is needed, and are read back."""

from __future__ import annotations

from typing import Any

import pytest

from bot.blocks import actions
from bot.blocks.actions import Malformed, Subject
from bot.blocks.modals import (
    answer_error,
    answer_in,
    answer_view,
    changes_view,
    decline_view,
    edit_view,
    edited_values,
    loading_view,
    message_view,
    reason_error,
    reason_of,
    start_view,
    then_of,
)
from bot.blocks.text import Mrkdwn
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import texts
from tests.bot.blocks.submitted import option, state_of
from tests.bot.blocks.test_payloads import form


def test_an_edit_comes_back_with_what_is_to_happen() -> None:
    view = edit_view(made.card())
    assert (view["callback_id"], view["title"]["text"]) == (actions.EDIT, "Edit draft 2")
    assert Subject.parse(view["private_metadata"]) == Subject(made.ID, 2)
    state = state_of(view, text="Sunday instead.")
    assert edited_values(state, made.card()) == {"text": "Sunday instead."}
    assert then_of(state) == "edit"
    assert then_of(state_of(view, then=option(view, "then", 1))) == "save"


def test_the_edit_shows_facts_cost_and_consequence() -> None:
    said = texts(edit_view(made.card()))
    assert "*Trailhead*\nFern Hollow" in said
    assert "1 segment in GSM-7. At most 299 characters." in said
    assert "Approving sends this text to +15035550134 and posts it to <#C0HIKES01>." in said


@pytest.mark.parametrize(
    ("may", "submit"),
    [({"may_approve": False}, "Save"), ({"may_save": False}, "Approve"), ({}, "Submit")],
)
def test_the_edit_offers_only_what_the_person_may_do(may: dict[str, bool], submit: str) -> None:
    view = edit_view(made.card(), **may)
    assert view["submit"]["text"] == submit
    assert any(block["block_id"].endswith("/then/0") for block in view["blocks"]) == (submit == "Submit")
    assert then_of(state_of(view), default="save") == ("edit" if submit == "Submit" else "save")


def test_a_high_risk_edit_is_saved_for_others_unless_chosen_otherwise() -> None:
    assert then_of(state_of(edit_view(made.card(review=made.review(risk="high"))))) == "save"


def test_a_reason_is_read_as_it_was_written() -> None:
    view = decline_view(made.card())
    assert reason_of(state_of(view, reason=" Too <far> & late\r\n ")) == "Too <far> & late"
    assert reason_of(state_of(view)) == ""
    assert set(reason_error(view["private_metadata"], "Say why.")) <= {block["block_id"] for block in view["blocks"]}


def test_a_reason_may_be_needed_or_not() -> None:
    needed = [decline_view(made.card()), changes_view(made.card()), decline_view(made.card(), needs_reason=False)]
    assert [view["blocks"][-1]["optional"] for view in needed] == [False, False, True]


@pytest.mark.parametrize(
    ("kind", "choices", "entered", "answer"),
    [
        ("yes_no", 0, 0, True),
        ("yes_no", 0, 1, False),
        ("choice", 250, 240, "value 240"),
        ("choices", 4, [0, 3], ["value 0", "value 3"]),
        ("choices", 40, [], []),
        ("number", 0, "0", 0),
        ("date", 0, "2026-08-01", "2026-08-01"),
        ("text", 0, "Yes & no", "Yes & no"),
    ],
)
def test_an_answer_comes_back_in_its_kind(kind: str, choices: int, entered: Any, answer: Any) -> None:
    card = made.question(kind, choices)
    view = answer_view(card)
    if isinstance(entered, int):
        entered = option(view, "answer", entered)
    if isinstance(entered, list):
        entered = [option(view, "answer", number) for number in entered]
    assert answer_in(state_of(view, answer=entered), card.question) == answer
    assert set(answer_error(view["private_metadata"], "No.")) <= {block["block_id"] for block in view["blocks"]}


@pytest.mark.parametrize("kind", ["yes_no", "choice", "number", "date", "text"])
def test_no_answer_is_refused(kind: str) -> None:
    card = made.question(kind, 3)
    with pytest.raises(Malformed):
        answer_in(state_of(answer_view(card)), card.question)


def test_a_form_carries_what_it_was_given() -> None:
    view = start_view(form())
    assert (view["callback_id"], view["private_metadata"]) == (actions.START, "plan_hike:C0HIKES01")


def test_windows_that_only_say_something_cannot_be_submitted() -> None:
    for view in (loading_view("Edit", "a1:2"), message_view("Too late", "It is <done>.")):
        assert view["callback_id"] == actions.NOTICE
        assert "submit" not in view
    assert texts(message_view("T", "It is <done>.")) == ["It is <done>."]
    assert texts(message_view("T", Mrkdwn("By <@U1>"))) == ["By <@U1>"]
