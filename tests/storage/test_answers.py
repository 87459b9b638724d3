"""What people typed is taken in the kind that was asked for, or refused with what would be taken."""

from __future__ import annotations

from typing import Any

import pytest

from graphs.flow import Choice, Field, Question, Review
from storage.answers import BadAnswer, check_answer, check_draft, check_field

TRAILS = [Choice(value="fern", label="Fern Hollow"), Choice(value="oak", label="Oak Ridge")]


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        ("text", "At the bridge\nat 7", "At the bridge\nat 7"),
        ("number", "12", 12),
        ("number", " 12.5 ", 12.5),
        ("number", 0, 0),
        ("date", "2027-03-28", "2027-03-28"),
        ("choice", "oak", "oak"),
        ("choices", ["oak", "fern", "oak"], ["fern", "oak"]),
        ("yes_no", "No", False),
        ("yes_no", True, True),
    ],
)
def test_an_answer_is_taken_in_its_kind(kind: Any, given: Any, taken: Any) -> None:
    answer = check_answer(Question(text="?", kind=kind, choices=TRAILS), given)
    assert (answer, type(answer)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("text", "  \n"),
        ("text", 7),
        ("text", None),
        ("number", "twelve"),
        ("number", True),
        ("number", "nan"),
        ("number", float("inf")),
        ("number", ""),
        ("date", "28.03.2027"),
        ("date", "2027-02-30"),
        ("date", "20270328"),
        ("date", 20270328),
        ("choice", "Fern Hollow"),
        ("choice", None),
        ("choices", []),
        ("choices", "oak"),
        ("choices", ["oak", "pine"]),
        ("yes_no", "perhaps"),
        ("yes_no", 1),
    ],
)
def test_anything_else_is_refused_with_what_to_do(kind: Any, given: Any) -> None:
    with pytest.raises(BadAnswer, match=r"\.$"):
        check_answer(Question(text="?", kind=kind, choices=TRAILS), given)


@pytest.mark.parametrize(
    ("part", "given", "sentence"),
    [
        (Field(label="Text"), " ", "Text must not be empty."),
        (Field(label="Text", max_length=3), "four", "Text has 4 characters; 3 are allowed."),
        (Field(label="Title", kind="line"), "a\nb", "Title: Write one line."),
        (Field(label="Trail", kind="choice", choices=TRAILS), "pine", "Trail: Choose one of: Fern Hollow, Oak Ridge."),
    ],
)
def test_a_field_says_what_is_wrong_with_its_value(part: Field, given: Any, sentence: str) -> None:
    with pytest.raises(BadAnswer) as refused:
        check_field(part, given)
    assert str(refused.value) == sentence


def test_a_field_that_is_not_required_may_be_empty() -> None:
    assert check_field(Field(label="Day", kind="date", required=False), None) is None
    assert check_field(Field(label="Note", required=False), "") == ""


def test_edits_replace_only_what_they_name() -> None:
    review = Review(title="T", draft={"text": Field(label="Text", value="a"), "note": Field(label="Note", value="n")})
    assert check_draft(review, {"text": "b", "note": "n"}, {"note": "m"}) == {"text": "b", "note": "m"}


def test_an_edit_of_something_the_draft_does_not_have_is_refused() -> None:
    review = Review(title="T", draft={"text": Field(label="Text", value="a")})
    with pytest.raises(BadAnswer, match="no part 'price'"):
        check_draft(review, {"text": "a"}, {"price": "1"})
