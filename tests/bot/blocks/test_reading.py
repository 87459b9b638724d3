"""A long text is read page by page, and can be approved on the last one only."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from bot.blocks import actions
from bot.blocks.actions import RunPage, Subject
from bot.blocks.reading import has_ticked, log_view, read_view
from bot.blocks.text import clean
from graphs.flow import Release
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import action_ids, check_view, element, literal_text, read_through, texts
from tests.bot.blocks.submitted import option, state_of

LONG = "".join(f"Sentence number {n}. " for n in range(2_500))


@settings(deadline=None, max_examples=40)
@given(made.any_text)
def test_all_pages_together_are_the_whole_text(text: made.Text) -> None:
    card = made.card(review=made.review(str(text), facts={}, releases=[]))
    shown = "".join(map(literal_text, read_through(card)))
    assert shown == clean(str(text)) or "blank characters)" in shown or shown == "(empty)"


def test_only_the_last_page_approves() -> None:
    card = made.card(LONG)
    pages = read_through(card)
    assert len(pages) > 3
    assert ["submit" in page for page in pages] == [False] * (len(pages) - 1) + [True]
    assert [page["callback_id"] for page in pages[-2:]] == [actions.NOTICE, actions.APPROVE]
    assert actions.DECLINE in action_ids(pages[-1])


def test_pages_follow_one_another() -> None:
    card = made.card(LONG)
    last = len(read_through(card)) - 1
    assert element(read_view(card), actions.READ_ON)["value"] == str(Subject(made.ID, 2, 1))
    assert element(read_view(card, last), actions.READ_BACK)["value"] == str(Subject(made.ID, 2, last - 1))
    assert actions.READ_ON not in action_ids(read_view(card, last))
    assert Subject.parse(read_view(card, 999)["private_metadata"]) == Subject(made.ID, 2, last)


@pytest.mark.parametrize("change", [{"status": "declined"}, {"status": "final"}])
def test_what_is_settled_can_be_read_but_not_approved(change: dict[str, str]) -> None:
    view = check_view(read_view(made.card(**change)))
    assert "submit" not in view
    assert action_ids(view) == []


def test_whoever_may_not_decide_can_read() -> None:
    assert "submit" not in read_view(made.card(), may_decide=False)


def test_a_high_risk_needs_a_tick() -> None:
    view = check_view(read_view(made.card(review=made.review(risk="high"))))
    assert not has_ticked(state_of(view))
    assert has_ticked(state_of(view, read=[option(view, "read", 0)]))
    assert has_ticked(state_of(read_view(made.card())))


def test_facts_and_releases_are_there_in_full() -> None:
    address = "https://example.org/" + "a" * 300
    releases = [Release(kind="post", to=address, content="text")]
    review = made.review(facts={"Story": "long " * 500}, releases=releases)
    said = texts(read_view(made.card(review=review)))
    assert "long " * 500 in said
    assert address in said


def test_a_log_has_pages_with_every_step_on_one() -> None:
    pages = [check_view(log_view(made.log(95), page)) for page in range(3)]
    said = [text for page in pages for text in texts(page) if text.startswith("*")]
    assert len(said) == 95
    assert said[0] == "*0* worker → tools, evaluate · 1 s · 900 tokens"
    assert action_ids(pages[1]) == [actions.LOG_BACK, actions.LOG_ON]
    assert element(pages[1], actions.LOG_ON)["value"] == str(RunPage(made.ID, 2))
    assert action_ids(pages[2]) == [actions.LOG_BACK]


def test_a_run_without_steps_says_so() -> None:
    assert "No step has been taken yet." in texts(check_view(log_view(made.log(0))))
