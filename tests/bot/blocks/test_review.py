"""A review's card shows all that goes out before it can be approved, and afterwards who decided what."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings

from bot.blocks import actions
from bot.blocks.review import review_message, shows_everything
from bot.blocks.text import clean
from graphs.flow import Field, Release
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import action_ids, element, literal_text, texts

DECIDE = [actions.APPROVE, actions.EDIT, actions.DECLINE, actions.CHANGES]


@settings(deadline=None, max_examples=60)
@given(made.any_text)
def test_approve_is_there_exactly_when_the_whole_text_is(text: made.Text) -> None:
    card = made.card(str(text))
    payload = review_message(card)
    can_approve = actions.APPROVE in action_ids(payload)
    assert can_approve == shows_everything(card)
    if can_approve and str(text).strip():
        assert literal_text(payload) == clean(str(text))


@pytest.mark.parametrize("length", [1, 2_999, 3_000, 3_001, 11_000])
def test_an_ordinary_text_is_shown_in_full(length: int) -> None:
    text = ("The harmful line stands at the end. " * 400).rstrip()[-length:]
    payload = review_message(made.card(text))
    assert literal_text(payload) == text
    assert action_ids(payload) == DECIDE


@pytest.mark.parametrize("text", ["a" * 12_000, "a" * 40_001, "&" * 3_000])
def test_a_text_that_does_not_fit_must_be_read_before_it_is_approved(text: str) -> None:
    payload = review_message(made.card(text))
    assert action_ids(payload) == [actions.READ, *DECIDE[1:]]
    said = " ".join(texts(payload))
    assert f"of {len(text):,} characters" in said
    assert "Read it all before you approve." in said


def test_key_facts_come_before_the_draft_and_the_others_in_small_print_after_it() -> None:
    facts = {
        "Trailhead": "Fern Hollow",
        "When": "Saturday",
        "Rain": "10 %",
        "Trail": "8 km",
        "Bring": "water",
        "By": "us",
    }
    said = texts(review_message(made.card(review=made.review(facts=facts))))
    does = next(n for n, text in enumerate(said) if text.startswith("*Approve* sends"))
    assert said.index("*Trail*\n8 km") < said.index(made.TEXT) < does < said.index("*Bring* water · *By* us")


def test_one_deadline_is_told_once() -> None:
    def told(**changes: datetime) -> str:
        return " ".join(texts(review_message(made.card(expires_at=made.LATER, review=made.review(**changes)))))

    assert "holds until" not in told(valid_until=made.LATER)
    assert "holds until" in told(valid_until=made.LATER + timedelta(hours=1))


def test_the_card_says_what_approving_does() -> None:
    said = texts(review_message(made.card()))
    assert "*Approve* sends this text to +15035550134 and posts it to <#C0HIKES01>." in said
    assert "*Text*  (75 characters · 1 segment in GSM-7)" in said


def test_without_releases_it_says_that_nothing_is_sent() -> None:
    said = texts(review_message(made.card(review=made.review(releases=[]))))
    assert "*Approve* lets the run go on; nothing is sent by it." in said


def test_too_many_releases_to_name_must_be_read_first() -> None:
    releases = [Release(kind="sms", to=f"+1503555{n:04}", content="text") for n in range(9)]
    assert actions.APPROVE not in action_ids(review_message(made.card(review=made.review(releases=releases))))


def test_a_high_risk_asks_once_more() -> None:
    button = element(review_message(made.card(review=made.review(risk="high"))), actions.APPROVE)
    assert "+15035550134" in button["confirm"]["text"]["text"]
    assert "confirm" not in element(review_message(made.card()), actions.APPROVE)


def test_a_quorum_is_counted() -> None:
    said = texts(review_message(made.card(quorum=2, votes=made.VOTES[:1])))
    assert "1 of 2 approvals · approved so far by <@U0BEN>" in said


def test_facts_that_are_cut_can_be_read_in_full() -> None:
    payload = review_message(made.card(review=made.review(facts={"Story": "long " * 200})))
    assert action_ids(payload) == [*DECIDE, actions.READ]


def test_fields_that_are_no_texts_stand_beside_their_names() -> None:
    draft = {
        "day": Field(label="Day", kind="date", value="2026-08-01"),
        "n": Field(label="People", kind="number", value=0),
    }
    said = texts(review_message(made.card(review=made.review(draft=draft, releases=[]))))
    assert said[said.index("*Day*") + 1] == "2026-08-01"
    assert said[said.index("*People*") + 1] == "0"


def test_characters_that_hide_something_are_told() -> None:
    said = " ".join(texts(review_message(made.card("Meet at \u202e9 am"))))
    assert "U+202E right-to-left override" in said


def test_a_name_of_an_emoji_is_shown_letter_by_letter() -> None:
    blocks = review_message(made.card("Fun :tada:"))["blocks"]
    assert [b["text"]["emoji"] for b in blocks if b.get("text", {}).get("text") == "Fun :tada:"] == [False]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("final", "✅ *Approved* by <@U0BEN> · draft 2 · "),
        ("declined", "🚫 *Declined* by <@U0BEN> · draft 2 · "),
        ("changes_requested", "✏️ *Sent back* by <@U0BEN> with a request for changes · draft 2 · "),
        ("expired", "⌛ *Expired*: nobody decided in time · draft 2 · "),
        ("cancelled", "⏹️ *Cancelled* by <@U0BEN> · draft 2 · "),
        ("superseded", "↪️ *Replaced*: a newer card stands for this · draft 2 · "),
    ],
)
def test_a_settled_card_says_who_when_which_and_has_no_buttons(status: str, says: str) -> None:
    payload = review_message(made.settled(status, reason="Too far for Sunday & back"))
    said = texts(payload)
    assert any(text.startswith(says) and f"<!date^{int(made.NOW.timestamp())}^" in text for text in said)
    assert "Too far for Sunday & back" in said
    assert made.TEXT in said
    assert [block for block in payload["blocks"] if block["type"] == "actions"] == []


def test_all_who_approved_are_named() -> None:
    said = texts(review_message(made.settled("final", votes=made.VOTES, quorum=2)))
    assert any(text.startswith("✅ *Approved* by <@U0BEN> and <@U0CLEO>") for text in said)


def test_an_approval_can_be_undone_until_it_goes_out() -> None:
    payload = review_message(made.settled("approved", undo_until=made.NOW + timedelta(seconds=60)))
    assert action_ids(payload) == [actions.UNDO]
    assert any("Until then it can be undone." in text for text in texts(payload))
    assert action_ids(review_message(made.settled("final", undo_until=made.NOW))) == []


def test_an_edit_is_shown_word_by_word() -> None:
    payload = review_message(made.settled("final", changes=(made.CHANGE,)))
    (quote,) = [block for block in payload["blocks"] if block["type"] == "rich_text"]
    runs = quote["elements"][0]["elements"]
    assert [run["text"] for run in runs if run.get("style") == {"strike": True}] == ["Saturday!"]
    assert [run["text"] for run in runs if run.get("style") == {"bold": True}] == ["Sunday!"]


def test_the_notification_is_short_and_escaped() -> None:
    assert review_message(made.card())["text"].endswith("draft 2: " + made.TEXT.replace("&", "&amp;"))
    assert review_message(made.settled("declined"))["text"].endswith("declined, draft 2, 2026-08-01 15:00 UTC")
