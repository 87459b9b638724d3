"""What the Web API takes and what it refuses, asked by Slack's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.sandbox.records import BOT_USER, Person
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, StandIn

ANA, CLEO = "U0ANA0001", "U0CLEO003"
GENERAL, HIKES, OPS = "C0GENERAL", "C0HIKES01", "C0OPS0001"
MODAL = {"type": "modal", "title": {"type": "plain_text", "text": "Edit"}, "blocks": [{"type": "divider"}]}
Call = Callable[[WebClient, StandIn], Any]


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def refusal(call: Callable[[], Any]) -> str:
    """Slack's code for why a call was refused."""
    with pytest.raises(SlackApiError) as caught:
        call()
    return str(caught.value.response["error"])


def archived(stand_in: StandIn) -> str:
    stand_in.faults.archive(GENERAL)
    return GENERAL


def left(stand_in: StandIn, channel: str) -> str:
    stand_in.faults.remove_bot(channel)
    return channel


def of_ana(stand_in: StandIn) -> str:
    return stand_in.workspace.post(HIKES, ANA, "Mine").ts


def private(client: WebClient) -> str:
    return str(client.chat_postEphemeral(channel=HIKES, user=ANA, text="psst")["message_ts"])


REFUSED: list[tuple[str, Call]] = [
    ("channel_not_found", lambda client, _: client.chat_postMessage(channel="C0NOWHERE", text="x")),
    ("channel_not_found", lambda client, on: client.chat_postMessage(channel=left(on, OPS), text="x")),
    ("is_archived", lambda client, on: client.chat_postMessage(channel=archived(on), text="x")),
    ("no_text", lambda client, _: client.api_call("chat.postMessage", json={"channel": HIKES})),
    ("invalid_arguments", lambda client, _: client.api_call("chat.postMessage", json={"text": "x"})),
    (
        "invalid_blocks_format",
        lambda client, _: client.api_call("chat.postMessage", data={"channel": HIKES, "blocks": "["}),
    ),
    (
        "invalid_blocks",
        lambda client, _: client.chat_postMessage(channel=HIKES, text="x", blocks=[section("x" * 3001)]),
    ),
    ("invalid_blocks", lambda client, _: client.chat_postMessage(channel=HIKES, text="x", blocks=[section("x")] * 51)),
    (
        "msg_blocks_too_long",
        lambda client, _: client.chat_postMessage(channel=HIKES, text="x", blocks=[section("x" * 2401)] * 5),
    ),
    ("invalid_metadata_format", lambda client, _: client.chat_postMessage(channel=HIKES, text="x", metadata={"a": 1})),
    ("markdown_text_conflict", lambda client, _: client.chat_postMessage(channel=HIKES, text="x", markdown_text="y")),
    ("msg_too_long", lambda client, on: client.chat_update(channel=HIKES, ts=of_ana(on), text="x" * 4001)),
    ("cant_update_message", lambda client, on: client.chat_update(channel=HIKES, ts=of_ana(on), text="x")),
    ("message_not_found", lambda client, _: client.chat_update(channel=HIKES, ts="1.000001", text="x")),
    ("message_not_found", lambda client, _: client.chat_update(channel=HIKES, ts=private(client), text="x")),
    ("channel_not_found", lambda client, _: client.chat_update(channel=ANA, ts="1.000001", text="x")),
    ("is_inactive", lambda client, on: client.chat_update(channel=archived(on), ts="1.000001", text="x")),
    ("cant_delete_message", lambda client, on: client.chat_delete(channel=HIKES, ts=of_ana(on))),
    ("user_not_in_channel", lambda client, _: client.chat_postEphemeral(channel=OPS, user=CLEO, text="x")),
    ("message_not_found", lambda client, _: client.chat_getPermalink(channel=HIKES, message_ts="1.000001")),
    ("already_reacted", lambda client, on: react(client, on, times=2)),
    ("users_list_not_supplied", lambda client, _: client.conversations_open(users="")),
    ("user_not_found", lambda client, _: client.conversations_open(users="U0NOBODY")),
    ("cannot_dm_bot", lambda client, _: client.conversations_open(users=BOT_USER)),
    ("invalid_types", lambda client, _: client.conversations_list(types="secret")),
    ("invalid_cursor", lambda client, _: client.users_list(cursor="nonsense")),
    ("invalid_limit", lambda client, _: client.users_list(limit=1001)),
    ("not_in_channel", lambda client, on: client.conversations_history(channel=left(on, HIKES))),
    ("thread_not_found", lambda client, _: client.conversations_replies(channel=HIKES, ts="1.000001")),
    ("method_not_supported_for_channel_type", lambda client, _: client.conversations_join(channel=OPS)),
    ("user_not_found", lambda client, _: client.users_info(user="U0NOBODY")),
    ("bot_not_found", lambda client, _: client.bots_info(bot="B0NOBODY")),
    ("not_found", lambda client, _: client.views_update(view_id="V0NOWHERE", view=MODAL)),
    ("invalid_arguments", lambda client, _: client.api_call("views.update", json={"view": MODAL})),
    ("invalid_arguments", lambda client, on: client.views_open(trigger_id=on.permits.trigger(ANA), view={"type": "x"})),
    (
        "invalid_arguments",
        lambda client, _: client.views_publish(user_id="U0NOBODY", view={"type": "home", "blocks": []}),
    ),
    ("view_too_large", lambda client, on: client.views_open(trigger_id=on.permits.trigger(ANA), view=large())),
    ("not_found", lambda client, on: client.views_push(trigger_id=on.permits.trigger(ANA), view=MODAL)),
    ("unknown_method", lambda client, _: client.api_call("chat.shout")),
    ("not_allowed_token_type", lambda client, on: other(client, on, APP_TOKEN).auth_test()),
    ("not_allowed_token_type", lambda client, _: client.apps_connections_open(app_token=BOT_TOKEN)),
    ("invalid_auth", lambda client, on: other(client, on, "xoxb-other").auth_test()),
    ("not_authed", lambda client, on: other(client, on, "").auth_test()),
]


def react(client: WebClient, stand_in: StandIn, times: int) -> None:
    ts = of_ana(stand_in)
    for _ in range(times):
        client.reactions_add(channel=HIKES, timestamp=ts, name="eyes")


def large() -> dict[str, Any]:
    return {**MODAL, "blocks": [section("x" * 2999)] * 90}


def other(client: WebClient, stand_in: StandIn, token: str) -> WebClient:
    return WebClient(token, base_url=stand_in.api_url, retry_handlers=[])


@pytest.mark.parametrize(("code", "call"), REFUSED, ids=[f"{code}-{at}" for at, (code, _) in enumerate(REFUSED)])
def test_a_call_is_refused_with_slacks_own_code(stand_in: StandIn, client: WebClient, code: str, call: Call) -> None:
    assert refusal(lambda: call(client, stand_in)) == code


def test_invalid_blocks_are_explained_with_a_json_pointer(client: WebClient) -> None:
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel=HIKES, text="x", blocks=[section("fine"), section("x" * 3001)])
    assert caught.value.response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
    ]


def test_a_long_text_is_cut_with_a_warning(stand_in: StandIn, client: WebClient) -> None:
    answer = client.chat_postMessage(channel=HIKES, text="x" * 40_001)
    assert answer["warning"] == "message_truncated"
    assert len(stand_in.workspace.messages(HIKES)[-1].text) == 40_000


def test_the_metadata_of_a_message_survives_an_update_and_is_told_when_asked_for(client: WebClient) -> None:
    metadata = {"event_type": "effect", "event_payload": {"id": "7"}}
    ts = client.chat_postMessage(channel=HIKES, text="one", metadata=metadata)["ts"]
    client.chat_update(channel=HIKES, ts=ts, text="two", blocks=[section("two")])

    asked = client.conversations_history(channel=HIKES, include_all_metadata=True)["messages"][0]
    unasked = client.conversations_history(channel=HIKES)["messages"][0]
    assert (asked["text"], asked["metadata"]) == ("two", metadata)
    assert "metadata" not in unasked and "edited" not in unasked


def test_an_update_with_text_alone_removes_the_blocks_and_shows_as_edited(client: WebClient) -> None:
    ts = client.chat_postMessage(channel=HIKES, text="one", blocks=[section("one")])["ts"]
    message = client.chat_update(channel=HIKES, ts=ts, text="two")["message"]
    assert "blocks" not in message and "edited" in message


def test_block_ids_are_made_up_where_missing(client: WebClient) -> None:
    blocks = client.chat_postMessage(channel=HIKES, text="x", blocks=[section("one"), section("two")])["message"][
        "blocks"
    ]
    assert len({block["block_id"] for block in blocks}) == 2


def test_a_direct_message_is_opened_once_and_reached_by_the_persons_id(stand_in: StandIn, client: WebClient) -> None:
    opened = client.conversations_open(users=ANA)["channel"]["id"]
    assert client.conversations_open(users=[ANA])["channel"]["id"] == opened
    assert client.chat_postMessage(channel=ANA, text="Hello")["channel"] == opened
    assert [one.text for one in stand_in.workspace.messages(opened)] == ["Hello"]


def test_a_private_answer_is_in_no_history(client: WebClient) -> None:
    client.chat_postEphemeral(channel=HIKES, user=ANA, text="psst")
    assert client.conversations_history(channel=HIKES)["messages"] == []


def test_a_thread_holds_its_replies_and_the_channel_does_not(client: WebClient) -> None:
    first = client.chat_postMessage(channel=HIKES, text="card")["ts"]
    client.chat_postMessage(channel=HIKES, text="reply", thread_ts=first)

    replies = client.conversations_replies(channel=HIKES, ts=first)["messages"]
    assert [one["text"] for one in replies] == ["card", "reply"]
    assert [one["text"] for one in client.conversations_history(channel=HIKES)["messages"]] == ["card"]


def test_a_history_comes_in_pages_newest_first(client: WebClient) -> None:
    for number in range(5):
        client.chat_postMessage(channel=HIKES, text=str(number))
    pages = [[one["text"] for one in page["messages"]] for page in client.conversations_history(channel=HIKES, limit=2)]
    assert pages == [["4", "3"], ["2", "1"], ["0"]]


def test_people_guests_and_bots_are_told_apart(stand_in: StandIn, client: WebClient) -> None:
    stand_in.workspace.put_person(Person("U0GUEST01", "gil", "Gil", "Asia/Tokyo", is_restricted=True))
    guest = client.users_info(user="U0GUEST01")["user"]
    assert (guest["is_restricted"], guest["tz"], guest["tz_offset"]) == (True, "Asia/Tokyo", 9 * 3600)
    assert client.users_info(user=BOT_USER)["user"]["is_bot"] is True
    assert client.auth_test()["user_id"] == BOT_USER


def test_a_deactivated_person_gets_no_direct_message(stand_in: StandIn, client: WebClient) -> None:
    cleo = stand_in.workspace.person(CLEO)
    assert cleo is not None
    stand_in.workspace.put_person(replace(cleo, deleted=True))
    assert refusal(lambda: client.conversations_open(users=CLEO)) == "user_disabled"


def test_a_view_is_updated_only_under_its_current_hash(stand_in: StandIn, client: WebClient) -> None:
    view = client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=MODAL)["view"]
    client.views_update(view_id=view["id"], hash=view["hash"], view=MODAL)
    stale = refusal(lambda: client.views_update(view_id=view["id"], hash=view["hash"], view=MODAL))
    assert stale == "hash_conflict"


def test_a_stack_takes_three_views(stand_in: StandIn, client: WebClient) -> None:
    ids = [client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=MODAL)["view"]["id"]]
    for _ in range(2):
        trigger = stand_in.permits.trigger(ANA, ids[-1])
        ids.append(client.views_push(trigger_id=trigger, view=MODAL)["view"]["id"])
    fourth = stand_in.permits.trigger(ANA, ids[-1])
    assert refusal(lambda: client.views_push(trigger_id=fourth, view=MODAL)) == "push_limit_reached"
    assert [one.id for one in stand_in.workspace.modals(ANA)] == ids


def test_an_external_id_is_taken_once_and_finds_its_view(stand_in: StandIn, client: WebClient) -> None:
    named = {**MODAL, "external_id": "edit-42"}
    view = client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=named)["view"]
    again = refusal(lambda: client.views_open(trigger_id=stand_in.permits.trigger(CLEO), view=named))
    assert again == "duplicate_external_id"
    assert client.views_update(external_id="edit-42", view=named)["view"]["id"] == view["id"]


def test_a_call_with_a_bad_view_does_not_use_up_its_trigger(stand_in: StandIn, client: WebClient) -> None:
    trigger = stand_in.permits.trigger(ANA)
    assert refusal(lambda: client.views_open(trigger_id=trigger, view={"type": "modal"})) == "invalid_arguments"
    assert client.views_open(trigger_id=trigger, view=MODAL)["ok"]


# --- what the manifest allows ---------------------------------------------------------------------------------------


@pytest.fixture
def frugal() -> Iterator[StandIn]:
    manifest = {
        "oauth_config": {"scopes": {"bot": ["commands", "chat:write"]}},
        "features": {"slash_commands": [{"command": "/plan-hike", "should_escape": False}]},
    }
    with StandIn(manifest=manifest) as running:
        yield running


def test_a_method_outside_the_manifests_scopes_is_refused(frugal: StandIn) -> None:
    client = WebClient(BOT_TOKEN, base_url=frugal.api_url, retry_handlers=[])
    with pytest.raises(SlackApiError) as caught:
        client.users_info(user=ANA)
    answer = caught.value.response
    assert (answer["error"], answer["needed"], answer["provided"]) == (
        "missing_scope",
        "users:read",
        "chat:write,commands",
    )
    assert client.chat_postMessage(channel=HIKES, text="x")["ok"]
    assert refusal(lambda: client.chat_postMessage(channel=left(frugal, HIKES), text="x")) == "not_in_channel"
    assert refusal(lambda: client.views_publish(user_id=ANA, view={"type": "home", "blocks": []})) == "not_enabled"


def test_a_command_outside_the_manifest_is_none(frugal: StandIn) -> None:
    assert frugal.people.command(ANA, HIKES, "/shout x") is None
    assert [one.text for one in frugal.workspace.messages(HIKES, viewer=ANA)] == ["/shout is not a valid command."]


def test_without_should_escape_mentions_stay_as_typed(frugal: StandIn) -> None:
    delivery = frugal.people.command(ANA, HIKES, "/plan-hike with @ben & <all>")
    assert delivery is not None
    assert delivery.payload["text"] == "with @ben &amp; &lt;all&gt;"
