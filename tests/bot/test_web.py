"""Answers from machines and callbacks from Twilio, over real HTTP requests to the bot's own application."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from slack_bolt import App
from slack_sdk import WebClient

from bot.app import build
from bot.commands import Start, start_run
from bot.decisions import Wish, decide
from bot.dispatch import advance
from bot.parts import Parts
from bot.settings import load_settings
from bot.web import application
from graphs.catalog import CATALOG, Catalog
from graphs.engine import END, START, State, StateGraph
from graphs.flow import Field, Flow
from storage import approvals, ledger
from storage.doubts import question_id
from storage.ledger import Result

STATUS_URL = "https://signoff.example/twilio"
TOKEN = "a-long-token"


class Health(State):
    text: str
    healthy: bool | None = None


def _promote() -> Flow:
    graph = StateGraph(Health)
    graph.add_node("wait", lambda state, runtime: {"healthy": runtime.interrupt({"signal": "healthy?"})})
    graph.add_edge(START, "wait")
    graph.add_edge("wait", END)
    return Flow(
        name="promote",
        command="/promote",
        usage="",
        form={"text": Field(label="What")},
        graph=graph.compile(name="promote"),
        start=lambda form, now: {"text": str(form["text"])},
        outcome=lambda state: "finished",
        ending=lambda state, how: "",
    )


PROMOTE = _promote()


class Silent:
    """A phone company whose answers never come, and which cannot be asked."""

    kind = "sms"
    absence_proves = False

    def send(self, *_: Any) -> Any:
        raise TimeoutError("no answer")

    def look_up(self, *_: Any) -> None:
        return None


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path / 'signoff.db'}",
        model_script="straight",
        answer_token=TOKEN,
        twilio_account_sid="AC1",
        twilio_auth_token="twilio-secret",
        twilio_from="+15005550006",
        twilio_status_url=STATUS_URL,
    )
    built = build(settings, catalog=Catalog((*CATALOG.flows, PROMOTE)))
    yield built
    built.close()


def ask(parts: Parts, path: str, body: bytes, query: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
    """One POST to the application."""
    said: list[str] = []
    client = WebClient("xoxb-none")
    bolt = App(name="bot", client=client, signing_secret="s", token_verification_enabled=False)
    serve = application(parts, bolt, lambda: {"ok": True})
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        **headers,
    }
    answer = b"".join(serve(environ, lambda status, _headers: said.append(status)))
    return int(said[0].split()[0]), json.loads(answer)


def waiting(parts: Parts) -> tuple[str, str]:
    """A run that waits for a signal, and the signal's id."""
    wish = Start(form={"text": "v2"}, who="U0ANA0001", channel="C0HIKES01", team="T0SIGNOFF")
    thread_id = start_run(parts, PROMOTE, wish)
    advance(parts.runner, thread_id)
    return thread_id, parts.checkpointer.interrupts(thread_id)[0].id


def body_of(thread: str, interrupt: str, value: Any) -> bytes:
    return json.dumps({"thread": thread, "interrupt": interrupt, "value": value, "as": "probe"}).encode()


@pytest.mark.parametrize("value", [True, False, None])
def test_a_machine_with_the_token_answers_a_signal_once(parts: Parts, value: bool | None) -> None:
    thread_id, signal = waiting(parts)
    body, bearer = body_of(thread_id, signal, value), {"HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}
    assert ask(parts, "/answer", body, **bearer) == (202, {"ok": True})
    advance(parts.runner, thread_id)
    assert parts.runner.get_state(thread_id).values.to_json()["healthy"] is value
    status, told = ask(parts, "/answer", body, **bearer)
    assert status == 409 and told["error"]


def test_without_the_token_nothing_is_answered(parts: Parts) -> None:
    thread_id, signal = waiting(parts)
    for headers in ({}, {"HTTP_AUTHORIZATION": "Bearer wrong"}):
        status, _ = ask(parts, "/answer", body_of(thread_id, signal, True), **headers)
        assert status == 401
    assert [one.id for one in parts.checkpointer.interrupts(thread_id)] == [signal]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"thread": "x"}', b'{"thread": 1, "interrupt": 2, "as": 3}'])
def test_a_body_that_cannot_be_read_is_told_what_it_needs(parts: Parts, body: bytes) -> None:
    status, told = ask(parts, "/answer", body, HTTP_AUTHORIZATION=f"Bearer {TOKEN}")
    assert status == 400 and "body" in told["error"]


def test_a_machine_does_not_decide_reviews(parts: Parts) -> None:
    flow = CATALOG.by_command("/plan-hike")
    form = {"request": "a dry hike on Saturday", "date": "", "criteria": ""}
    thread_id = start_run(parts, flow, Start(form=form, who="U0ANA0001", channel="C0HIKES01", team="T0SIGNOFF"))
    advance(parts.runner, thread_id)
    review = approvals.of_root(parts.database, thread_id)[0]
    bearer = {"HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}
    status, told = ask(parts, "/answer", body_of(thread_id, review.id, {"verdict": "approve"}), **bearer)
    assert status == 409 and "signoff decide" in told["error"]
    found = approvals.find(parts.database, review.id)
    assert found is not None and found.status == "pending"


def sent_into_silence(tmp_path: Path, parts: Parts) -> str:
    """The key of a text whose answer was lost."""
    parts.performer._senders = {**parts.performer._senders, "sms": Silent()}
    flow = CATALOG.by_command("/plan-hike")
    form = {"request": "a dry hike on Saturday", "date": "", "criteria": ""}
    thread_id = start_run(parts, flow, Start(form=form, who="U0ANA0001", channel="C0HIKES01", team="T0SIGNOFF"))
    advance(parts.runner, thread_id)
    review = approvals.of_root(parts.database, thread_id)[0]
    decide(parts, review.id, "U0BEN0002", Wish(verdict="approve"))
    advance(parts.runner, thread_id)
    text = next(row for row in ledger.rows(parts.database, thread_id) if row.kind == "sms")
    assert text.status == "sending"
    return ledger.key_of(text)


def status_of(parts: Parts, key: str) -> tuple[str, str]:
    """How an effect stands, and the other side's name for it."""
    row = next(row for row in ledger.rows(parts.database, key.partition(":")[0]) if ledger.key_of(row) == key)
    return row.status, str((row.receipt or {}).get("ref", ""))


def call_back(parts: Parts, key: str, secret: str = "twilio-secret") -> int:
    """Twilio tells that a text exists."""
    validator = pytest.importorskip("twilio.request_validator").RequestValidator(secret)
    form = {"MessageSid": "SM42", "MessageStatus": "delivered"}
    query = urlencode({"key": key})
    signature = validator.compute_signature(f"{STATUS_URL}?{query}", form)
    return ask(parts, "/twilio", urlencode(form).encode(), query, HTTP_X_TWILIO_SIGNATURE=signature)[0]


def test_a_signed_callback_settles_a_text_whose_answer_was_lost(tmp_path: Path, parts: Parts) -> None:
    key = sent_into_silence(tmp_path, parts)
    assert call_back(parts, key, secret="another") == 403
    assert status_of(parts, key) == ("sending", "")
    assert call_back(parts, key) == 200
    assert status_of(parts, key) == ("sent", "SM42")
    assert call_back(parts, key) == 200
    assert call_back(parts, "nobody:1:0") == 404


def test_a_callback_also_answers_the_question_that_was_asked_about_it(tmp_path: Path, parts: Parts) -> None:
    key = sent_into_silence(tmp_path, parts)
    ledger.outcome(parts.database, key, 1, Result("unknown"))
    assert call_back(parts, key) == 200
    assert status_of(parts, key)[0] == "sent"
    question = approvals.find(parts.database, question_id(key, 1))
    assert question is not None and (question.status, question.answer) == ("answered", "sent")
