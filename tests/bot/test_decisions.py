"""From a draft in the channel to a text that went out, or did not, by button and window."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bot.scene import ANA, BEN, CLEO, HIKES, Scene, everything, has_button


def test_an_approved_text_goes_out_once_exactly_as_shown(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    shown = scene.approval().draft["text"]
    assert shown in everything(card)

    scene.click(BEN, card, "Approve")

    scene.ended("finished")
    assert [text["body"] for text in scene.outbox()] == [shown]
    assert scene.outbox()[0]["to"] == "+15035550134"
    post = scene.said(shown)
    assert post.channel == HIKES
    settled = scene.said("*Approved* by <@U0BEN0002>")
    assert settled.ts == card.ts
    assert not has_button(settled.blocks, "Approve")
    assert "finished" in scene.said("🏁 *Finished*").text
    assert "Your request" in scene.told(ANA, "Your request").text


def test_whoever_asked_may_not_approve_and_is_told_so(scene: Scene) -> None:
    scene.ask()
    scene.click(ANA, scene.card(), "Approve")
    scene.told(ANA, "somebody else has to approve it")
    assert scene.approval().status == "pending"
    assert scene.outbox() == []


def test_somebody_alone_may_approve_when_the_settings_say_so(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(allow_self_approval=True)
    scene.ask()
    scene.click(ANA, scene.card(), "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_an_edit_is_saved_and_approved_in_one_and_the_edited_text_goes_out(scene: Scene) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    text = "Hike Saturday: Heron Flats at 8:00. Bring water and a rain jacket."

    scene.submit(BEN, view, text=text)

    scene.ended("finished")
    assert [sent["body"] for sent in scene.outbox()] == [text]
    assert scene.approval().draft_version == 2
    changed = scene.said("Changed: Text message")
    assert "draft 2" in everything(changed)
    assert scene.workspace.modals(BEN) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "must not be empty"), ("x" * 300, "299"), ("<!channel> come", "<!channel>")],
)
def test_an_edit_that_the_flow_refuses_is_a_field_error_and_changes_nothing(
    scene: Scene, text: str, sentence: str
) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    delivery = scene.submit(BEN, view, text=text)
    errors = scene.workspace.view(view.id)
    assert errors is not None
    told = " ".join(errors.errors.values()) if delivery is None else str(delivery.response)
    assert errors.errors or "errors" in told
    assert scene.approval().status == "pending"
    assert scene.approval().draft_version == 1
    assert sentence or told


def test_an_edit_saved_for_others_is_a_new_draft_that_voids_the_old_buttons(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    view = scene.opened(ANA, card, "Edit", "Edit draft 1")
    scene.submit(ANA, view, text="Hike Saturday: Heron Flats at 8:00. Bring water.")
    scene.said("draft 2")

    scene.click(BEN, card, "Approve")  # as Ben still saw it
    scene.told(BEN, "newer draft")
    assert scene.outbox() == []

    scene.click(CLEO, scene.card(), "Approve")
    scene.ended("finished")
    assert [sent["body"] for sent in scene.outbox()] == ["Hike Saturday: Heron Flats at 8:00. Bring water."]


def test_declining_needs_a_reason_ends_the_run_and_tells_the_requester(scene: Scene) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Decline", "Decline")
    scene.submit(BEN, view, reason="too far for a Saturday")
    scene.ended("declined")
    assert scene.outbox() == []
    assert "too far for a Saturday" in everything(scene.said("🚫 *Declined*"))
    assert "too far for a Saturday" in everything(scene.told(ANA, "too far"))


def test_requested_changes_go_back_to_the_agent_and_a_new_draft_is_shown(scene: Scene) -> None:
    scene.ask()
    first = scene.card()
    view = scene.opened(BEN, first, "Request changes", "Request changes")
    scene.submit(BEN, view, reason="please start at 9:00 or later")
    second = scene.until(
        lambda: next((m for m in scene.messages() if has_button(m.blocks, "Approve") and m.ts != first.ts), None),
        "a second card",
    )
    scene.click(CLEO, second, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_closing_a_window_is_no_decision(scene: Scene) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    scene.people.close(BEN, view.id)
    assert scene.approval().status == "pending"
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")


def test_the_loser_of_a_race_is_told_who_won_and_one_text_goes_out(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    scene.click(CLEO, card, "Approve")
    scene.told(CLEO, "<@U0BEN0002>")
    scene.click(BEN, card, "Approve")
    scene.told(BEN, "You")
    assert len(scene.outbox()) == 1


def test_a_click_delivered_twice_counts_once(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.slack.faults.twice("interactive", 1)
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_a_question_is_asked_and_the_run_goes_on_with_the_answer(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(model_script="needs_user")
    scene.ask()
    card = scene.said("How far will you drive")
    label = next(e["text"]["text"] for b in card.blocks if b["type"] == "actions" for e in b["elements"])
    if label == "Answer":
        view = scene.opened(ANA, card, "Answer", "Answer")
        scene.submit(ANA, view, answer="45 minutes")
    else:
        scene.click(ANA, card, label)
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_an_approval_can_be_undone_until_it_goes_out(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(undo_seconds=600)
    scene.ask()
    scene.click(BEN, scene.card(), "Approve")
    undo = scene.card("Undo")
    assert scene.outbox() == []
    scene.click(BEN, undo, "Undo")
    again = scene.until(
        lambda: next((m for m in scene.messages() if has_button(m.blocks, "Approve")), None),
        "the card being open again",
    )
    assert "draft 2" in everything(again)
    assert scene.approval().status == "pending"
