"""A slash command, typed anywhere and in any way: it starts one run, or says in a sentence why it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.sandbox.records import Channel
from tests.bot.scene import ANA, BEN, CLEO, GENERAL, HIKES, OPS, REQUEST, Scene, everything, said_in


def test_a_command_is_answered_where_it_was_typed(scene: Scene) -> None:
    scene.ask(channel=GENERAL)
    card = scene.card(channel=GENERAL)
    assert scene.run().channel == GENERAL
    assert REQUEST in everything(card)
    assert scene.messages(HIKES) == []

    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert scene.said("🏁 *Finished*", GENERAL).channel == GENERAL


def test_in_a_private_channel_only_its_members_see_and_decide(scene: Scene) -> None:
    scene.ask(channel=OPS)
    card = scene.card(channel=OPS)
    assert scene.messages(HIKES) == scene.messages(GENERAL) == []
    assert CLEO not in everything(card)
    scene.click(BEN, card, "Approve")
    scene.ended("finished")


def test_a_command_in_a_direct_message_goes_to_the_channel_of_the_flow_and_says_so(scene: Scene) -> None:
    direct = scene.people.direct_message(ANA, BEN).id
    scene.ask(channel=direct)
    scene.card(channel=HIKES)
    assert f"<#{HIKES}>" in everything(scene.said("will appear in", direct))
    assert scene.run().channel == HIKES


@pytest.mark.parametrize("kind", ["public", "private"])
def test_a_command_where_the_bot_is_not_starts_nothing_and_says_what_to_do(scene: Scene, kind: str) -> None:
    scene.workspace.put_channel(Channel("C0LONELY1", "lonely", kind, (ANA, BEN)))  # type: ignore[arg-type]
    delivery = scene.ask(channel="C0LONELY1")
    assert delivery.status == "acked"
    told = scene.said("Nothing was started", "C0LONELY1")
    assert told.ephemeral_to == ANA
    assert "/invite @Signoff" in everything(told)
    assert scene.runs() == []


def test_no_text_opens_the_form_which_starts_the_run(scene: Scene) -> None:
    scene.ask("")
    view = scene.window(ANA, "Plan hike")
    delivery = scene.submit(ANA, view, request="a dry morning on Saturday")
    assert delivery is not None and delivery.status == "acked"
    scene.card()
    assert scene.workspace.modals(ANA) == []
    assert [run.who for run in scene.runs()] == [ANA]


def test_what_is_wrong_with_the_form_is_told_beside_the_field_and_can_be_put_right(scene: Scene) -> None:
    scene.ask("")
    view = scene.window(ANA, "Plan hike")
    past = (scene.clock.now() - timedelta(days=3)).date().isoformat()
    scene.submit(ANA, view, request="somewhere dry", date=past)
    shown = scene.workspace.view(view.id)
    assert shown is not None
    assert ["is past" in error for error in shown.errors.values()] == [True]
    assert scene.runs() == []

    coming = (scene.clock.now() + timedelta(days=3)).date().isoformat()
    scene.submit(ANA, shown, date=coming)
    scene.card()
    assert len(scene.runs()) == 1


def test_a_form_with_an_error_leaves_nothing_behind_in_the_inbox(scene: Scene) -> None:
    scene.ask("")
    view = scene.window(ANA, "Plan hike")
    scene.submit(ANA, view, request="on 30 February")
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")


def test_a_form_that_is_delivered_twice_starts_one_run(scene: Scene) -> None:
    scene.ask("")
    view = scene.window(ANA, "Plan hike")
    scene.slack.faults.twice("interactive", 1)
    scene.submit(ANA, view, request="a dry morning on Saturday")
    scene.card()
    assert len(scene.runs()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "x" * 3000,
        "\u201cdry\u201d, they said\non Saturday\n\nand \u2018short\u2019",
        "a\x00b\x07c on Saturday \x1b[31m",
        "🥾" * 700 + " نزهة جافة قصيرة 山歩き Saturday e" + "\u0301" * 40,
        "&" * 2500,
    ],
    ids=["3,000 characters", "quotes and newlines", "control characters", "emoji and other scripts", "ampersands"],
)
def test_any_text_of_up_to_3000_characters_is_planned(scene: Scene, text: str) -> None:
    scene.ask(text)
    card = scene.card()
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_a_request_is_shown_as_it_was_typed(scene: Scene) -> None:
    scene.ask("Dry & short <10 km on Saturday")
    scene.card()
    assert scene.request() == "Dry & short <10 km on Saturday"
    assert "Dry &amp; short &lt;10 km on Saturday" in everything(scene.said("/plan-hike: ", HIKES))


def test_mentions_in_a_request_are_names_and_reach_nobody(scene: Scene) -> None:
    scene.ask("Saturday with @ben and @cleo, see #general, @channel")
    scene.card()
    assert scene.request() == "Saturday with @ben and @cleo, see #general, @channel"
    for message in scene.messages():
        assert "<!channel" not in everything(message)
        assert f"<@{CLEO}>" not in said_in(message, "Saturday with")


@pytest.mark.parametrize("length", [3001, 20_000])
def test_a_text_that_is_too_long_starts_nothing_and_says_how_long_it_may_be(scene: Scene, length: int) -> None:
    delivery = scene.ask("x" * length)
    assert delivery.status == "acked"
    assert f"This has {length} characters; shorten it to 3000" in everything(scene.told(ANA, "shorten"))
    assert scene.runs() == []
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("a hike on 2020-01-04", "is past"), ("a hike on 2099-01-03", "forecasts reach"), ("on 31 November", "no 31")],
)
def test_a_day_that_cannot_be_planned_starts_nothing_and_says_why(scene: Scene, text: str, sentence: str) -> None:
    scene.ask(text)
    scene.told(ANA, sentence)
    assert scene.runs() == []


def test_one_command_delivered_twice_is_one_run_and_two_commands_are_two(scene: Scene) -> None:
    scene.slack.faults.twice("slash_commands", 1)
    scene.ask()
    scene.card()
    assert len(scene.runs()) == 1
    assert scene.slack.faults.counts()["twice"] == 1

    scene.ask()
    scene.settles(lambda: len(scene.runs()) == 2, "the second run")


def test_two_runs_in_one_channel_are_decided_each_by_its_own_card(scene: Scene) -> None:
    scene.ask("Saturday, the older one")
    older = scene.card()
    scene.ask("Saturday, the newer one")
    newer = scene.until(
        lambda: next((m for m in scene.messages() if m.ts != older.ts and "Approve" in str(m.blocks)), None),
        "the newer card",
    )
    view = scene.opened(BEN, newer, "Decline", "Decline")
    scene.submit(BEN, view, reason="not this one")
    scene.settles(lambda: [run.ending for run in scene.runs()] == ["declined", ""], "only the newer run to end")
    scene.click(CLEO, older, "Approve")
    scene.settles(lambda: [run.ending for run in scene.runs()] == ["declined", "finished"], "the older run to finish")


def test_slack_being_slow_to_say_who_is_in_a_channel_is_no_reason_to_refuse(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene()
    scene.slack.faults.rate_limit("conversations.members", 1)
    scene.ask()
    scene.clock.advance(seconds=6)  # until the inbox is worked off again
    scene.card()
    assert len(scene.runs()) == 1


def test_a_person_who_left_the_channel_can_still_be_asked_about(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    person = scene.workspace.person(ANA)
    assert person is not None
    scene.workspace.put_person(replace(person, deleted=True))
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
