"""From a draft in the channel to a text that went out, or did not, by button and window."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.sandbox.records import TEAM_ID, Message, Person
from storage.database import open_database
from storage.decisions import decide
from storage.refusals import Actor
from tests.bot.scene import ANA, BEN, CLEO, HIKES, Scene, everything, has_button, with_value


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
    [("", "required field"), ("x" * 300, "299"), ("<!channel> come", "<!channel>")],
)
def test_an_edit_that_the_flow_refuses_is_a_field_error_and_changes_nothing(
    scene: Scene, text: str, sentence: str
) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    scene.submit(BEN, view, text=text)
    shown = scene.workspace.view(view.id)
    assert shown is not None
    assert sentence in " ".join(shown.errors.values())
    assert scene.approval().status == "pending"
    assert scene.approval().draft_version == 1


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


def test_ten_clicks_of_three_people_at_once_are_one_decision_and_nobody_is_left_without_a_word(scene: Scene) -> None:
    scene.workspace.put_person(Person("U0DANA004", "dana", "Dana Iyer"))
    scene.people.join("U0DANA004", HIKES)
    scene.ask()
    card = scene.card()
    people = [BEN, CLEO, "U0DANA004"]
    with ThreadPoolExecutor(10) as crowd:
        deliveries = list(crowd.map(lambda n: scene.click(people[n % 3], card, "Approve"), range(10)))
    scene.ended("finished")

    assert {delivery.status for delivery in deliveries} == {"acked"}
    assert len(scene.outbox()) == 1
    scene.until(lambda: sum(len(told_alone(scene, who)) for who in people) == 9, "nine of them being told")
    winner = next(click.who for click in scene.clicks() if click.counted)
    for who in people:
        words = "You have already" if who == winner else f"<@{winner}>"
        assert all(words in everything(message) for message in told_alone(scene, who))
    assert [click.counted for click in scene.clicks()].count(True) == 1
    assert len(scene.clicks()) == 10


def test_a_guest_and_a_bot_are_refused_and_told_why(scene: Scene) -> None:
    scene.workspace.put_person(Person("U0GUEST05", "gil", "Gil Haddad", is_restricted=True))
    scene.workspace.put_person(Person("U0ROBOT06", "robot", "Robot", is_bot=True))
    for who in ("U0GUEST05", "U0ROBOT06"):
        scene.people.join(who, HIKES)
    scene.ask()
    card = scene.card()
    scene.click("U0GUEST05", card, "Approve")
    scene.told("U0GUEST05", "Guests do not decide")
    scene.click("U0ROBOT06", card, "Approve")
    scene.until(lambda: "Only people decide" in str(scene.messages(HIKES, "U0ROBOT06")), "the bot being told")
    assert [click.refusal for click in scene.clicks()] == ["guest", "bot"]
    assert scene.approval().status == "pending"


def test_somebody_outside_the_channel_is_refused_until_they_join(scene: Scene) -> None:
    scene.workspace.leave(HIKES, CLEO)
    scene.ask()
    card = scene.card()
    scene.click(CLEO, card, "Approve")
    scene.told(CLEO, "Only members of the channel decide")
    assert scene.approval().status == "pending"

    scene.people.join(CLEO, HIKES)
    scene.click(CLEO, card, "Approve")
    scene.ended("finished")


@pytest.mark.parametrize("value", ["nonsense", "no-such-approval:1", "x:1:2:3", "'; DROP TABLE approvals; --:1"])
def test_a_button_that_none_of_our_cards_has_changes_nothing_and_is_answered(scene: Scene, value: str) -> None:
    scene.ask()
    card = scene.card()
    scene.click(BEN, with_value(card, "Approve", value), "Approve")
    scene.until(lambda: told_alone(scene, BEN), "Ben being told")
    assert scene.approval().status == "pending"
    assert scene.outbox() == []


def test_a_click_on_a_card_from_before_a_restart_counts(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.restart()
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_a_decision_that_nobody_acted_upon_is_acted_upon_by_the_next_process(scene: Scene) -> None:
    scene.ask()
    scene.card()
    asked = scene.approval()
    scene.stop()
    database = open_database(scene.database_url, clock=scene.clock)
    outcome = decide(database, asked.id, actor=Actor(BEN, TEAM_ID), verdict="approve", version=1)
    database.close()
    assert outcome.result == "settled"

    scene.bot = scene.start_bot()
    scene.ended("finished")
    settled = scene.said("*Approved* by <@U0BEN0002>")
    assert not has_button(settled.blocks, "Approve")
    assert len(scene.outbox()) == 1


def test_a_decision_made_elsewhere_takes_the_buttons_off_the_card(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    decide(scene.bot.parts.database, scene.approval().id, actor=Actor(CLEO, TEAM_ID), verdict="decline", version=1)
    settled = scene.said("*Declined* by <@U0CLEO003>")
    assert settled.ts == card.ts
    assert not has_button(settled.blocks, "Approve")


def test_slack_not_saying_who_somebody_is_delays_a_click_but_never_refuses_it(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.bot.parts.people.forget()  # type: ignore[attr-defined]
    scene.slack.faults.rate_limit("users.info", 1)
    scene.click(BEN, card, "Approve")
    scene.settles(lambda: scene.slack.faults.counts().get("ratelimited"), "Slack being asked")
    scene.clock.advance(seconds=6)
    scene.ended("finished")
    assert [click.refusal for click in scene.clicks()] == [""]


def test_a_submission_that_cannot_be_checked_now_is_not_lost_silently(scene: Scene) -> None:
    scene.ask()
    view = scene.opened(BEN, scene.card(), "Decline", "Decline")
    scene.bot.parts.people.forget()  # type: ignore[attr-defined]
    scene.slack.faults.rate_limit("*", 9)
    delivery = scene.submit(BEN, view, reason="too far")
    scene.slack.faults.clear()
    assert delivery is not None and delivery.status == "acked"
    assert "did not count" in str(scene.window(BEN, "Not counted").blocks)
    assert scene.approval().status == "pending"


def test_whoever_submits_too_late_is_told_in_the_window_who_was_faster(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    view = scene.opened(BEN, card, "Decline", "Decline")
    scene.click(CLEO, card, "Approve")
    scene.ended("finished")
    scene.submit(BEN, view, reason="too far")
    assert "<@U0CLEO003>" in str(scene.window(BEN, "Not counted").blocks)
    assert len(scene.outbox()) == 1


def test_an_edit_without_a_change_approves_the_draft_as_it_is(scene: Scene) -> None:
    scene.ask()
    shown = scene.approval
    view = scene.opened(BEN, scene.card(), "Edit", "Edit draft 1")
    scene.submit(BEN, view)
    scene.ended("finished")
    assert shown().draft_version == 1
    assert [sent["body"] for sent in scene.outbox()] == [shown().draft["text"]]


def test_undo_comes_too_late_once_it_went_out(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(undo_seconds=60)
    scene.ask()
    scene.click(BEN, scene.card(), "Approve")
    undo = scene.card("Undo")
    scene.clock.advance(seconds=61)
    scene.ended("finished")
    scene.click(BEN, undo, "Undo")
    scene.told(BEN, "too late")
    assert len(scene.outbox()) == 1


def told_alone(scene: Scene, who: str) -> list[Message]:
    """What only this person sees in the channel."""
    return [message for message in scene.messages(HIKES, who) if message.ephemeral_to == who]
