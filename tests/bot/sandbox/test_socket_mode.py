"""A real Bolt app over real Socket Mode: from the command to the submitted modal, and what goes wrong on the way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from slack_bolt import Ack, App, Respond
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as websocket

from bot.sandbox.records import Delivery, Timing
from bot.sandbox.server import APP_TOKEN, StandIn

ANA, BEN, CLEO = "U0ANA0001", "U0BEN0002", "U0CLEO003"
HIKES = "C0HIKES01"
HASTY = Timing(ack_seconds=0.2, retry_seconds=(0.0, 0.0, 0.0))
Connect = Callable[[App], SocketModeHandler]

CARD: list[dict[str, Any]] = [
    {"type": "section", "block_id": "text", "text": {"type": "mrkdwn", "text": "Meet at *8:00*."}},
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [
            {
                "type": "button",
                "action_id": "approve",
                "text": {"type": "plain_text", "text": "Approve"},
                "style": "primary",
                "value": "42:1",
            },
            {"type": "button", "action_id": "edit", "text": {"type": "plain_text", "text": "Edit"}, "value": "42:1"},
        ],
    },
]


def form(title: str = "Edit the text", **fields: Any) -> dict[str, Any]:
    return {
        "type": "modal",
        "callback_id": "edited",
        "private_metadata": "42:1",
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [
            {
                "type": "input",
                "block_id": "text",
                "label": {"type": "plain_text", "text": "Text"},
                "element": {"type": "plain_text_input", "action_id": "value", "max_length": 300},
            }
        ],
        **fields,
    }


def test_a_command_leads_to_a_card_a_modal_with_an_error_and_a_submission(
    stand_in: StandIn, app: App, connect: Connect
) -> None:
    @app.command("/plan-hike")
    def plan(ack: Ack, command: dict[str, Any], client: WebClient) -> None:
        ack(f"Planning {command['text']}")
        client.chat_postMessage(channel=command["channel_id"], text="A plan", blocks=CARD)

    @app.action("edit")
    def edit(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
        ack()
        client.views_open(trigger_id=body["trigger_id"], view=form())

    @app.view("edited")
    def edited(ack: Ack, view: dict[str, Any], client: WebClient) -> None:
        text = view["state"]["values"]["text"]["value"]["value"]
        if "!" in text:
            ack(response_action="errors", errors={"text": "Calmly, please."})
            return
        ack()
        client.chat_postMessage(channel=HIKES, text=f"Sent: {text}")

    connect(app)
    workspace, people = stand_in.workspace, stand_in.people

    command = people.command(ANA, HIKES, "/plan-hike Saturday with @ben in #hikes")
    assert command is not None and command.status == "acked"
    assert command.payload["text"] == f"Saturday with <@{BEN}|ben> in <#{HIKES}|hikes>"
    cards = workspace.wait(lambda: [one for one in workspace.messages(HIKES) if one.text == "A plan"])
    assert [one.text for one in workspace.messages(HIKES, viewer=ANA) if one.ephemeral_to] == [
        f"Planning Saturday with <@{BEN}|ben> in <#{HIKES}|hikes>"
    ]
    assert not [one for one in workspace.messages(HIKES, viewer=BEN) if one.ephemeral_to]

    assert people.click(BEN, HIKES, cards[0].ts, "decide", "edit").status == "acked"
    modal = workspace.wait(lambda: workspace.modals(BEN))[0]
    assert modal.private_metadata == "42:1"

    refused = people.submit(BEN, modal.id, {"text": "Hurry!"})
    assert refused is not None and refused.status == "acked"
    assert workspace.modals(BEN)[0].errors == {"text": "Calmly, please."}

    submitted = people.submit(BEN, modal.id, {"text": {"value": "No rush."}})
    assert submitted is not None and submitted.status == "acked"
    assert workspace.modals(BEN) == []
    assert workspace.wait(lambda: [one for one in workspace.messages(HIKES) if one.text == "Sent: No rush."])


def test_the_window_itself_refuses_an_empty_or_too_long_text(stand_in: StandIn, client: WebClient) -> None:
    view = client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form())["view"]

    assert stand_in.people.submit(ANA, view["id"], {}) is None
    assert stand_in.people.submit(ANA, view["id"], {"text": "x" * 301}) is None

    assert stand_in.workspace.modals(ANA)[0].errors == {"text": "Please enter no more than 300 characters."}
    assert stand_in.workspace.deliveries() == []


@pytest.mark.parametrize("timing", [HASTY])
def test_an_app_that_answers_too_late_is_told_to_the_person_and_its_ack_is_ignored(
    stand_in: StandIn, app: App, connect: Connect
) -> None:
    let_go = threading.Event()

    @app.command("/plan-hike")
    def plan(ack: Ack) -> None:
        let_go.wait(10)
        ack("Too late")

    connect(app)
    delivery = stand_in.people.command(ANA, HIKES, "/plan-hike")
    assert delivery is not None and delivery.status == "late"
    let_go.set()

    workspace = stand_in.workspace
    after = workspace.wait(lambda: (found := workspace.delivery(delivery.id)) and found.acked_at and found)
    assert after and after.status == "late"
    shown = [one.text for one in workspace.messages(HIKES, viewer=ANA)]
    assert shown == ["/plan-hike did not respond in time (operation_timeout)."]


def test_a_click_without_any_connection_fails_at_once_and_is_not_repeated(stand_in: StandIn, client: WebClient) -> None:
    ts = client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]

    delivery = stand_in.people.click(ANA, HIKES, ts, "decide", "approve")

    assert (delivery.status, delivery.problem, delivery.attempts) == ("failed", "dispatch_failed", 1)
    assert (delivery.message_ts, delivery.action_id) == (ts, "approve")


@pytest.mark.parametrize("timing", [HASTY])
def test_an_event_without_an_ack_is_redelivered_three_times_with_the_same_event_id(
    stand_in: StandIn, app: App, connect: Connect
) -> None:
    seen: list[tuple[str, int | None, str | None]] = []

    handler = connect(app)
    # An app that takes everything and acks nothing.
    handler.client.socket_mode_request_listeners[:] = [
        lambda client, request: seen.append((request.payload["event_id"], request.retry_attempt, request.retry_reason))
    ]
    stand_in.people.post(ANA, HIKES, "Hello @signoff")
    workspace = stand_in.workspace
    assert workspace.wait(lambda: workspace.deliveries() and workspace.deliveries()[-1].attempts == 4)
    assert workspace.wait(lambda: workspace.deliveries()[-1].status == "late")

    mentions = [one for one in seen if one[0] == workspace.deliveries()[-1].payload["event_id"]]
    assert [one[1:] for one in mentions] == [(0, ""), (1, "timeout"), (2, "timeout"), (3, "timeout")]


@pytest.mark.parametrize("timing", [Timing(trigger_seconds=-1.0)])
def test_a_trigger_expires(stand_in: StandIn, client: WebClient) -> None:
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form())


def test_a_trigger_works_once_and_must_be_known(stand_in: StandIn, client: WebClient) -> None:
    def refusal(trigger: str) -> str:
        try:
            client.views_open(trigger_id=trigger, view=form())
        except SlackApiError as error:
            return str(error.response["error"])
        return "opened"

    trigger = stand_in.permits.trigger(ANA)
    assert [refusal(trigger), refusal(trigger), refusal("1.2.x")] == [
        "opened",
        "exchanged_trigger_id",
        "invalid_trigger_id",
    ]


def test_a_submission_may_update_push_and_clear(stand_in: StandIn, app: App, connect: Connect) -> None:
    answers: list[dict[str, Any]] = [
        {"response_action": "update", "view": form("Second")},
        {"response_action": "push", "view": form("Third")},
        {"response_action": "clear"},
    ]

    @app.view("edited")
    def edited(ack: Ack) -> None:
        ack(**answers.pop(0))

    connect(app)
    workspace = stand_in.workspace
    first = app.client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form("First"))["view"]

    stand_in.people.submit(ANA, first["id"], {"text": "one"})
    assert [one.view["title"]["text"] for one in workspace.modals(ANA)] == ["Second"]
    assert workspace.modals(ANA)[0].state["text"]["value"]["value"] == "one"
    stand_in.people.submit(ANA, first["id"], {"text": "two"})
    assert [one.view["title"]["text"] for one in workspace.modals(ANA)] == ["Second", "Third"]
    top = workspace.modals(ANA)[1]
    assert (top.root_view_id, top.previous_view_id) == (first["id"], first["id"])
    stand_in.people.submit(ANA, top.id, {"text": "three"})
    assert workspace.modals(ANA) == []


def test_an_answer_that_is_no_response_action_is_trouble_and_the_modal_stays(
    stand_in: StandIn, app: App, connect: Connect
) -> None:
    @app.view("edited")
    def edited(ack: Ack) -> None:
        ack("thank you")

    connect(app)
    view = app.client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form())["view"]

    delivery = stand_in.people.submit(ANA, view["id"], {"text": "one"})

    assert delivery is not None and delivery.status == "failed"
    assert stand_in.workspace.modals(ANA)[0].trouble == "We had some trouble connecting. Try again?"


def test_errors_for_a_block_that_is_no_input_are_trouble(stand_in: StandIn, app: App, connect: Connect) -> None:
    @app.view("edited")
    def edited(ack: Ack) -> None:
        ack(response_action="errors", errors={"elsewhere": "Wrong."})

    connect(app)
    view = app.client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form())["view"]

    delivery = stand_in.people.submit(ANA, view["id"], {"text": "one"})

    assert delivery is not None and "elsewhere" in delivery.problem


def test_a_closed_modal_is_told_only_to_apps_that_want_to_know(stand_in: StandIn, app: App, connect: Connect) -> None:
    closed: list[tuple[str, bool]] = []
    done = threading.Event()

    @app.view_closed("edited")
    def on_closed(ack: Ack, body: dict[str, Any]) -> None:
        ack()
        closed.append((body["view"]["id"], body["is_cleared"]))
        done.set()

    connect(app)
    quiet = app.client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form())["view"]
    assert stand_in.people.close(ANA, quiet["id"]) == []
    loud = app.client.views_open(trigger_id=stand_in.permits.trigger(ANA), view=form(notify_on_close=True))["view"]
    told = stand_in.people.close(ANA, loud["id"])

    assert [one.status for one in told] == ["acked"]
    assert done.wait(10)
    assert closed == [(loud["id"], False)]


def test_an_answer_through_the_response_url_replaces_the_card(stand_in: StandIn, app: App, connect: Connect) -> None:
    @app.action("approve")
    def approve(ack: Ack, respond: Respond) -> None:
        ack()
        respond(text="Approved", replace_original=True)

    connect(app)
    ts = app.client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]
    stand_in.people.click(BEN, HIKES, ts, "decide", "approve")

    workspace = stand_in.workspace
    card = workspace.wait(lambda: (found := workspace.message(HIKES, ts)) and found.text == "Approved" and found)
    assert card and card.blocks == ()


def test_the_home_tab_is_published_when_a_person_opens_it(stand_in: StandIn, app: App, connect: Connect) -> None:
    @app.event("app_home_opened")
    def opened(event: dict[str, Any], client: WebClient) -> None:
        client.views_publish(user_id=event["user"], view={"type": "home", "blocks": CARD})

    @app.action("approve")
    def approve(ack: Ack) -> None:
        ack()

    connect(app)
    delivery = stand_in.people.open_home(CLEO)
    assert delivery is not None and delivery.status == "acked"
    home = stand_in.workspace.wait(lambda: stand_in.workspace.home(CLEO))
    assert home is not None
    assert stand_in.people.click_in_view(CLEO, home.id, "decide", "approve").payload["view"]["type"] == "home"


def test_the_same_envelope_can_arrive_twice(stand_in: StandIn, app: App, connect: Connect) -> None:
    clicks: list[str] = []
    both = threading.Event()

    @app.action("approve")
    def approve(ack: Ack, body: dict[str, Any]) -> None:
        ack()
        clicks.append(body["trigger_id"])
        if len(clicks) == 2:
            both.set()

    connect(app)
    ts = app.client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]
    stand_in.faults.twice("interactive")
    stand_in.people.click(BEN, HIKES, ts, "decide", "approve")

    assert both.wait(10)
    assert clicks[0] == clicks[1]
    assert stand_in.faults.counts() == {"twice": 1}


def test_an_app_that_is_asked_to_reconnect_answers_the_click_under_way(
    stand_in: StandIn, app: App, connect: Connect
) -> None:
    arrived, let_go = threading.Event(), threading.Event()

    @app.action("approve")
    def approve(ack: Ack) -> None:
        arrived.set()
        let_go.wait(10)
        ack()

    connect(app)
    ts = app.client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]
    deliveries: list[Delivery] = []
    clicking = threading.Thread(
        target=lambda: deliveries.append(stand_in.people.click(BEN, HIKES, ts, "decide", "approve"))
    )
    clicking.start()
    assert arrived.wait(5)
    assert stand_in.faults.refresh() == 1
    assert stand_in.workspace.wait(lambda: stand_in.sockets.connected == 2)
    let_go.set()
    clicking.join()

    assert deliveries[0].status == "acked"


def test_an_ack_counts_on_whatever_connection_it_comes(stand_in: StandIn, client: WebClient) -> None:
    ts = client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]
    with raw(client) as first, raw(client) as second:
        hellos = [json.loads(one.recv(timeout=5)) for one in (first, second)]
        assert [one["type"] for one in hellos] == ["hello", "hello"]
        deliveries: list[Delivery] = []
        clicking = threading.Thread(
            target=lambda: deliveries.append(stand_in.people.click(BEN, HIKES, ts, "decide", "approve"))
        )
        clicking.start()
        sent, _, other = received(first, second)
        other.send(json.dumps({"envelope_id": sent["envelope_id"]}))
        clicking.join()
    assert deliveries[0].status == "acked"


def test_sockets_that_are_cut_leave_no_connection(stand_in: StandIn, client: WebClient) -> None:
    with raw(client) as only:
        only.recv(timeout=5)
        assert stand_in.faults.cut() == 1
        with pytest.raises(ConnectionClosedError):
            only.recv(timeout=5)
    assert stand_in.sockets.connected == 0


def test_the_eleventh_socket_is_told_to_go(stand_in: StandIn, client: WebClient) -> None:
    with ExitStack() as stack:
        said = [json.loads(stack.enter_context(raw(client)).recv(timeout=5)) for _ in range(11)]
    assert [one["type"] for one in said] == ["hello"] * 10 + ["disconnect"]
    assert said[-1]["reason"] == "too_many_websockets"


def test_a_socket_url_opens_one_connection_only(client: WebClient) -> None:
    url = client.apps_connections_open(app_token=APP_TOKEN)["url"]
    with websocket(url) as first:
        first.recv(timeout=5)
        with pytest.raises(InvalidStatus):
            websocket(url)


def raw(client: WebClient) -> ClientConnection:
    """A connection without the SDK."""
    return websocket(client.apps_connections_open(app_token=APP_TOKEN)["url"])


def received(*connections: ClientConnection) -> tuple[dict[str, Any], ClientConnection, ClientConnection]:
    """The envelope, the connection on which it came, and another."""
    for at, other in (connections, reversed(connections)):
        try:
            return json.loads(at.recv(timeout=0.1)), at, other
        except TimeoutError:
            continue
    raise AssertionError("No connection got the envelope.")
