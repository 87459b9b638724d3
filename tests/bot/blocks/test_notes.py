"""Whoever clicks is told what became of it."""

from __future__ import annotations

import pytest

from bot.blocks import notes
from bot.blocks.text import Mrkdwn
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import check_message, texts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (notes.NOT_COUNTED, "Please click again."),
        (notes.OUT_OF_DATE, "use the newest one"),
        ("only the <leaders> may decide", "only the &lt;leaders&gt; may decide"),
        (Mrkdwn("<@U1> was faster"), "<@U1> was faster"),
    ],
)
def test_every_refusal_says_why(text: str, says: str) -> None:
    payload = check_message(notes.note(text))
    assert says in texts(payload)[0]
    assert says in payload["text"]


@pytest.mark.parametrize(
    ("is_escalated", "begin"), [(False, "Still waiting for you"), (True, "Nobody has decided yet")]
)
def test_a_reminder_names_who_is_waited_for(is_escalated: bool, begin: str) -> None:
    reminder = notes.Reminder(
        title="Text <b>", users=("U0BEN",), requester="U0ADA", since=made.NOW, card="https://x.example/p",
        expires_at=made.LATER, is_escalated=is_escalated,
    )  # fmt: skip
    first, second = texts(check_message(notes.reminder_message(reminder)))
    assert first.startswith("<@U0BEN>: ")
    assert begin in first
    assert first.endswith("*Text &lt;b&gt;*")
    assert "asked by <@U0ADA>" in second
    assert "<https://x.example/p|Open the card>" in second


def test_whoever_asked_is_told_the_end() -> None:
    assert check_message(notes.told_message(made.notice()))["text"].startswith("Your request: /plan-hike: finished")
