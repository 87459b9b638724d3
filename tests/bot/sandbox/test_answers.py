"""What an app may say through a response url, how often, and for how long."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.webhook import WebhookClient, WebhookResponse

from bot.sandbox.records import Delivery, Message, Timing
from bot.sandbox.server import StandIn

ANA, BEN, HIKES = "U0ANA0001", "U0BEN0002", "C0HIKES01"


def respond(delivery: Delivery | None, **body: Any) -> WebhookResponse:
    assert delivery is not None
    return WebhookClient(delivery.payload["response_url"], retry_handlers=[]).send(**body)


def commanded(stand_in: StandIn) -> Delivery | None:
    """A command nobody answers: its response url works all the same."""
    return stand_in.people.command(ANA, HIKES, "/plan-hike")


def clicked(stand_in: StandIn, **fields: Any) -> tuple[Message, Delivery]:
    button = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}}
    card = stand_in.workspace.post(
        HIKES, "U0SIGNOFF", "card", blocks=({"type": "actions", "block_id": "a", "elements": [button]},), **fields
    )
    return card, stand_in.people.click(ANA, HIKES, card.ts, "a", "go")


def shown(stand_in: StandIn, viewer: str) -> list[str]:
    messages = stand_in.workspace.messages(HIKES, viewer=viewer)
    return [one.text for one in messages if one.user == "U0SIGNOFF"]


def test_an_answer_is_private_unless_it_says_otherwise(stand_in: StandIn) -> None:
    delivery = commanded(stand_in)
    assert respond(delivery, text="for you").status_code == 200
    assert respond(delivery, text="for all", response_type="in_channel").status_code == 200
    assert (shown(stand_in, ANA), shown(stand_in, BEN)) == (["for you", "for all"], ["for all"])


def test_a_command_cannot_replace_its_own_answer(stand_in: StandIn) -> None:
    delivery = commanded(stand_in)
    respond(delivery, text="first")
    respond(delivery, text="second", replace_original=True)
    assert shown(stand_in, ANA) == ["first", "second"]


def test_a_click_may_replace_and_delete_the_message_it_was_made_on(stand_in: StandIn) -> None:
    card, delivery = clicked(stand_in)
    respond(delivery, text="done", replace_original=True)
    replaced = stand_in.workspace.message(HIKES, card.ts)
    assert replaced is not None and (replaced.text, replaced.blocks) == ("done", ())
    respond(delivery, delete_original=True)
    assert stand_in.workspace.message(HIKES, card.ts) is None


def test_a_private_message_can_be_replaced_only_this_way(stand_in: StandIn) -> None:
    card, delivery = clicked(stand_in, ephemeral_to=ANA)
    respond(delivery, text="done", replace_original=True)
    replaced = stand_in.workspace.message(HIKES, card.ts)
    assert replaced is not None and (replaced.text, replaced.ephemeral_to) == ("done", ANA)


def test_the_sixth_answer_is_refused(stand_in: StandIn) -> None:
    delivery = commanded(stand_in)
    answers = [respond(delivery, text=str(number)) for number in range(6)]
    assert [one.status_code for one in answers] == [200] * 5 + [404]
    assert "used_url" in answers[-1].body
    assert shown(stand_in, ANA) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("timing", [Timing(response_url_seconds=-1.0)])
def test_an_answer_after_half_an_hour_is_refused(stand_in: StandIn) -> None:
    answer = respond(commanded(stand_in), text="late")
    assert (answer.status_code, "expired_url" in answer.body) == (404, True)


def test_blocks_that_slack_would_refuse_are_refused_but_not_for_their_sum(stand_in: StandIn) -> None:
    delivery = commanded(stand_in)
    section = {"type": "section", "text": {"type": "plain_text", "text": "x" * 3000}}
    assert respond(delivery, text="x", blocks=[section] * 5).status_code == 200
    refused = respond(delivery, text="x", blocks=[{"type": "teleport"}])
    assert (refused.status_code, "invalid_blocks" in refused.body) == (400, True)
