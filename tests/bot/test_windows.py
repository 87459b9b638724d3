"""The windows that buttons open: at once, with the right thing in them, and never silently not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.sandbox.records import Message, Timing
from tests.bot.scene import ANA, BEN, CLEO, Scene, button, everything, has_button


def test_a_window_opens_at_once_and_is_filled_afterwards(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.slack.faults.slow("views.update", 0.5)
    scene.click(BEN, card, "Edit")
    loading = scene.until(lambda: scene.workspace.modals(BEN), "the window")[-1]
    assert "One moment" in str(loading.blocks)
    assert scene.window(BEN, "Edit draft 1").id == loading.id


def test_a_window_that_comes_too_late_for_slack_is_asked_for_again(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(timing=Timing(trigger_seconds=0.2))
    scene.ask()
    card = scene.card()
    scene.slack.faults.slow("views.open", 0.4)
    delivery = scene.click(BEN, card, "Edit")
    assert delivery.status == "acked"
    assert delivery.acked_at is not None and delivery.acked_at - delivery.sent_at < 1.0
    scene.told(BEN, "click again")
    assert scene.workspace.modals(BEN) == []

    scene.slack.faults.slow("views.open", 0)
    scene.opened(BEN, card, "Edit", "Edit draft 1")


def test_the_form_of_a_command_that_comes_too_late_is_asked_for_again(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(timing=Timing(trigger_seconds=0.2))
    scene.slack.faults.slow("views.open", 0.4)
    assert scene.ask("").status == "acked"
    scene.told(ANA, "again")


def test_an_error_at_once_takes_no_ack_back(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.slack.faults.fail("views.open", 1)
    delivery = scene.click(BEN, card, "Decline")
    assert (delivery.status, delivery.problem) == ("acked", "")
    scene.told(BEN, "click again")


def test_a_window_that_cannot_be_filled_says_so(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.slack.faults.fail("views.update", 1)
    scene.click(BEN, card, "Edit")
    scene.told(BEN, "click again")


def test_a_window_closed_while_it_loads_is_simply_closed(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.slack.faults.slow("views.update", 0.4)
    scene.click(BEN, card, "Edit")
    loading = scene.until(lambda: scene.workspace.modals(BEN), "the window")[-1]
    scene.people.close(BEN, loading.id)
    scene.slack.faults.slow("views.update", 0)
    scene.opened(BEN, card, "Edit", "Edit draft 1")
    assert [m for m in scene.messages(viewer=BEN) if m.ephemeral_to] == []


@pytest.mark.parametrize("label", ["Edit", "Decline", "Request changes"])
def test_the_window_of_a_decided_draft_says_that_it_is_decided(scene: Scene, label: str) -> None:
    scene.ask()
    card = scene.card()
    scene.click(CLEO, card, "Approve")
    scene.ended("finished")
    view = scene.opened(BEN, card, label, "Not now")
    assert "approved already" in str(view.blocks)


def test_the_window_of_an_older_draft_says_that_there_is_a_newer_one(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    view = scene.opened(ANA, card, "Edit", "Edit draft 1")
    scene.submit(ANA, view, text="Hike Saturday: Heron Flats at 8:00. Bring water.")
    scene.said("draft 2")
    assert "number 2" in str(scene.opened(BEN, card, "Edit", "Not now").blocks)


def test_the_run_log_names_every_step_with_its_tokens(scene: Scene) -> None:
    scene.ask()
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    view = scene.opened(CLEO, scene.said("🏁 *Finished*: "), "Run log", "Run log")
    shown = str(view.blocks)
    for node in ("prepare", "worker", "tools", "evaluate", "write text", "approve", "send"):
        assert node in shown
    assert "tokens" in shown
    assert "simulated model" in shown


def test_everything_can_be_read_from_home_and_approved_there(scene: Scene) -> None:
    scene.ask()
    scene.card()
    scene.people.open_home(BEN)
    home = scene.home(BEN, "Open")
    block, element = button(home.blocks, "Open")
    scene.people.click_in_view(BEN, home.id, block, element["action_id"])
    view = scene.window(BEN, "Text to the hiking group")
    assert scene.approval().draft["text"] in str(view.blocks)
    assert "Trailhead" in str(view.blocks)
    scene.submit(BEN, view)
    scene.ended("finished")


def test_whoever_asked_can_read_it_all_but_not_approve_it(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    shown = Message(card.ts, card.channel, card.user, card.text, blocks=(*card.blocks, read_button(scene)))
    view = scene.opened(ANA, shown, "Read it all", "Text to the hiking group")
    assert not view.view.get("submit")
    assert not has_button(view.blocks, "Approve")
    assert "draft 1" in everything(card)


def read_button(scene: Scene) -> dict[str, object]:
    """The button of drafts that do not fit their card."""
    asked = scene.approval()
    label = {"type": "plain_text", "text": "Read it all"}
    press = {"type": "button", "action_id": "signoff.read", "value": f"{asked.id}:1", "text": label}
    return {"type": "actions", "block_id": "read", "elements": [press]}
