"""The whole flow over signed requests against emulate's Slack, which grants the manifest's scopes and no others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import runs
from tests.bot.scene import has_button
from tests.outside.hikers import Hikers, Workspace, everything

pytestmark = pytest.mark.peer

REQUEST = "Find a dry morning hike for Saturday and text the group the plan"
TEXT = "Hike Saturday: Heron Flats at 8:00. Bring water and a rain jacket."


@pytest.fixture(scope="module")
def workspace(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """emulate, for all tests of this file."""
    workspace = Workspace(packages, tmp_path_factory.mktemp("emulate"))
    yield workspace
    workspace.close()


@pytest.fixture
def new_hikers(workspace: Workspace, tmp_path: Path) -> Iterator[Callable[..., Hikers]]:
    """A club with a bot and a channel of its own; afterwards it must have missed no scope in anything it called."""
    made: list[Hikers] = []

    def make(**settings: Any) -> Hikers:
        made.append(Hikers(workspace, tmp_path, **settings))
        return made[-1]

    yield make
    for hikers in made:
        hikers.stop()
    assert "missing_scope" not in {answer.get("error") for _, answer in workspace.client.answers}


@pytest.fixture
def hikers(new_hikers: Callable[..., Hikers]) -> Hikers:
    return new_hikers()


def bodies(hikers: Hikers) -> list[str]:
    """The texts that went out."""
    return [str(sent["body"]) for sent in hikers.outbox()]


def posts(hikers: Hikers) -> list[str]:
    """What was posted as an effect, told by its metadata."""
    marked = [m for m in hikers.history() if m.get("metadata", {}).get("event_type") == "signoff_effect"]
    return [str(message["text"]) for message in marked]


def started(hikers: Hikers) -> int:
    return len(runs.recent(hikers.bot.parts.database, 10))


# ---- the flow -------------------------------------------------------------------------------------------------------


def test_a_draft_is_edited_approved_and_sent_and_emulate_has_recorded_all_of_it(hikers: Hikers) -> None:
    acked = hikers.command("ana", REQUEST)
    assert (acked.status, acked.body) == (200, "")
    card = hikers.card()
    assert card["user"] == "U0SIGNOFF"
    assert REQUEST in everything(card)
    assert [m["text"] for m in hikers.history() if has_button(m["blocks"], "Cancel")] != []
    assert (bodies(hikers), posts(hikers)) == ([], [])

    acked = hikers.click("ben", card, "Edit")
    assert (acked.status, acked.body) == (200, "")
    view = hikers.window("Edit draft 1")
    assert view["submit"]["text"] == "Submit"
    acked = hikers.submit("ben", view, Text=TEXT)
    assert (acked.status, acked.json) == (200, {"response_action": "clear"})

    hikers.said("The post to the channel went out")
    assert (bodies(hikers), posts(hikers)) == ([TEXT], [TEXT])
    settled = next(m for m in hikers.history() if m["ts"] == card["ts"])
    assert "Changed: Text message" in everything(settled)
    assert not has_button(settled["blocks"], "Approve")


def test_an_approved_draft_goes_out_exactly_as_the_card_showed_it(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    card = hikers.card()
    hikers.click("ben", card, "Approve")
    hikers.said("🏁 *Finished*")
    (text,) = bodies(hikers)
    assert text in everything(card)
    assert posts(hikers) == [text]
    assert f"*Approved* by <@{hikers.workspace.ids['ben']}>" in everything(
        next(m for m in hikers.history() if m["ts"] == card["ts"])
    )


def test_whoever_asked_is_told_the_end_in_a_direct_message(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    hikers.click("ben", hikers.card(), "Approve")
    opened = hikers.until(lambda: hikers.client.answered("conversations.open"), "a direct message")[0]
    told = hikers.said("Your request", channel=opened["channel"]["id"])
    assert "went out" in everything(told)


def test_whoever_asked_may_not_approve_and_emulate_has_told_them_so_privately(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    assert hikers.click("ana", hikers.card(), "Approve").status == 200
    page = hikers.whispered("somebody else has to approve it")
    assert "ephemeral" in page
    assert bodies(hikers) == []


def test_a_declined_draft_does_not_go_out_and_its_reason_is_told(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    hikers.click("ben", hikers.card(), "Decline")
    acked = hikers.submit("ben", hikers.window("Decline"), Reason="too far for a Saturday")
    assert acked.json["response_action"] == "clear"
    assert "too far for a Saturday" in everything(hikers.said("🚫 *Declined*"))
    assert (bodies(hikers), posts(hikers)) == ([], [])


def test_an_edit_that_cannot_go_out_is_answered_with_an_error_at_its_field(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    hikers.click("ben", hikers.card(), "Edit")
    view = hikers.window("Edit draft 1")
    acked = hikers.submit("ben", view, Text="x" * 300)
    assert acked.json["response_action"] == "errors"
    assert set(acked.json["errors"]) == {view["blocks"][1]["block_id"]}
    assert bodies(hikers) == []


def test_the_home_tab_is_published_with_what_waits_for_the_person(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    hikers.card()
    assert hikers.opens_home("ben").status == 200
    hikers.until(lambda: any(answer["ok"] for answer in hikers.client.answered("views.publish")), "the Home tab")
    assert "Text to the hiking group" in hikers.workspace.page("views", hikers.channel)


# ---- what goes wrong between Slack and the bot ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": str(int(time.time()) - 301)},
    ],
    ids=["another signature", "no signature", "five minutes old"],
)
def test_a_request_that_slack_did_not_sign_starts_nothing(hikers: Hikers, headers: dict[str, str]) -> None:
    assert hikers.send(hikers.typed("ana", REQUEST), **headers).status == 401
    assert started(hikers) == 0
    assert hikers.history() == []


def test_a_command_and_a_click_that_arrive_again_count_once(hikers: Hikers) -> None:
    """Slack sends a request again when the answer came late; the body is the same."""
    again = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    typed = hikers.typed("ana", REQUEST)
    assert [hikers.send(typed).status, hikers.send(typed, **again).status] == [200, 200]
    clicked = hikers.clicked("ben", hikers.card(), "Approve")
    assert [hikers.send(clicked).status, hikers.send(clicked, **again).status] == [200, 200]
    hikers.said("🏁 *Finished*")
    assert started(hikers) == 1
    assert len(bodies(hikers)) == 1
    assert len(posts(hikers)) == 1


def test_a_window_that_slack_does_not_let_us_open_is_told_and_the_click_acked_all_the_same(hikers: Hikers) -> None:
    """emulate refuses the trigger at once: an exception so soon after the ack would take the ack back."""
    hikers.command("ana", REQUEST)
    card = hikers.card()
    used = hikers.workspace.trigger("ben")
    hikers.click("ben", card, "Edit", used)
    hikers.window("Edit draft 1")
    for trigger in (used, "1.2.nothing"):
        assert hikers.click("ben", card, "Edit", trigger).status == 200

    def refused() -> bool:
        errors = {answer.get("error") for answer in hikers.client.answered("views.open")}
        return {"exchanged_trigger_id", "invalid_trigger_id"} <= errors

    hikers.until(refused, "both refusals")
    hikers.whispered("Slack gave up before the window could open")


def test_a_stale_button_is_refused_and_the_newer_draft_is_named(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    card = hikers.card()
    hikers.click("ana", card, "Edit")
    hikers.submit("ana", hikers.window("Edit draft 1"), Text=TEXT)
    hikers.said("draft 2")
    hikers.click("ben", card, "Approve")
    hikers.whispered("newer draft")
    assert bodies(hikers) == []
    hikers.click("ben", hikers.card(), "Approve")
    hikers.said("🏁 *Finished*")
    assert bodies(hikers) == [TEXT]


def test_a_bot_that_was_stopped_in_between_goes_on_with_the_card_it_left(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST)
    card = hikers.card()
    hikers.stop()
    hikers.start()
    hikers.click("ben", card, "Approve")
    hikers.said("🏁 *Finished*")
    assert len(bodies(hikers)) == 1
    assert len([m for m in hikers.history() if "Text to the hiking group" in everything(m)]) == 1


def test_a_channel_the_bot_is_not_in_is_told_how_to_invite_it(hikers: Hikers) -> None:
    hikers.command("ana", REQUEST, channel="secret")
    hikers.until(lambda: hikers.client.answered("conversations.open"), "a direct message")
    (opened, *_) = hikers.client.answered("conversations.open")
    assert "/invite @Signoff" in everything(hikers.said("Nothing was started", channel=opened["channel"]["id"]))
    assert started(hikers) == 0
