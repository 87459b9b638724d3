"""Each fault happens when it is asked for, as often as it is asked for, and is logged."""

from __future__ import annotations

import http.client
import threading

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.sandbox.server import StandIn

HIKES = "C0HIKES01"


def test_a_rate_limited_call_is_answered_with_429_and_when_to_try_again(stand_in: StandIn, client: WebClient) -> None:
    stand_in.faults.rate_limit("chat.postMessage", times=1, retry_after=7)
    assert client.auth_test()["ok"]
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel=HIKES, text="x")
    assert (caught.value.response.status_code, caught.value.response["error"]) == (429, "ratelimited")
    assert caught.value.response.headers["Retry-After"] == "7"
    assert client.chat_postMessage(channel=HIKES, text="x")["ok"]
    assert stand_in.faults.counts() == {"ratelimited": 1}


def test_a_dropped_post_is_there_although_the_caller_heard_nothing(stand_in: StandIn, client: WebClient) -> None:
    stand_in.faults.drop("chat.postMessage")
    with pytest.raises((http.client.HTTPException, OSError)):
        client.chat_postMessage(channel=HIKES, text="taken")
    assert [one.text for one in stand_in.workspace.messages(HIKES)] == ["taken"]


def test_a_failed_call_does_nothing(stand_in: StandIn, client: WebClient) -> None:
    stand_in.faults.fail("chat.postMessage")
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel=HIKES, text="x")
    assert caught.value.response.status_code == 500
    assert stand_in.workspace.messages(HIKES) == []


def test_a_slow_call_waits_and_is_let_go_when_the_stand_in_stops(client: WebClient, stand_in: StandIn) -> None:
    stand_in.faults.slow("auth.test", seconds=600)
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(bool(client.auth_test()["ok"])))
    asking.start()
    assert stand_in.workspace.wait(lambda: stand_in.faults.counts() == {"slow": 1})
    assert answers == []
    stand_in.faults.close()
    asking.join()
    assert answers == [True]


def test_a_deleted_card_an_archived_channel_and_a_removed_bot_are_as_slack_tells_them(
    stand_in: StandIn, client: WebClient
) -> None:
    ts = client.chat_postMessage(channel=HIKES, text="card")["ts"]
    assert stand_in.faults.delete_message(HIKES, ts)
    with pytest.raises(SlackApiError, match="message_not_found"):
        client.chat_update(channel=HIKES, ts=ts, text="x")
    stand_in.faults.archive(HIKES)
    with pytest.raises(SlackApiError, match="is_archived"):
        client.chat_postMessage(channel=HIKES, text="x")
    stand_in.faults.archive(HIKES, archived=False)
    stand_in.faults.remove_bot("C0OPS0001")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        client.chat_postMessage(channel="C0OPS0001", text="x")
    assert list(stand_in.faults.counts()) == ["message_deleted", "archived", "unarchived", "bot_removed"]


def test_switches_are_shown_and_can_be_turned_off(stand_in: StandIn, client: WebClient) -> None:
    stand_in.faults.rate_limit("*", 2)
    stand_in.faults.twice("interactive")
    stand_in.faults.slow("*", 0.5)
    assert stand_in.faults.armed() == {"ratelimited *": 2, "twice interactive": 1, "slow *": 0.5}
    stand_in.faults.clear()
    assert stand_in.faults.armed() == {}
    assert client.auth_test()["ok"]
