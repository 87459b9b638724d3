"""The simulated Messages API, through the real client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from bot.adapters.simulated import SimulatedApi, read_script, simulated
from graphs.ports import Busy, Misconfigured, Model, ModelRequest, Nonsense, PortError
from tests.bot.adapters.walk import Walk, plan_of, says

HELLO = ModelRequest(model="claude-sonnet-5-5", system="", turns=[says("Hello")])


def test_the_default_script_shows_a_plan_not_done_an_unreadable_verdict_and_a_pass_within_three_rounds() -> None:
    walk = Walk(simulated(), rain=lambda name, hour: 70 if name == "heron-flats" and hour <= 10 else 10)
    first = walk.work("A walk for six on Saturday.\nDate: 2026-12-05")
    verdict = json.loads(walk.judge(first.text))
    assert verdict["done"] is False
    assert "7:00 and 10:00" in verdict["feedback"]
    second = walk.work(f"Not done yet: {json.dumps(verdict['feedback'])}")
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(walk.judge(second.text))
    third = walk.work("The evaluator's reply could not be read.")
    assert json.loads(walk.judge(third.text)) == {"done": True, "needs_user": "", "feedback": ""}
    assert [plan_of(r)["start"] for r in (first, second, third)] == ["11:30", "08:00", "08:00"]
    assert [plan_of(r)["trailhead"] for r in (first, second)] == ["heron-flats", "fern-hollow"]


def test_it_says_simulated_wherever_people_look() -> None:
    model = simulated("straight")
    walk = Walk(model)
    reply = walk.work("A walk.\nDate: 2026-12-05")
    assert model.provider == "simulated"
    assert reply.model == "simulated/claude-sonnet-5-5"
    assert "Simulated" in reply.text
    assert "imulated" in walk.write(reply.text)
    assert reply.request_id.startswith("req_simulated_")
    assert "imulated" in model.complete(HELLO).text


def test_the_same_request_gets_the_same_reply_and_another_one_other_ids() -> None:
    one, two = simulated("straight"), simulated("straight")
    assert one.complete(HELLO) == two.complete(HELLO)
    other = HELLO.model_copy(update={"turns": [says("Goodbye")]})
    assert one.complete(HELLO).request_id != one.complete(other).request_id


def test_replies_begin_with_a_thinking_block_and_cost_something() -> None:
    reply = simulated().complete(HELLO)
    assert [block["type"] for block in reply.content if isinstance(block, dict)] == ["thinking", "text"]
    assert reply.usage.input_tokens > 10
    assert reply.usage.output_tokens > 10


def test_a_conversation_must_stay_with_its_model() -> None:
    model, walk = simulated("straight"), Walk(simulated("straight"))
    walk.work("A walk.\nDate: 2026-12-05")
    turns = [*walk.turns, says("Another one")]
    with pytest.raises(PortError, match="thinking blocks"):
        model.complete(ModelRequest(model="claude-opus-5-5", system="You plan hikes.", turns=turns))


def test_calls_are_remembered_and_finished_ones_written_down(tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    api = SimulatedApi(faults="timeout,529,ok", journal=journal)
    model = simulated(api=api)
    for error in (Busy, Busy):
        with pytest.raises(error):
            model.complete(HELLO)
    reply = model.complete(HELLO)
    assert [call["model"] for call in api.calls] == ["claude-sonnet-5-5"] * 3
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["status"] for line in lines] == [529, 200]
    assert lines[1]["request_id"] == reply.request_id


def test_the_journal_counts_calls_of_several_processes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from bot.adapters.simulated import simulated;"
        "from graphs.ports import ModelRequest, Turn;"
        "turn = Turn(role='user', content=[{'type': 'text', 'text': 'hi'}]);"
        "model = simulated(journal=Path(sys.argv[1]));"
        "[model.complete(ModelRequest(model='m', system='', turns=[turn])) for _ in range(20)]"
    )
    journal = tmp_path / "calls.jsonl"
    children = [subprocess.Popen([sys.executable, "-c", code, str(journal)]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len(lines) == 40
    assert len({line["pid"] for line in lines}) == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("529", Busy),
        ("429:30", Busy),
        ("500", Busy),
        ("503", Busy),
        ("402", Busy),
        ("timeout", Busy),
        ("reset", Busy),
        ("refused", Busy),
        ("401", Misconfigured),
        ("403", Misconfigured),
        ("404", Misconfigured),
        ("400", PortError),
        ("html", Nonsense),
        ("bad_json", Nonsense),
        ("no_usage", Nonsense),
    ],
)
def test_a_fault_comes_once_and_then_all_is_well(fault: str, error: type[PortError]) -> None:
    model = simulated(faults=fault)
    with pytest.raises(error) as caught:
        model.complete(HELLO)
    assert type(caught.value) is error
    assert model.complete(HELLO).text


@pytest.mark.parametrize(
    ("fault", "stop_reason"), [("max_tokens", "max_tokens"), ("empty", "end_turn"), ("refusal", "refusal")]
)
def test_a_spoilt_reply_has_no_text(fault: str, stop_reason: str) -> None:
    reply = simulated(faults=fault).complete(HELLO)
    assert (reply.text, reply.stop_reason) == ("", stop_reason)


def test_a_short_limit_cuts_the_reply() -> None:
    cut = simulated().complete(HELLO.model_copy(update={"max_tokens": 2}))
    assert (cut.text, cut.stop_reason) == ("Simulate", "max_tokens")
    walk = Walk(simulated("straight", faults="ok"))
    walk.model = _Stingy(walk.model)
    reply = walk.work("A walk.\nDate: 2026-12-05")
    assert (reply.stop_reason, list(reply.tool_uses)) == ("max_tokens", [])


class _Stingy:
    """Allows a single token."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.provider = model.provider

    def complete(self, request: ModelRequest) -> Any:
        room = 1 if len(request.turns) > 1 else 100
        return self._model.complete(request.model_copy(update={"max_tokens": room}))


def test_unknown_faults_and_scripts_are_refused_with_those_there_are() -> None:
    with pytest.raises(Misconfigured, match=r"'530'.*bad_json"):
        simulated(faults="ok, 530")
    with pytest.raises(Misconfigured, match=r"'odd'.*never_done"):
        read_script("odd")
    assert read_script("needs_user") == "needs_user"


def test_a_schema_nobody_knows_gets_the_smallest_value_that_follows_it() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "risk": {"enum": ["low", "high"]},
            "fixed": {"const": 4},
            "why": {"type": "string"},
            "n": {"type": "integer"},
            "ok": {"type": "boolean"},
            "many": {"type": "array", "items": {"type": "string"}},
            "ref": {"$ref": "#/$defs/R"},
            "either": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "none": {"type": "null"},
        },
        "$defs": {"R": {"type": "object", "properties": {"x": {"type": "number"}}}},
    }
    reply = simulated().complete(HELLO.model_copy(update={"reply_schema": schema}))
    assert json.loads(reply.text) == {
        "risk": "low",
        "fixed": 4,
        "why": "simulated",
        "n": 0,
        "ok": False,
        "many": [],
        "ref": {"x": 0},
        "either": 0,
        "none": None,
    }


def test_another_flow_can_bring_its_own_role() -> None:
    api = SimulatedApi(
        roles=[(lambda ask: "refund" in ask.system, lambda ask, script: ([{"type": "text", "text": "R"}], "end_turn"))]
    )
    assert simulated(api=api).complete(HELLO.model_copy(update={"system": "You refund."})).text == "R"
    assert "hike planner" in simulated(api=api).complete(HELLO).text


def test_it_takes_its_time_where_told_to() -> None:
    assert simulated(seconds=0.01).complete(HELLO).text


def test_only_messages_are_served() -> None:
    http = httpx2.Client(transport=httpx2.MockTransport(SimulatedApi()))
    client = anthropic.Anthropic(api_key="k", base_url="http://simulated.invalid", max_retries=0, http_client=http)
    with pytest.raises(anthropic.NotFoundError, match="there is no /v1/models/x"):
        client.models.retrieve("x")
    assert http.post("http://simulated.invalid/v1/complete", content=b"{").status_code == 404
