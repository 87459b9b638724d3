"""What happens while people think: reminders, expiry, and runs that wake, in any number of processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from bot.sandbox.records import Message
from tests.bot.scene import ANA, BEN, CLEO, HIKES, Scene, everything, has_button


def test_an_open_card_is_brought_to_mind_in_time_twice_and_no_more(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.clock.advance(hours=3, minutes=59)
    scene.bot.sweeper.sweep()
    assert reminders(scene) == []

    scene.clock.advance(minutes=2)
    first = scene.said("Still waiting for you")
    assert f"<@{BEN}> and <@{CLEO}>" in everything(first)
    assert f"<@{ANA}>: " not in everything(first)
    assert card.ts.replace(".", "") in everything(first)

    scene.clock.advance(hours=4)
    scene.until(lambda: len(reminders(scene)) == 2, "the second reminder")
    scene.clock.advance(hours=40)
    scene.bot.sweeper.sweep()
    assert len(reminders(scene)) == 2
    scene.click(BEN, card, "Approve")
    scene.ended("finished")


def test_nobody_is_reminded_of_what_is_decided(scene: Scene) -> None:
    scene.ask()
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    scene.clock.advance(hours=9)
    scene.bot.sweeper.sweep()
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")
    assert reminders(scene) == []


def test_a_reminder_that_fell_due_while_no_bot_ran_is_sent_by_the_next_one(scene: Scene) -> None:
    scene.ask()
    scene.card()
    scene.stop()
    scene.clock.advance(hours=5)
    scene.bot = scene.start_bot()
    scene.said("Still waiting for you")


def test_two_bots_on_one_database_remind_once(scene: Scene) -> None:
    scene.ask()
    scene.card()
    other = scene.start_bot()
    scene.clock.advance(hours=4, minutes=1)
    scene.said("Still waiting for you")
    for bot in (scene.bot, other):
        bot.sweeper.sweep()
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")
    assert len(reminders(scene)) == 1


def test_a_reminder_that_slack_refused_is_sent_later_and_once(scene: Scene) -> None:
    scene.ask()
    scene.card()
    scene.slack.faults.fail("chat.postMessage", 1)
    scene.clock.advance(hours=4, minutes=1)
    scene.settles(lambda: scene.slack.faults.counts().get("server_error"), "the refusal")
    scene.clock.advance(seconds=6)
    scene.said("Still waiting for you")
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")
    assert len(reminders(scene)) == 1


def test_a_card_that_nobody_decides_in_time_expires_which_is_no_decline(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(expires_after=timedelta(hours=1))
    scene.ask()
    card = scene.card()
    scene.clock.advance(hours=1, minutes=1)
    scene.ended("expired")
    closed = scene.said("⌛ *Expired*: nobody decided in time")
    assert (closed.ts, has_button(closed.blocks, "Approve")) == (card.ts, False)
    notice = everything(scene.told(ANA, "Your request"))
    assert "Expired" in notice
    assert "eclined" not in notice
    assert scene.clicks() == []

    scene.click(BEN, card, "Approve")
    scene.told(BEN, "This expired")
    assert scene.outbox() == []


def test_a_click_after_the_deadline_is_too_late_even_before_a_sweep(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(expires_after=timedelta(hours=1), sweep_seconds=3600)
    scene.ask()
    card = scene.card()
    scene.clock.advance(hours=1, minutes=1)
    scene.click(BEN, card, "Approve")
    scene.told(BEN, "This expired")
    assert scene.approval().status == "pending"
    scene.bot.sweeper.sweep()
    scene.ended("expired")
    assert scene.outbox() == []


def test_a_run_sleeps_while_the_model_is_busy_and_wakes_by_itself(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(model_faults="429:90")
    scene.ask()
    sleeping = scene.said("💤 *Sleeping*")
    assert "until" in everything(sleeping)
    scene.clock.advance(seconds=95)
    scene.card()
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")


def test_a_sleeping_run_is_woken_by_another_process(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(model_faults="429:90")
    scene.ask()
    scene.said("💤 *Sleeping*")
    scene.stop()
    scene.clock.advance(seconds=95)
    scene.bot = scene.start_bot(model_faults="")
    scene.card()


def reminders(scene: Scene) -> list[Message]:
    """The reminders in the channel."""
    return [message for message in scene.messages(HIKES) if "Still waiting for you" in everything(message)]
