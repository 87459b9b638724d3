"""Everything that arrives is dealt with once, or its sender is told that it did not count."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from bot.clicks import click_of
from bot.sandbox.records import Delivery
from storage import inbox
from storage.database import open_database
from tests.bot.scene import ANA, BEN, CLEO, Scene, everything, has_button, with_label


def test_what_arrives_while_the_database_is_locked_is_acked_and_told_not_to_count(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    view = scene.opened(CLEO, card, "Decline", "Decline")
    before = [run.thread_id for run in scene.runs()]
    with locked(scene):
        command = scene.ask("Sunday, somewhere else")
        click = scene.click(BEN, card, "Approve")
        submission = scene.submit(CLEO, view, reason="too far")
    assert submission is not None
    assert [one.status for one in (command, click, submission)] == ["acked"] * 3
    assert "did not count" in str(command.response)
    scene.told(BEN, "did not count")
    assert "did not count" in str(scene.window(CLEO, "Not counted").blocks)

    scene.bot.sweeper.sweep()
    assert [run.thread_id for run in scene.runs()] == before
    assert scene.clicks() == []
    assert scene.waiting_deliveries() == []
    assert (scene.approval().status, scene.approval().draft_version) == ("pending", 1)

    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_a_command_kept_by_a_process_that_died_is_dealt_with_by_the_next_one(scene: Scene) -> None:
    sent = scene.ask()
    scene.card()
    scene.stop()
    receive(scene, "left behind", "command", {**sent.payload, "text": "Sunday, left behind"})

    scene.bot = scene.start_bot()
    scene.clock.advance(seconds=6)
    scene.settles(lambda: len(scene.runs()) == 2, "the run to be started")
    assert scene.request() == "Sunday, left behind"
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")


def test_a_click_kept_by_a_process_that_died_is_dealt_with_by_the_next_one(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    approve = action_of(card, "Approve")
    scene.stop()
    body = {"user": {"id": BEN}, "actions": [approve], "channel": {"id": card.channel}, "trigger_id": "left"}
    receive(scene, "click:left", "click", click_of(body).to_json())

    scene.bot = scene.start_bot()
    scene.clock.advance(seconds=6)
    scene.ended("finished")
    assert [click.who for click in scene.clicks()] == [BEN]
    assert len(scene.outbox()) == 1


def test_what_slack_delivers_again_after_a_restart_is_not_dealt_with_again(scene: Scene) -> None:
    command = scene.ask()
    click = scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    scene.restart()
    for delivery in (command, click):
        assert again(scene, delivery).status == "acked"
    scene.bot.sweeper.sweep()
    scene.settles(lambda: not scene.waiting_deliveries(), "the inbox to be empty")
    assert len(scene.runs()) == 1
    assert len(scene.clicks()) == 1
    assert len(scene.outbox()) == 1


def test_one_envelope_that_two_bots_receive_counts_once(scene: Scene) -> None:
    scene.start_bot()
    scene.slack.faults.twice("slash_commands", 1)
    scene.ask()
    card = scene.card()
    scene.slack.faults.twice("interactive", 1)
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.runs()) == 1
    assert [click.counted for click in scene.clicks()] == [True]
    assert len(scene.outbox()) == 1


def test_a_click_on_one_bot_and_a_submission_on_the_other_are_one_story(scene: Scene) -> None:
    scene.start_bot()
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    scene.submit(BEN, view, text="Hike Saturday: Heron Flats at 8:00. Bring water.")
    scene.ended("finished")
    assert [text["body"] for text in scene.outbox()] == ["Hike Saturday: Heron Flats at 8:00. Bring water."]


def test_an_undo_that_overtakes_its_approval_is_answered_and_undoes_nothing(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.click(BEN, with_label(card, "Approve", "signoff.undo"), "Approve")
    scene.told(BEN, "nothing to take back")
    scene.click(BEN, card, "Approve")
    scene.ended("finished")


def test_a_decision_that_arrives_after_the_run_was_cancelled_is_answered(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    run_card = next(m for m in scene.messages() if has_button(m.blocks, "Cancel"))
    scene.click(ANA, run_card, "Cancel")
    scene.ended("cancelled")
    scene.click(BEN, card, "Approve")
    scene.told(BEN, "The run ended")
    scene.click(ANA, run_card, "Cancel")
    scene.told(ANA, "ended")


def test_what_cannot_be_done_after_several_attempts_is_given_up_and_told(scene: Scene) -> None:
    sent = scene.ask()
    scene.card()
    payload = {**sent.payload, "command": "/no-such-flow"}
    receive(scene, "hopeless", "command", payload, scene.bot.parts.database)
    for attempt in range(1, 6):
        scene.clock.advance(seconds=60)
        scene.settles(lambda n=attempt: attempts(scene, "hopeless") >= n or not scene.waiting_deliveries(), "a try")
    scene.told(ANA, "could not be done")
    assert scene.waiting_deliveries() == []


def test_six_slow_runs_do_not_keep_a_click_waiting(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.restart(model_seconds=0.5)
    for number in range(6):
        scene.ask(f"Saturday, number {number}")
    delivery = scene.click(BEN, card, "Approve")
    assert delivery.acked_at is not None
    assert delivery.acked_at - delivery.sent_at < 1.0
    scene.said("*Approved* by <@U0BEN0002>")
    assert "did not count" not in "".join(everything(m) for m in scene.messages(viewer=BEN))


@contextmanager
def locked(scene: Scene) -> Iterator[None]:
    """Another connection holds the database's write lock."""
    path = scene.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def receive(scene: Scene, delivery: str, kind: str, payload: Any, database: Any = None) -> None:
    """Keep a delivery as a process does that dies right after its ack."""
    opened = database or open_database(scene.database_url, clock=scene.clock)
    assert opened.write("~inbox", lambda tx: inbox.receive(tx, delivery, kind, payload))
    if database is None:
        opened.close()


def again(scene: Scene, delivery: Delivery) -> Delivery:
    """Deliver the same once more, as Slack does that has not seen the ack."""
    return scene.slack.courier.send(delivery.kind, delivery.payload, delivery.user, delivery.label)


def action_of(card: Any, label: str) -> dict[str, Any]:
    """A card's button as a click reports it."""
    found = [(b, e) for b in card.blocks for e in b.get("elements", []) if str(e.get("text", "")).find(label) > 0]
    block, element = found[0]
    return {"action_id": element["action_id"], "block_id": block["block_id"], "value": element["value"]}


def attempts(scene: Scene, delivery: str) -> int:
    """How often the bot has tried."""
    row = inbox.find(scene.bot.parts.database, delivery)
    return row.attempts if row else 0
