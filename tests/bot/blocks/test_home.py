"""The Home tab shows what waits, and lets people approve only what they can read there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.blocks import actions
from bot.blocks.home import Inbox, Waiting, home_view, inbox_page
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import action_ids, check_view, element, texts


def one(item: Waiting) -> Inbox:
    return Inbox(waiting=(item,), waiting_total=1)


def test_an_empty_inbox_says_so() -> None:
    said = texts(check_view(home_view(Inbox())))
    assert "Nothing waits for you. 🌲" in said
    assert "Nothing of yours is under way." in said
    assert "Nothing yet." in said


def test_a_short_draft_is_shown_and_can_be_approved() -> None:
    view = check_view(home_view(one(Waiting(card=made.card(), since=made.NOW))))
    assert made.TEXT in texts(view)
    assert "Approve sends this text to +15035550134 and posts it to <#C0HIKES01>." in texts(view)
    assert action_ids(view) == [actions.APPROVE, actions.READ]


@pytest.mark.parametrize(
    "item",
    [
        Waiting(card=made.card("long " * 200), since=made.NOW),
        Waiting(card=made.card("see\u202e this"), since=made.NOW),
        Waiting(card=made.card(), since=made.NOW, may_approve=False),
    ],
)
def test_anything_else_must_be_opened(item: Waiting) -> None:
    assert action_ids(check_view(home_view(one(item)))) == [actions.READ]


def test_a_high_risk_asks_once_more_here_too() -> None:
    item = Waiting(card=made.card(review=made.review(risk="high")), since=made.NOW)
    assert "confirm" in element(home_view(one(item)), actions.APPROVE)


def test_a_question_is_answered_in_a_window() -> None:
    assert action_ids(check_view(home_view(one(Waiting(card=made.question(), since=made.NOW))))) == [actions.ANSWER]


def test_items_are_paged_and_counted() -> None:
    first, second, last = (home_view(made.inbox(250, page)) for page in (0, 1, 15))
    assert "1 to 16 of 250" in texts(first)
    assert "17 to 32 of 250" in texts(second)
    assert "241 to 250 of 250" in texts(last)
    assert [actions.HOME_BACK in action_ids(view) for view in (first, second, last)] == [False, True, True]
    assert [actions.HOME_ON in action_ids(view) for view in (first, second, last)] == [True, True, False]
    assert element(second, actions.HOME_ON)["value"] == "2"
    assert "and 240 more" in texts(first)


@pytest.mark.parametrize(("total", "page", "shown"), [(0, 3, 0), (16, 1, 0), (17, 1, 1), (250, 99, 15), (5, -1, 0)])
def test_a_page_that_is_gone_becomes_the_last_one(total: int, page: int, shown: int) -> None:
    assert inbox_page(total, page) == shown


def test_titles_link_to_their_cards() -> None:
    item = Waiting(
        card=replace(made.card(), review=made.review(title="A <b>")), since=made.NOW, link="https://x.example/p"
    )
    assert any("*<https://x.example/p|A &lt;b&gt;>*" in text for text in texts(home_view(one(item))))
