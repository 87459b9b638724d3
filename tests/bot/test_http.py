"""Slack's requests over HTTP instead of Socket Mode: signed, answered in time, with a health check beside them."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from bot.sandbox.http_requests import HttpTransport, signature
from bot.sandbox.server import SIGNING_SECRET
from bot.serving import serve_http
from tests.bot.scene import ANA, BEN, Scene, everything


@pytest.fixture
def served(new_scene: Callable[..., Scene]) -> Iterator[Scene]:
    """A bot that Slack reaches over HTTP."""
    scene = new_scene(http=True, http_port=free_port())
    stop = threading.Event()
    thread = threading.Thread(target=serve_http, args=(scene.bot, stop))
    thread.start()
    scene.settles(lambda: answers(scene), "the port to be open")
    scene.use(HttpTransport(f"{address(scene)}/slack/events", SIGNING_SECRET))
    yield scene
    stop.set()
    thread.join()


def test_a_run_goes_from_command_to_text_over_http(served: Scene) -> None:
    assert served.ask().status == "acked"
    card = served.card()
    view = served.opened(BEN, card, "Edit", "Edit draft 1")
    delivery = served.submit(BEN, view, text="")
    assert delivery is None or delivery.status == "acked"
    served.click(BEN, card, "Approve")
    served.ended("finished")
    assert len(served.outbox()) == 1


def test_a_request_with_a_wrong_signature_is_refused_and_starts_nothing(served: Scene) -> None:
    served.use(HttpTransport(f"{address(served)}/slack/events", "another-secret"))
    delivery = served.ask()
    assert (delivery.status, delivery.problem) == ("failed", "http_error 401")
    assert served.runs() == []


def test_an_old_request_is_refused_even_if_it_is_signed(served: Scene) -> None:
    body = b"command=%2Fplan-hike&text=Saturday&user_id=U0ANA0001&channel_id=C0HIKES01&trigger_id=1&team_id=T0SIGNOFF"
    then = str(int(time.time()) - 600)
    status, _ = post(served, body, {"X-Slack-Request-Timestamp": then, "X-Slack-Signature": sign(then, body)})
    assert status == 401
    assert served.runs() == []


def test_a_refused_edit_is_told_in_the_answer_to_the_request(served: Scene) -> None:
    served.ask()
    view = served.opened(BEN, served.card(), "Edit", "Edit draft 1")
    served.submit(BEN, view, text="<!channel> come along")
    shown = served.workspace.view(view.id)
    assert shown is not None and "<!channel>" in str(shown.errors)
    assert served.approval().draft_version == 1


def test_the_health_check_says_how_the_bot_is(served: Scene) -> None:
    served.settles(lambda: get(served, "/healthz")[0] == 200, "the first sweep")
    served.bot.sweeper.stop()
    served.clock.advance(minutes=5)
    status, body = get(served, "/healthz")
    assert (status, json.loads(body)["wrong"]) == (503, ["no sweep has been made lately"])


def test_nothing_else_is_served(served: Scene) -> None:
    assert get(served, "/")[0] == 404
    assert get(served, "/slack/events")[0] in (404, 405)


def test_a_note_to_one_person_arrives_over_http_too(served: Scene) -> None:
    served.ask()
    served.click(ANA, served.card(), "Approve")
    assert "somebody else" in everything(served.told(ANA, "somebody else"))


def free_port() -> int:
    """A port nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def address(scene: Scene) -> str:
    return f"http://127.0.0.1:{scene.bot.settings.http_port}"


def answers(scene: Scene) -> bool:
    try:
        return get(scene, "/healthz")[0] > 0
    except OSError:
        return False


def get(scene: Scene, path: str) -> tuple[int, str]:
    return _fetch(urllib.request.Request(address(scene) + path))


def post(scene: Scene, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return _fetch(urllib.request.Request(f"{address(scene)}/slack/events", body, {**form, **headers}))


def sign(timestamp: str, body: bytes) -> str:
    return signature(SIGNING_SECRET, timestamp, body)


def _fetch(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
