"""What a click carries is read back, or refused with a sentence."""

from __future__ import annotations

import pytest

from bot.blocks.actions import Malformed, RunPage, Subject, page_of, subject_of
from bot.blocks.question import question_message
from bot.blocks.review import review_message
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import parts


@pytest.mark.parametrize("subject", [Subject("a1", 1), Subject("0198-b2_f0.c3", 12, 3)])
def test_a_subject_comes_back_as_it_was(subject: Subject) -> None:
    assert Subject.parse(str(subject)) == subject
    assert Subject.parse(f"{subject}/decide") == subject


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:x", "a:1:2:3", "a b:1", "a:-1", "a:1\n", "a" * 200 + ":1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="open the card again"):
        Subject.parse(text)


def test_every_button_of_a_card_says_which_draft_it_was_drawn_for() -> None:
    card = review_message(made.card())
    buttons = [part for part in parts(card["blocks"]) if part.get("type") == "button"]
    assert {subject_of(button) for button in buttons} == {Subject(made.ID, 2)}
    assert all(block["block_id"].startswith(f"{made.ID}:2/") for block in card["blocks"])


def test_a_menu_says_it_by_its_block() -> None:
    (row,) = [b for b in question_message(made.question("choice", 9))["blocks"] if b["type"] == "actions"]
    assert subject_of({"type": "static_select", "block_id": row["block_id"]}) == Subject(made.ID, 1)


def test_a_run_and_a_page_come_back() -> None:
    assert RunPage.parse(str(RunPage("run1", 4))) == RunPage("run1", 4)
    assert RunPage.parse("run1") == RunPage("run1")
    assert page_of({"value": "12"}) == 12
    with pytest.raises(Malformed):
        RunPage.parse("a b")
    with pytest.raises(Malformed):
        page_of({"value": "²"})
