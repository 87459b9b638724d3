"""The practice API, in-process, over WSGI and over a socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from waitress import wasyncore
from waitress.server import create_server

from bot.adapters.practice import Practice
from bot.adapters.trailheads import read_trailheads
from tests.bot.adapters.clock import StillClock

TEXT = {"to": "+15035550134", "body": "Fern Hollow at 8", "key": "run/1"}


@pytest.fixture
def practice() -> Practice:
    return Practice(clock=StillClock())


@pytest.fixture(params=["in process", "wsgi", "socket"])
def client(request: pytest.FixtureRequest, practice: Practice) -> Iterator[httpx2.Client]:
    if request.param == "in process":
        with practice.client() as client:
            yield client
    elif request.param == "wsgi":
        transport = httpx2.WSGITransport(practice.wsgi)
        with httpx2.Client(transport=transport, base_url="http://practice.invalid") as client:
            yield client
    else:
        yield from served(practice)


def served(practice: Practice) -> Iterator[httpx2.Client]:
    server = create_server(practice.wsgi, host="127.0.0.1", port=0, threads=2)
    thread = threading.Thread(target=server.run)
    thread.start()
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.effective_port}", trust_env=False) as client:
        yield client
    # First those who answer, then the loop that listens: the other way round the former write to closed files.
    server.task_dispatcher.shutdown()
    server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
    thread.join()


def test_a_text_is_taken_and_can_be_asked_for(client: httpx2.Client, practice: Practice) -> None:
    answer = client.post("/messages", json=TEXT)
    assert answer.status_code == 201
    entry = {"kind": "sms", **TEXT, "at": "2026-12-03T17:20:30+00:00", "sid": answer.json()["sid"]}
    assert practice.outbox() == [entry]
    assert client.get("/messages", params={"key": "run/1"}).json() == {"messages": [entry]}


def test_texts_are_found_by_what_is_given(client: httpx2.Client) -> None:
    for to, body in (("+15035550134", "one"), ("+15035550135", "one"), ("+15035550134", "two")):
        client.post("/messages", json={"to": to, "body": body, "key": "k"})
    client.post("/posts", json={"to": "C0HIKES01", "body": "one", "key": "k"})

    def count(path: str = "/messages", **params: str) -> int:
        return len(client.get(path, params=params).json()[path.strip("/")])

    assert (count(), count(to="+15035550134"), count(body="one"), count(to="+15035550134", body="two")) == (3, 2, 2, 1)
    assert (count(key="k"), count(key="x"), count("/posts"), count("/posts", body="two")) == (3, 0, 1, 0)
    assert count(since="2026-12-03T17:20:30+00:00") == 3
    assert count(since="2026-12-03T17:20:31+00:00") == 0


def test_the_same_key_twice_is_two_texts_as_with_a_real_vendor(client: httpx2.Client, practice: Practice) -> None:
    sids = {client.post("/messages", json=TEXT).json()["sid"] for _ in range(2)}
    assert len(sids) == 2
    assert len(practice.outbox()) == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({**TEXT, "to": "5035550134"}, 21211),
        ({**TEXT, "body": "x" * 1601}, 21617),
        ({**TEXT, "body": ""}, 21602),
        ({**TEXT, "key": 7}, 21602),
        ([], None),
        ("{", None),
    ],
)
def test_a_wrong_text_is_refused(client: httpx2.Client, practice: Practice, body: Any, code: int | None) -> None:
    content = body if isinstance(body, str) else json.dumps(body)
    answer = client.post("/messages", content=content)
    assert answer.status_code == 400
    assert answer.json().get("code") == code
    assert practice.outbox() == []


@pytest.mark.parametrize(("fault", "status"), [("429", 429), ("500", 500), ("503", 503), ("html", 200)])
def test_a_fault_comes_once_and_takes_nothing(
    client: httpx2.Client, practice: Practice, fault: Any, status: int
) -> None:
    practice.inject(fault)
    assert client.get("/messages").json() == {"messages": []}
    assert client.post("/messages", json=TEXT).status_code == status
    assert practice.outbox() == []
    assert client.post("/messages", json=TEXT).status_code == 201


@pytest.mark.parametrize(("fault", "taken"), [("drop", 0), ("take_then_drop", 1)])
def test_a_connection_can_be_dropped_before_and_after(practice: Practice, fault: Any, taken: int) -> None:
    clients = [practice.client()]
    sockets = served(practice)
    clients.append(next(sockets))
    for number, client in enumerate(clients, 1):
        practice.inject(fault, path="/posts")
        with pytest.raises(httpx2.TransportError):
            client.post("/posts", json=TEXT)
        assert len(practice.outbox()) == taken * number
    assert list(sockets) == []


def test_unknown_faults_are_refused(practice: Practice) -> None:
    with pytest.raises(ValueError, match="take_then_drop"):
        practice.inject("530")  # type: ignore[arg-type]


def test_the_trailheads_can_be_loaded_again(client: httpx2.Client) -> None:
    trailheads = read_trailheads(client.get("/trailheads.geojson").text)
    assert len(trailheads) == 8
    assert trailheads[0].id == "fern-hollow"


def test_the_forecast_answers_like_open_meteo(client: httpx2.Client, practice: Practice) -> None:
    where = {"latitude": "45.5", "longitude": "-122.3"}
    assert client.get("/v1/forecast", params=where).json()["timezone"] == "GMT"
    refused = client.get("/v1/forecast", params={**where, "hourly": "luck"})
    assert refused.status_code == 400
    assert refused.json()["error"] is True
    practice.inject("429", path="/v1/forecast")
    assert client.get("/v1/forecast", params=where).status_code == 429


def test_other_routes_are_not_found(client: httpx2.Client) -> None:
    assert client.get("/").status_code == 404
    assert client.put("/messages").status_code == 404
