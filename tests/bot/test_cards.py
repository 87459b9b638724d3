"""Slack's messages are kept equal to the database, whatever Slack refuses, forgets or loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from bot.sandbox.records import Message
from storage import board
from tests.bot.scene import ANA, BEN, CLEO, HIKES, Scene, everything, has_button

TOKENS = "<!channel> <!here> <@U0CLEO003> <!subteam^S123> <http://evil.example|Approve> Saturday"


def test_a_run_has_one_message_from_its_first_step_to_its_end(scene: Scene) -> None:
    scene.ask()
    begun = scene.until(lambda: run_messages(scene), "the run's message")[0]
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    done = scene.until(lambda: [m for m in run_messages(scene) if "Finished" in everything(m)], "its end on it")
    assert [message.ts for message in run_messages(scene)] == [begun.ts]
    assert "✓ approve" in everything(done[0])
    assert "simulated model" in everything(done[0])
    assert not has_button(done[0].blocks, "Cancel")
    assert done[0].edited is None


def test_a_card_that_was_deleted_is_posted_again_and_decides(scene: Scene) -> None:
    scene.ask()
    lost = scene.card()
    scene.slack.faults.delete_message(lost.channel, lost.ts)
    scene.clock.advance(minutes=11)  # until the next look at what stands in Slack
    again = scene.card()
    assert again.ts != lost.ts
    scene.click(BEN, again, "Approve")
    scene.ended("finished")
    assert len([m for m in scene.messages() if "draft 1" in everything(m)]) == 1


def test_a_card_that_still_stands_is_not_posted_again(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.clock.advance(minutes=11)
    scene.bot.sweeper.sweep()
    scene.bot.cards.draw_stale()
    assert [m.ts for m in scene.messages() if has_button(m.blocks, "Approve")] == [card.ts]


@pytest.mark.parametrize("trouble", ["archive", "remove_bot"])
def test_a_channel_out_of_reach_is_no_dead_end(scene: Scene, trouble: str) -> None:
    scene.ask()
    card = scene.card()
    getattr(scene.slack.faults, trouble)(HIKES)
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    scene.told(ANA, "Your request")
    direct = scene.people.direct_message(ANA).id
    scene.said("did not go out", direct)
    assert len(scene.outbox()) == 1


def test_what_cannot_be_posted_in_its_channel_comes_as_a_direct_message(scene: Scene) -> None:
    scene.slack.faults.archive(HIKES)
    scene.ask()
    direct = scene.people.direct_message(ANA).id
    card = scene.card(channel=direct)
    scene.click(ANA, card, "Approve")
    scene.until(lambda: "somebody else has to approve it" in str(scene.messages(direct, ANA)), "the rule being told")
    assert scene.approval().status == "pending"


def test_a_post_whose_answer_was_lost_is_not_posted_twice(scene: Scene) -> None:
    scene.slack.faults.drop("chat.postMessage", 2)
    scene.ask()
    scene.settles(lambda: scene.slack.faults.counts().get("dropped", 0) == 2, "answers being lost")
    scene.settles(lambda: len([card for card in cards(scene) if card.failures]) == 2, "both being noted")
    scene.clock.advance(seconds=30)
    scene.settles(lambda: all_drawn(scene), "all cards being drawn")
    card = scene.card()
    assert len(run_messages(scene)) == 1
    assert [m.ts for m in scene.messages() if has_button(m.blocks, "Approve")] == [card.ts]
    scene.click(BEN, card, "Approve")
    scene.ended("finished")


def test_a_post_to_the_channel_whose_answer_was_lost_is_found_and_not_made_again(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.settles(lambda: all_drawn(scene), "everything drawn")
    scene.slack.faults.drop("chat.postMessage", 1)
    scene.click(BEN, card, "Approve")
    scene.settles(lambda: scene.slack.faults.counts().get("dropped"), "the answer being lost")
    scene.clock.advance(seconds=160)  # beyond the time in which the request might still arrive
    scene.ended("finished")
    text = scene.outbox()[0]["body"]
    assert [m.text for m in scene.messages() if m.text == text] == [text]
    assert "✓ Post to" in everything(scene.said("🏁 *Finished*: "))


def test_a_rate_limit_is_waited_out_as_long_as_slack_asked(scene: Scene) -> None:
    scene.slack.faults.rate_limit("chat.postMessage", 1, retry_after=45)
    scene.ask()
    waits = scene.settles(lambda: [card for card in cards(scene) if card.not_before], "a card that waits")
    ahead = (waits[0].not_before - scene.clock.now()).total_seconds()
    assert 40 < ahead <= 45
    assert waits[0].note == "ratelimited"
    scene.clock.advance(seconds=46)
    scene.settles(lambda: all_drawn(scene) and len(cards(scene)) >= 2, "both cards")


def test_a_server_error_is_tried_again(scene: Scene) -> None:
    scene.slack.faults.fail("chat.postMessage", 2)
    scene.ask()
    scene.settles(lambda: scene.slack.faults.counts().get("server_error", 0) == 2, "two errors")
    scene.clock.advance(seconds=30)
    scene.card()
    scene.settles(lambda: all_drawn(scene), "all cards")
    assert len(run_messages(scene)) == 1


def test_a_redraw_that_slack_refused_is_made_up_for(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.settles(lambda: all_drawn(scene), "everything drawn")
    scene.slack.faults.rate_limit("chat.update", 20, retry_after=20)
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    scene.settles(lambda: scene.slack.faults.counts().get("ratelimited"), "a refused redraw")
    scene.slack.faults.clear()
    scene.clock.advance(seconds=100)
    settled = scene.said("*Approved* by <@U0BEN0002>")
    assert (settled.ts, has_button(settled.blocks, "Approve")) == (card.ts, False)


def test_nothing_that_a_person_wrote_pings_or_links(scene: Scene) -> None:
    scene.ask("")
    view = scene.window(ANA, "Plan hike")
    scene.submit(ANA, view, request=TOKENS)
    declined = scene.opened(BEN, scene.card(), "Decline", "Decline")
    scene.submit(BEN, declined, reason=TOKENS)
    scene.ended("declined")
    scene.told(ANA, "Your request")
    scene.said("Reason: &lt;!channel&gt;")
    shown = [*scene.messages(), *scene.messages(scene.people.direct_message(ANA).id)]
    alive = [text for message in shown for text in read_by_slack(message)]
    for token in ("<!channel>", "<!here>", "<@U0CLEO003>", "<!subteam", "<http://evil"):
        assert [text for text in alive if token in text and "may decide" not in text] == []


def test_a_run_that_gives_up_says_so_to_the_channel_and_to_whoever_asked(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(model_script="never_done")
    scene.ask()
    scene.ended("gave_up")
    assert "Nothing went out" in everything(scene.said("🤷 *Gave up*: "))
    assert "gave up" in scene.told(ANA, "Your request").text


def test_a_run_that_fails_says_why_and_that_nothing_went_out(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(model_faults="bad_json,bad_json,bad_json,bad_json")
    scene.ask()
    failed = scene.said("❌ *Failed*")
    assert "could not be read" in everything(failed) or "Nonsense" in everything(failed), everything(failed)
    scene.told(ANA, "failed")
    assert scene.outbox() == []


def test_a_cancelled_run_says_who_cancelled_it_and_takes_its_buttons_away(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.click(BEN, scene.until(lambda: run_messages(scene), "the run's message")[0], "Cancel")
    scene.ended("cancelled")
    closed = scene.said("⏹️ *Cancelled* by <@U0BEN0002>")
    assert (closed.ts, has_button(closed.blocks, "Approve")) == (card.ts, False)
    notice = scene.told(ANA, "Your request")
    assert "Cancelled" in everything(notice)
    assert f"by <@{BEN}>" in everything(notice)

    scene.click(CLEO, card, "Approve")
    scene.told(CLEO, "The run ended")
    assert scene.outbox() == []


def test_somebody_outside_the_channel_cannot_cancel(scene: Scene) -> None:
    scene.workspace.leave(HIKES, CLEO)
    scene.ask()
    scene.card()
    scene.click(CLEO, run_messages(scene)[0], "Cancel")
    scene.told(CLEO, "Only members of the run's channel")
    assert scene.run().ending == ""


def run_messages(scene: Scene, channel: str = HIKES) -> list[Message]:
    """The messages that show how far runs are."""
    return [m for m in scene.messages(channel) if m.blocks and str(m.blocks[0].get("block_id", "")).startswith("run/")]


def cards(scene: Scene) -> list[Any]:
    """What the database knows of cards."""
    database, run = scene.bot.parts.database, scene.run()
    ids = [("run", run.thread_id), ("ending", run.thread_id), ("told", run.thread_id)]
    ids += [("approval", scene.approval().id)] if scene.approvals() else []
    found = [board.find(database, scope, subject) for scope, subject in ids]  # type: ignore[arg-type]
    return [card for card in found if card is not None]


def all_drawn(scene: Scene) -> bool:
    """Whether every card that there is stands in Slack."""
    found = cards(scene)
    return len(found) >= 2 and all(card.ts for card in found)


def read_by_slack(message: Message) -> Iterable[str]:
    """The texts of a message in which Slack looks for mentions and links."""
    yield message.text
    yield from _mrkdwn(message.blocks)


def _mrkdwn(part: Any) -> Iterable[str]:
    if isinstance(part, dict):
        if part.get("type") == "mrkdwn":
            yield part["text"]
        for value in part.values():
            yield from _mrkdwn(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from _mrkdwn(item)
