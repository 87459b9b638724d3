"""Texts and posts through the practice API, and what is known when it goes wrong."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from bot.adapters.outgoing import Unanswered
from bot.adapters.practice import Practice
from bot.adapters.practice_senders import PracticePost, PracticeSms
from graphs.ports import Busy, Nonsense, NotAccepted, Sender
from tests.bot.adapters.clock import StillClock

CLOCK = StillClock()
SMS, POST = ("+15035550134", "Fern Hollow at 8"), ("C0HIKES01", "We walk on Saturday")


@pytest.fixture
def practice() -> Practice:
    return Practice(clock=CLOCK)


def senders(practice: Practice) -> list[tuple[Sender, str, str]]:
    return [(PracticeSms(practice.client(), CLOCK), *SMS), (PracticePost(practice.client(), CLOCK), *POST)]


def test_what_is_sent_arrives_and_is_found(practice: Practice) -> None:
    for sender, address, content in senders(practice):
        sent = sender.send("run/1", address, content, {})
        assert sender.look_up("run/1", address, content, CLOCK()) == sent
        assert sender.look_up("run/2", address, content, CLOCK()) is None
        assert sender.absence_proves
    assert [(e["kind"], e["to"], e["body"], e["key"]) for e in practice.outbox()] == [
        ("sms", *SMS, "run/1"),
        ("post", *POST, "run/1"),
    ]


@pytest.mark.parametrize("fault", ["500", "503", "html", "drop", "take_then_drop"])
def test_a_lost_answer_is_settled_by_looking(practice: Practice, fault: Any) -> None:
    for sender, address, content in senders(practice):
        practice.inject(fault, path="/messages" if sender.kind == "sms" else "/posts")
        with pytest.raises(Unanswered):
            sender.send("run/1", address, content, {})
        found = sender.look_up("run/1", address, content, CLOCK())
        assert (found is not None) == (fault == "take_then_drop")


def test_a_refusal_is_not_accepted(practice: Practice) -> None:
    sms = PracticeSms(practice.client(), CLOCK)
    with pytest.raises(NotAccepted, match="not a valid phone number"):
        sms.send("run/1", "somebody", "x", {})
    practice.inject("429")
    with pytest.raises(NotAccepted) as caught:
        sms.send("run/1", *SMS, {})
    assert caught.value.until == CLOCK.after(minutes=1)
    assert practice.outbox() == []


def test_nobody_listening_is_not_accepted_and_cannot_be_asked() -> None:
    sms = PracticeSms(httpx2.Client(base_url="http://127.0.0.1:1", trust_env=False), CLOCK)
    with pytest.raises(NotAccepted, match="could not be reached"):
        sms.send("run/1", *SMS, {})
    with pytest.raises(Busy) as caught:
        sms.look_up("run/1", *SMS, CLOCK())
    assert caught.value.until == CLOCK.after(seconds=30)


@pytest.mark.parametrize("answer", [{"sid": ""}, {}])
def test_an_answer_without_a_reference_leaves_the_outcome_unknown(answer: dict[str, str]) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(201, json=answer))
    sms = PracticeSms(httpx2.Client(transport=transport, base_url="http://there.invalid"), CLOCK)
    with pytest.raises(Unanswered, match="no reference"):
        sms.send("run/1", *SMS, {})


@pytest.mark.parametrize("text", ["<html>", "[]", "{}"])
def test_a_list_that_is_none_is_nonsense(text: str) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=text))
    sms = PracticeSms(httpx2.Client(transport=transport, base_url="http://there.invalid"), CLOCK)
    with pytest.raises(Nonsense):
        sms.look_up("run/1", *SMS, CLOCK())
