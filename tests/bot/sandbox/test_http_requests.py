"""The same app, reached by signed HTTP requests instead of Socket Mode."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from slack_bolt import Ack, App, BoltRequest
from slack_sdk import WebClient
from slack_sdk.signature import SignatureVerifier

from bot.sandbox.http_requests import HttpTransport, signature
from bot.sandbox.records import Timing
from bot.sandbox.server import SIGNING_SECRET, StandIn

ANA, HIKES = "U0ANA0001", "C0HIKES01"


def serve(app: App) -> ThreadingHTTPServer:
    """Bolt behind a request url, with its signature check."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answer = app.dispatch(BoltRequest(body=body, headers=dict(self.headers)))
            self.send_response(answer.status)
            for name, values in answer.headers.items():
                for value in values:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    return server


@pytest.fixture
def served(stand_in: StandIn, app: App) -> Iterator[App]:
    server = serve(app)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    stand_in.use(HttpTransport(f"http://127.0.0.1:{server.server_port}/slack/events", SIGNING_SECRET))
    yield app
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_signature_is_the_one_slacks_own_verifier_expects() -> None:
    verifier = SignatureVerifier(SIGNING_SECRET)
    assert signature(SIGNING_SECRET, "1531420618", b"payload=1") == verifier.generate_signature(
        timestamp="1531420618", body="payload=1"
    )


def test_a_command_a_click_and_a_submission_reach_an_app_behind_a_request_url(
    stand_in: StandIn, served: App, client: WebClient
) -> None:
    heard: list[str] = []

    @served.command("/plan-hike")
    def plan(ack: Ack, command: dict[str, Any]) -> None:
        heard.append(command["text"])
        ack("On it")

    @served.action("edit")
    def edit(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
        ack()
        client.views_open(trigger_id=body["trigger_id"], view=FORM)

    @served.view("edited")
    def edited(ack: Ack) -> None:
        ack(response_action="errors", errors={"text": "No."})

    @served.event("app_mention")
    def mentioned(event: dict[str, Any]) -> None:
        heard.append(event["text"])

    @served.event("message")
    def wrote() -> None:
        return None

    workspace, people = stand_in.workspace, stand_in.people
    command = people.command(ANA, HIKES, "/plan-hike Saturday")
    assert command is not None and command.status == "acked"
    assert [one.text for one in workspace.messages(HIKES, viewer=ANA)] == ["On it"]

    ts = client.chat_postMessage(channel=HIKES, text="A plan", blocks=CARD)["ts"]
    assert people.click(ANA, HIKES, ts, "decide", "edit").status == "acked"
    modal = workspace.wait(lambda: workspace.modals(ANA))[0]
    people.submit(ANA, modal.id, {"text": "x"})
    assert workspace.modals(ANA)[0].errors == {"text": "No."}

    people.post(ANA, HIKES, "Hello @signoff")
    assert workspace.wait(lambda: heard[-1:] == ["Hello <@U0SIGNOFF>"])


@pytest.mark.parametrize("timing", [Timing(retry_seconds=())])
def test_an_app_with_another_secret_refuses_what_it_is_sent(stand_in: StandIn, served: App) -> None:
    transport = stand_in.courier.transport
    assert isinstance(transport, HttpTransport)
    stand_in.use(HttpTransport(transport.url, "another-secret"))
    command = stand_in.people.command(ANA, HIKES, "/plan-hike")
    transport.close()
    assert command is not None and (command.status, command.problem) == ("failed", "http_error 401")


def test_an_app_that_is_not_there_fails_at_once(stand_in: StandIn) -> None:
    stand_in.use(HttpTransport("http://127.0.0.1:9/slack/events", SIGNING_SECRET))
    command = stand_in.people.command(ANA, HIKES, "/plan-hike")
    assert command is not None and (command.status, command.problem) == ("failed", "dispatch_failed")


CARD: list[dict[str, Any]] = [
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [{"type": "button", "action_id": "edit", "text": {"type": "plain_text", "text": "Edit"}}],
    }
]
FORM: dict[str, Any] = {
    "type": "modal",
    "callback_id": "edited",
    "title": {"type": "plain_text", "text": "Edit"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "text",
            "label": {"type": "plain_text", "text": "Text"},
            "element": {"type": "plain_text_input", "action_id": "value"},
        }
    ],
}
