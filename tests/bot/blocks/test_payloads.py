"""Everything that is sent to Slack is something that Slack takes, whatever people and models write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from bot.blocks.difference import Change
from bot.blocks.elements import QUIET
from bot.blocks.home import home_view
from bot.blocks.modals import (
    StartForm,
    answer_view,
    changes_view,
    decline_view,
    edit_view,
    loading_view,
    message_view,
    start_view,
)
from bot.blocks.notes import OUT_OF_DATE, Reminder, note, reminder_message, told_message
from bot.blocks.question import effect_message, question_message
from bot.blocks.reading import log_view, read_view
from bot.blocks.review import review_message
from bot.blocks.run import ending_message, run_message
from graphs.flow import Choice, Field, Question
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import check_message, check_view, mrkdwn_texts, read_through
from tests.shared import SHARED

SCHEMAS = SHARED / "slack/schemas"
STATUSES = ("approved", "final", "declined", "changes_requested", "expired", "cancelled", "superseded", "answered")
Named = tuple[str, dict[str, Any]]


def messages() -> Iterator[Named]:
    """Every kind of message, in every state."""
    yield "pending", review_message(made.card())
    yield "pending, high risk", review_message(made.card(review=made.review(risk="high"), expires_at=made.LATER))
    yield "pending, one of two", review_message(made.card(quorum=2, votes=made.VOTES[:1], changes=(made.CHANGE,)))
    yield "pending, long", review_message(made.card("word " * 3_000))
    for status in STATUSES:
        more = {"undo_until": made.LATER} if status == "approved" else {}
        yield status, review_message(made.settled(status, reason="Too far", changes=(made.CHANGE,), **more))
    for kind, choices in (("yes_no", 0), ("choice", 3), ("choice", 40), ("choice", 250), ("text", 0), ("choices", 4)):
        yield f"question {kind} {choices}", question_message(made.question(kind, choices))
    yield "answered", question_message(made.question(status="answered", answer=True, by="U0ADA", at=made.NOW))
    yield "unknown", effect_message(made.effect(found="Slack does not know it."))
    yield "settled unknown", effect_message(made.effect(status="answered", answer="went_out", by="U0BEN", at=made.NOW))
    for state in ("queued", "running", "waiting", "sleeping", "stuck", "failed", "finished"):
        yield f"run {state}", run_message(made.run(state=state, note="for a decision", card="https://x.example/p"))
    yield "end", ending_message(made.notice())
    yield "end with nothing", ending_message(made.notice(ending="declined", out=(), why_not="It was declined."))
    yield "told", told_message(made.notice())
    yield "note", note("You have already approved this.")
    yield "refusal", note(OUT_OF_DATE)
    yield (
        "reminder",
        reminder_message(
            Reminder(title="Text", users=("U0BEN", "U0CLEO"), requester="U0ADA", since=made.NOW, expires_at=made.LATER)
        ),
    )


def views() -> Iterator[Named]:
    """Every kind of window."""
    yield "edit", edit_view(made.card())
    yield "edit, long", edit_view(made.card("word " * 3_000, review=made.review("word " * 3_000, risk="high")))
    yield "save only", edit_view(made.card(), may_approve=False)
    yield "decline", decline_view(made.card())
    yield "changes", changes_view(made.card())
    for kind, choices in (("yes_no", 0), ("choice", 250), ("choices", 4), ("choices", 40), ("number", 0), ("date", 0)):
        yield f"answer {kind}", answer_view(made.question(kind, choices))
    yield "answer text", answer_view(made.question("text"))
    yield "start", start_view(form())
    yield "loading", loading_view("Edit")
    yield "said", message_view("Not now", "This was declined already.")
    yield "read", read_view(made.card())
    yield "read, high risk", read_view(made.card(review=made.review(risk="high")))
    yield "read, first of many", read_view(made.card("word " * 9_000))
    for steps in (0, 1, 200):
        yield f"log {steps}", log_view(made.log(steps), 1)


def form() -> StartForm:
    fields = {
        "request": Field(label="What kind of hike?", max_length=500, hint="In your own words."),
        "place": Field(label="Place", kind="line", required=False),
        "people": Field(label="People", kind="number", value=4),
        "day": Field(label="Day", kind="date", value="2026-08-01"),
        "trail": Field(label="Trail", kind="choice", choices=[Choice(value="fern", label="Fern Hollow")], value="fern"),
    }
    return StartForm(title="Plan a hike", fields=fields, usage="/plan-hike Saturday", metadata="plan_hike:C0HIKES01")


def validator(name: str) -> Draft7Validator:
    path = SCHEMAS / name
    if not path.is_file():
        pytest.skip("Slack's JSON schemas are not on this machine.")
    return Draft7Validator(json.loads(path.read_text("utf-8")))


@pytest.mark.parametrize("payload", [pytest.param(payload, id=name) for name, payload in messages()])
def test_slack_takes_every_message(payload: dict[str, Any]) -> None:
    assert set(check_message(payload)) == {"text", "blocks"}


@pytest.mark.parametrize("view", [pytest.param(view, id=name) for name, view in views()])
def test_slack_takes_every_window(view: dict[str, Any]) -> None:
    assert check_view(view)["type"] == "modal"


@pytest.mark.allowed_skip
def test_every_message_follows_the_schema() -> None:
    schema = validator("MessageBlocks.with-limits.schema.json")
    wrong = [(name, schema.is_valid(payload["blocks"])) for name, payload in messages()]
    assert [name for name, is_valid in wrong if not is_valid] == []


@pytest.mark.allowed_skip
def test_every_window_follows_the_schema() -> None:
    schema = validator("Modal.with-limits.schema.json")
    assert [name for name, view in views() if not schema.is_valid(view)] == []


@pytest.mark.parametrize("items", [0, 1, 100, 250])
@pytest.mark.parametrize("page", [0, 1, 15])
def test_the_home_tab_takes_any_number_of_items(items: int, page: int) -> None:
    assert check_view(home_view(made.inbox(items, page)))["type"] == "home"


@settings(max_examples=40, deadline=None)
@given(made.any_text, made.any_text, made.short_text, st.sampled_from(["pending", *STATUSES]))
@example(made.Text("&", 12_000), made.Text("<", 3_000), "&" * 80, "declined")
@example(made.Text("&", 12_000), made.Text("<", 3_000), "&" * 80, "pending")
def test_a_card_fits_whatever_it_holds(long: made.Text, more: made.Text, short: str, status: str) -> None:
    """The worst of every part at once, too."""
    draft, other = str(long), str(more)
    facts = {f"{short}{number}": other[:3_000] for number in range(30)}
    review = made.review(draft, title=other or "x", facts=facts)
    card = made.card(
        review=review,
        status=status,
        reason=other,
        requester=short,
        by=short,
        at=made.NOW,
        changes=tuple(Change(short, draft, other) for _ in range(8)),
        notes=(other,) * 8,
        result=(other,) * 8,
        may_decide=other,
        quorum=3,
        votes=made.VOTES * 8,
        expires_at=made.LATER,
        undo_until=made.LATER,
    )
    check_message(review_message(card))
    read_through(card)
    check_view(edit_view(replace(card, review=review.model_copy(update={"facts": {}}))))
    check_view(decline_view(card))


@settings(max_examples=60, deadline=None)
@given(
    made.any_text, made.any_text, st.sampled_from(["text", "choice", "choices", "yes_no", "date"]), st.integers(0, 130)
)
def test_a_question_fits_whatever_it_asks(asks: made.Text, offers: made.Text, kind: Any, choices: int) -> None:
    text, label = str(asks), str(offers)
    offered = [Choice(value=str(number), label=label[:500]) for number in range(choices)]
    asked = made.question(question=Question(text=text, kind=kind, choices=offered), title=label, may_answer=label)
    check_message(question_message(asked))
    check_message(question_message(replace(asked, status="answered", answer=label, by=label[:40], at=made.NOW)))
    check_view(answer_view(asked))


@settings(max_examples=60, deadline=None)
@given(made.any_text, made.short_text)
def test_everything_about_a_run_fits(long: made.Text, short: str) -> None:
    text = str(long)
    steps = tuple(made.StepMark(f"{text[:200]}{number}") for number in range(60))
    spent = replace(made.SPENT, model=text, provider=text)
    check_message(run_message(made.run(request=text, command=short or "x", steps=steps, note=text, spent=spent)))
    out = tuple(made.Out(text, text, text, text[:1]) for _ in range(20))
    notice = made.notice(request=text, command=text[:50], text=text, reason=text, by=text, out=out, spent=spent)
    check_message(told_message(notice))
    check_message(effect_message(made.effect(content=text, to=text, kind=short, found=text, may_decide=text)))
    check_message(note(text))
    check_view(message_view(text, text))
    check_view(log_view(made.log(3, title=text, spent=spent)))


@settings(max_examples=40, deadline=None)
@given(made.any_text)
def test_nothing_anybody_writes_becomes_a_mention_or_a_link(text: made.Text) -> None:
    hostile = f"<!channel> <@U999> <http://evil.example|x> {text}"
    review = made.review(hostile, title=hostile, facts={hostile: hostile})
    changes = (Change("a", "b", hostile),)
    card = made.card(review=review, may_decide=hostile, notes=(hostile,), reason=hostile, changes=changes)
    notice = made.notice(text=hostile, reason=hostile)
    shown = [review_message(card), question_message(made.question(title=hostile, may_answer=hostile))]
    shown += [run_message(made.run(request=hostile, note=hostile)), ending_message(notice)]
    shown += [note(hostile), read_view(card), home_view(made.inbox(3))]
    read = "\n".join(text for payload in shown for text in mrkdwn_texts(payload))
    assert "<!channel" not in read
    assert "<@U999" not in read
    assert "<http://evil" not in read


def test_links_are_not_unfolded() -> None:
    assert dict(QUIET) == {"unfurl_links": False, "unfurl_media": False}
