"""What people may do, what they enter, and the payloads that come of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from slack_sdk import WebClient

from bot.sandbox import form_state
from bot.sandbox.manifest import allowed
from bot.sandbox.people import NotPossible
from bot.sandbox.records import Delivery
from bot.sandbox.server import StandIn
from tests.shared import SHARED

ANA, BEN, CLEO = "U0ANA0001", "U0BEN0002", "U0CLEO003"
GENERAL, HIKES, OPS = "C0GENERAL", "C0HIKES01", "C0OPS0001"
PAYLOADS = SHARED / "slack"


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def option(value: str) -> dict[str, Any]:
    return {"text": plain(value.title()), "value": value}


CARD: list[dict[str, Any]] = [
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [
            {"type": "button", "action_id": "approve", "text": plain("Approve"), "value": "42:1"},
            {"type": "static_select", "action_id": "day", "options": [option("saturday"), option("sunday")]},
            {"type": "datepicker", "action_id": "date"},
        ],
    },
    {
        "type": "input",
        "block_id": "why",
        "label": plain("Why"),
        "element": {"type": "plain_text_input", "action_id": "text"},
    },
]
FIELDS: dict[str, dict[str, Any]] = {
    "text": {"type": "plain_text_input", "min_length": 2, "initial_value": "before"},
    "number": {"type": "number_input", "is_decimal_allowed": False, "max_value": "9"},
    "date": {"type": "datepicker"},
    "day": {"type": "static_select", "options": [option("saturday"), option("sunday")]},
    "days": {"type": "multi_static_select", "options": [option("saturday"), option("sunday")]},
    "boxes": {"type": "checkboxes", "options": [option("rain"), option("sun")]},
    "who": {"type": "users_select"},
    "all": {"type": "multi_users_select"},
    "at": {"type": "datetimepicker"},
}
FORM: dict[str, Any] = {
    "type": "modal",
    "callback_id": "edited",
    "title": plain("Edit"),
    "submit": plain("Send"),
    "close": plain("Cancel"),
    "notify_on_close": True,
    "blocks": [
        {
            "type": "input",
            "block_id": block_id,
            "optional": block_id != "text",
            "label": plain(block_id),
            "element": {"action_id": "value", **element},
        }
        for block_id, element in FIELDS.items()
    ],
}


def carded(client: WebClient, channel: str = HIKES) -> str:
    return str(client.chat_postMessage(channel=channel, text="card", blocks=CARD)["ts"])


def opened(stand_in: StandIn, client: WebClient) -> str:
    return str(client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=FORM)["view"]["id"])


def sent(delivery: Delivery | None) -> dict[str, Any]:
    assert delivery is not None
    return delivery.payload


def test_a_click_carries_the_message_its_state_and_the_button(stand_in: StandIn, client: WebClient) -> None:
    ts = carded(client)
    payload = sent(stand_in.people.click(ANA, HIKES, ts, "decide", "approve", state={"why": "good"}))
    action = {name: value for name, value in payload["actions"][0].items() if name != "action_ts"}
    assert action == {
        "action_id": "approve",
        "block_id": "decide",
        "type": "button",
        "text": plain("Approve"),
        "value": "42:1",
    }
    assert payload["message"]["ts"] == payload["container"]["message_ts"] == ts
    assert payload["state"]["values"]["why"]["text"] == {"type": "plain_text_input", "value": "good"}
    assert payload["response_url"].startswith(f"{stand_in.url}/response/")


def test_a_choice_is_reported_as_option_or_date(stand_in: StandIn, client: WebClient) -> None:
    ts = carded(client)
    day = sent(stand_in.people.select(BEN, HIKES, ts, "decide", "day", value="sunday"))
    date = sent(stand_in.people.select(BEN, HIKES, ts, "decide", "date", value="2026-06-06"))
    assert day["actions"][0]["selected_option"] == option("sunday")
    assert day["state"]["values"]["decide"]["day"] == {"type": "static_select", "selected_option": option("sunday")}
    assert date["actions"][0]["selected_date"] == "2026-06-06"


def test_a_click_on_a_private_answer_does_not_repeat_the_message(stand_in: StandIn, client: WebClient) -> None:
    ts = str(client.chat_postEphemeral(channel=HIKES, user=ANA, text="psst", blocks=CARD)["message_ts"])
    payload = sent(stand_in.people.click(ANA, HIKES, ts, "decide", "approve"))
    assert payload["container"]["is_ephemeral"] is True and "message" not in payload
    with pytest.raises(NotPossible, match="no longer there"):
        stand_in.people.click(BEN, HIKES, ts, "decide", "approve")


def test_a_click_may_cross_an_update_and_then_carries_what_was_seen(stand_in: StandIn, client: WebClient) -> None:
    ts = carded(client)
    seen = stand_in.workspace.message(HIKES, ts)
    client.chat_update(channel=HIKES, ts=ts, text="decided", blocks=[])
    with pytest.raises(NotPossible, match="no longer shows 'approve'"):
        stand_in.people.click(ANA, HIKES, ts, "decide", "approve")
    assert sent(stand_in.people.click(ANA, HIKES, ts, "decide", "approve", shown=seen))["message"]["text"] == "card"
    forged = sent(stand_in.people.click(ANA, HIKES, ts, "decide", "approve", shown=seen, value="1 OR 1=1"))
    assert forged["actions"][0]["value"] == "1 OR 1=1"


def test_a_form_reports_each_kind_of_field_in_its_own_shape(stand_in: StandIn, client: WebClient) -> None:
    view = opened(stand_in, client)
    entered = {
        "text": "after",
        "number": "7",
        "date": "2026-06-06",
        "day": "sunday",
        "days": ["saturday", "sunday"],
        "boxes": "sun",
        "who": BEN,
        "all": [ANA, BEN],
        "at": "1780000000",
    }
    values = sent(stand_in.people.submit(ANA, view, entered))["view"]["state"]["values"]
    shapes = {
        name: {key: part for key, part in value["value"].items() if key != "type"} for name, value in values.items()
    }
    assert shapes == {
        "text": {"value": "after"},
        "number": {"value": "7"},
        "date": {"selected_date": "2026-06-06"},
        "day": {"selected_option": option("sunday")},
        "days": {"selected_options": [option("saturday"), option("sunday")]},
        "boxes": {"selected_options": [option("sun")]},
        "who": {"selected_user": BEN},
        "all": {"selected_users": [ANA, BEN]},
        "at": {"selected_date_time": 1780000000},
    }


def test_an_untouched_form_reports_what_it_began_with(stand_in: StandIn, client: WebClient) -> None:
    values = sent(stand_in.people.submit(ANA, opened(stand_in, client)))["view"]["state"]["values"]
    assert values["text"]["value"]["value"] == "before"
    assert values["number"]["value"]["value"] is None
    assert values["days"]["value"]["selected_options"] == []


@pytest.mark.parametrize(
    ("entered", "complaint"),
    [
        ({"text": ""}, {"text": form_state.REQUIRED}),
        ({"text": "x"}, {"text": "Please enter at least 2 characters."}),
        ({"number": "many"}, {"number": "Please enter a number."}),
        ({"number": "1.5"}, {"number": "Please enter a whole number."}),
        ({"number": "10"}, {"number": "Please enter a number no greater than 9."}),
    ],
)
def test_the_window_complains_and_sends_nothing(
    stand_in: StandIn, client: WebClient, entered: dict[str, str], complaint: dict[str, str]
) -> None:
    view = opened(stand_in, client)
    assert stand_in.people.submit(ANA, view, entered) is None
    assert stand_in.workspace.modals(ANA)[0].errors == complaint


def test_an_option_that_is_not_offered_cannot_be_chosen(stand_in: StandIn, client: WebClient) -> None:
    with pytest.raises(NotPossible, match="'monday' is not an option of 'day'"):
        stand_in.people.select(ANA, HIKES, carded(client), "decide", "day", value="monday")


def test_nobody_acts_where_they_are_not(stand_in: StandIn, client: WebClient) -> None:
    people = stand_in.people
    with pytest.raises(NotPossible, match="no channel"):
        people.command(CLEO, OPS, "/plan-hike")
    with pytest.raises(NotPossible, match="no person"):
        people.post("U0NOBODY", HIKES, "x")
    with pytest.raises(NotPossible, match="no longer open"):
        people.submit(BEN, opened(stand_in, client))
    stand_in.workspace.leave(HIKES, CLEO)
    with pytest.raises(NotPossible, match="Join #hikes"):
        people.post(CLEO, HIKES, "x")
    people.join(CLEO, HIKES)
    stand_in.faults.archive(HIKES)
    with pytest.raises(NotPossible, match="archived"):
        people.post(CLEO, HIKES, "x")


def test_a_message_names_people_and_channels_by_token_and_escapes_the_rest(stand_in: StandIn) -> None:
    message = stand_in.people.post(ANA, HIKES, "@ben in #hikes & @here <b> mail a@ben")
    assert message.text == f"<@{BEN}> in <#{HIKES}> &amp; <!here> &lt;b&gt; mail a@ben"


def test_a_slash_in_a_thread_is_a_message(stand_in: StandIn) -> None:
    first = stand_in.people.post(ANA, HIKES, "first")
    stand_in.people.type(ANA, HIKES, "/plan-hike", thread_ts=first.ts)
    assert [one.text for one in stand_in.workspace.messages(HIKES, thread_ts=first.ts)] == ["first", "/plan-hike"]
    assert {one.kind for one in stand_in.workspace.deliveries()} == {"events_api"}


def test_a_command_in_a_direct_message_and_a_private_channel_names_neither(stand_in: StandIn) -> None:
    channel = stand_in.people.direct_message(ANA, BEN)
    assert sent(stand_in.people.command(ANA, channel.id, "/plan-hike"))["channel_name"] == "directmessage"
    assert sent(stand_in.people.command(ANA, OPS, "/plan-hike"))["channel_name"] == "privategroup"


def test_an_app_hears_only_the_events_it_asked_for() -> None:
    manifest = {"settings": {"event_subscriptions": {"bot_events": ["app_mention"]}}}
    with StandIn(manifest=manifest) as quiet:
        quiet.people.post(ANA, HIKES, "Hello")
        quiet.people.post(ANA, HIKES, "Hello @signoff")
        assert quiet.people.open_home(ANA) is None
        assert [one.payload["event"]["type"] for one in quiet.workspace.deliveries()] == ["app_mention"]


def test_without_a_manifest_everything_is_allowed() -> None:
    rights = allowed(None)
    assert rights.has_scope("anything") and rights.hears("anything") and rights.knows("/anything") and rights.home_tab


# --- the same shape as Slack's own payloads -------------------------------------------------------------------------


def published(name: str) -> Any:
    path = PAYLOADS / name
    if not path.exists():
        pytest.skip("Slack's published payloads are not on this machine.")
    return json.loads(path.read_text())


def missing(example: Any, ours: Any, at: str = "") -> list[str]:
    """The fields of an example that ours lacks or has in another type; org installs and icons aside."""
    if not isinstance(example, dict):
        same = isinstance(ours, type(example)) or example is None or ours is None
        return [] if same else [f"{at}: {type(ours).__name__}"]
    if not isinstance(ours, dict):
        return [f"{at}: no object"]
    gaps: list[str] = []
    for name, value in example.items():
        if name in ("enterprise_id", "enterprise_name", "client_msg_id", "emoji"):
            continue
        gaps += missing(value, ours[name], f"{at}/{name}") if name in ours else [f"{at}/{name}"]
    return gaps


@pytest.mark.allowed_skip
def test_a_command_has_every_field_of_slacks_example(stand_in: StandIn) -> None:
    ours = sent(stand_in.people.command(ANA, HIKES, "/plan-hike Hi"))
    assert missing(published("payloads/slash_command.slash_command_body.json"), ours) == []


@pytest.mark.allowed_skip
def test_a_click_has_every_field_of_slacks_example(stand_in: StandIn, client: WebClient) -> None:
    ours = sent(stand_in.people.click(ANA, HIKES, carded(client), "decide", "approve"))
    example = published("payloads/block_actions.body.json")
    assert missing(example, ours) == []
    assert missing(example["actions"][0], ours["actions"][0]) == []


@pytest.mark.allowed_skip
def test_a_submission_and_a_closed_modal_have_every_field_of_slacks_examples(
    stand_in: StandIn, client: WebClient
) -> None:
    view = opened(stand_in, client)
    submitted = sent(stand_in.people.submit(ANA, view))
    closed = stand_in.people.close(ANA, view)[0].payload
    submission = published("payloads/view_submission.body.json")
    # The example's state names that example's own blocks.
    submission["view"]["state"] = {"values": {}}
    assert missing(submission, submitted) == []
    del (example := published("payloads/view_closed.body.json"))["response_urls"]
    assert missing(example, closed) == []


@pytest.mark.allowed_skip
def test_an_event_and_its_envelope_have_every_field_of_slacks_example(stand_in: StandIn) -> None:
    stand_in.people.post(ANA, HIKES, "Hello @signoff")
    example = next(
        one
        for one in published("socket-mode/socket_mode_envelopes.json")
        if one["payload"].get("event", {}).get("type") == "app_mention"
    )
    ours = next(one.payload for one in stand_in.workspace.deliveries() if one.payload["event"]["type"] == "app_mention")
    del example["payload"]["event"]["blocks"]
    assert missing(example["payload"], ours) == []
