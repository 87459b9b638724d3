"""Questions are answered with as few clicks as their kind allows."""

from __future__ import annotations

from typing import Any

import pytest

from bot.blocks import actions
from bot.blocks.actions import Malformed
from bot.blocks.question import answer_of, answer_text, effect_message, question_message
from graphs.flow import Choice, Question
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import action_ids, parts, texts


@pytest.mark.parametrize(
    ("kind", "choices", "names"),
    [
        ("yes_no", 0, [actions.ANSWER_YES, actions.ANSWER_NO]),
        ("choice", 2, [f"{actions.ANSWER_CHOICE}0", f"{actions.ANSWER_CHOICE}1"]),
        ("choice", 6, [actions.ANSWER_SELECT]),
        ("choice", 120, [actions.ANSWER_SELECT]),
        ("choice", 0, [actions.ANSWER]),
        ("choices", 3, [actions.ANSWER]),
        ("text", 0, [actions.ANSWER]),
        ("number", 0, [actions.ANSWER]),
        ("date", 0, [actions.ANSWER]),
    ],
)
def test_every_kind_has_its_way_to_answer(kind: str, choices: int, names: list[str]) -> None:
    assert action_ids(question_message(made.question(kind, choices))) == names


@pytest.mark.parametrize(
    ("kind", "number", "answer"), [("yes_no", 0, True), ("yes_no", 1, False), ("choice", 2, "value 2")]
)
def test_a_click_is_an_answer(kind: str, number: int, answer: Any) -> None:
    card = made.question(kind, 3)
    button = [part for part in parts(question_message(card)["blocks"]) if part.get("type") == "button"][number]
    assert answer_of(button, card.question) == answer


def test_a_choice_from_a_menu_is_an_answer() -> None:
    question = made.question("choice", 9).question
    chosen = {"action_id": actions.ANSWER_SELECT, "selected_option": {"value": "8"}}
    assert answer_of(chosen, question) == "value 8"


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"action_id": actions.ANSWER_YES},
        {"action_id": f"{actions.ANSWER_CHOICE}9"},
        {"action_id": actions.ANSWER_SELECT, "selected_option": None},
    ],
)
def test_what_was_not_offered_is_no_answer(action: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        answer_of(action, made.question("choice", 3).question)


def test_choices_too_long_for_buttons_are_written_out() -> None:
    long = [Choice(value=str(n), label=f"{'The long way round ' * 6}{n}") for n in range(3)]
    said = texts(question_message(made.question(question=Question(text="Which?", kind="choice", choices=long))))
    assert any(text.startswith("1. The long way round") and text.endswith("round 2") for text in said)


@pytest.mark.parametrize(("answer", "says"), [(True, "Yes"), (False, "No")])
def test_an_answered_question_says_who_said_what(answer: bool, says: str) -> None:
    payload = question_message(made.question(status="answered", answer=answer, by="U0ADA", at=made.NOW))
    assert says in texts(payload)
    assert any(text.startswith("✅ *Answered* by <@U0ADA> · <!date^") for text in texts(payload))
    assert action_ids(payload) == []


def test_answers_are_shown_by_their_labels() -> None:
    question = made.question("choices", 3).question
    assert answer_text(question, ["value 0", "value 2"]) == "up to 0 min, up to 2 min"
    assert answer_text(question, []) == "none of them"


def test_a_lost_answer_leaves_three_ways_on() -> None:
    payload = effect_message(made.effect())
    assert action_ids(payload) == [actions.WENT_OUT, actions.SEND_AGAIN, actions.STOP]
    assert made.TEXT in texts(payload)
    assert any("*Text to +15035550134* was requested " in text for text in texts(payload))


def test_once_the_run_has_ended_nothing_is_sent_again() -> None:
    assert action_ids(effect_message(made.effect(can_send_again=False))) == [actions.WENT_OUT, actions.STOP]


def test_a_settled_one_says_by_whom() -> None:
    payload = effect_message(made.effect(status="answered", answer="stop", by="U0BEN", at=made.NOW))
    assert any(text.startswith("✅ *Stopped* by <@U0BEN>") for text in texts(payload))
    assert action_ids(payload) == []
