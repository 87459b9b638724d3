"""What people typed, checked against what was asked, before anything is decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from pydantic import JsonValue

from graphs.flow import Choice, Field, Question, Review


class BadAnswer(ValueError):
    """Not an answer to what was asked; the sentence says what would be."""


def check_answer(question: Question, value: JsonValue) -> JsonValue:
    """The answer in the question's kind: str, number, ISO date, choice value(s) or bool. Raises `BadAnswer`."""
    return _CHECKS[question.kind](value, question.choices)


def check_draft(review: Review, draft: Mapping[str, JsonValue], edits: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The draft with its edits; raises `BadAnswer` for an unknown part, or one that does not fit its field."""
    if unknown := [name for name in edits if name not in review.draft]:
        raise BadAnswer(f"The draft has no part {unknown[0]!r}; it has {', '.join(review.draft)}.")
    edited = {name: check_field(review.draft[name], value) for name, value in edits.items()}
    return {**draft, **edited}


def check_field(part: Field, value: JsonValue) -> JsonValue:
    """One value of a draft or form in its field's kind; raises `BadAnswer`."""
    if value is None or (isinstance(value, str) and not value.strip()):
        if part.required:
            raise BadAnswer(f"{part.label} must not be empty.")
        return value
    try:
        checked = _CHECKS[part.kind](value, part.choices)
    except BadAnswer as error:
        raise BadAnswer(f"{part.label}: {error}") from error
    if part.max_length is not None and isinstance(checked, str) and len(checked) > part.max_length:
        raise BadAnswer(f"{part.label} has {len(checked)} characters; {part.max_length} are allowed.")
    return checked


def _text(value: JsonValue, _choices: Sequence[Choice]) -> JsonValue:
    if not isinstance(value, str) or not value.strip():
        raise BadAnswer("Write something.")
    return value


def _line(value: JsonValue, choices: Sequence[Choice]) -> JsonValue:
    text = str(_text(value, choices))
    if len(text.splitlines()) > 1:
        raise BadAnswer("Write one line.")
    return text


def _number(value: JsonValue, _choices: Sequence[Choice]) -> JsonValue:
    number = _parse_number(value.strip()) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise BadAnswer("Write a number, such as 12 or 12.5.")
    return number


def _parse_number(text: str) -> int | float | None:
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return None


def _date(value: JsonValue, _choices: Sequence[Choice]) -> JsonValue:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:
        raise BadAnswer("Write a date as YYYY-MM-DD.")
    return value


def _choice(value: JsonValue, choices: Sequence[Choice]) -> JsonValue:
    if value not in [choice.value for choice in choices]:
        raise BadAnswer(f"Choose one of: {', '.join(choice.label for choice in choices)}.")
    return value


def _several(value: JsonValue, choices: Sequence[Choice]) -> JsonValue:
    picked = value if isinstance(value, list) else []
    if not picked:
        raise BadAnswer("Choose at least one.")
    for one in picked:
        _choice(one, choices)
    return [choice.value for choice in choices if choice.value in picked]


def _yes_no(value: JsonValue, _choices: Sequence[Choice]) -> JsonValue:
    answer = {"yes": True, "no": False}.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(answer, bool):
        raise BadAnswer("Answer yes or no.")
    return answer


_CHECKS: Mapping[str, Callable[[Any, Sequence[Choice]], JsonValue]] = {
    "text": _text,
    "line": _line,
    "number": _number,
    "date": _date,
    "choice": _choice,
    "choices": _several,
    "yes_no": _yes_no,
}
