"""The hike planner through the real `anthropic` client, against two other readings of the Messages API."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from bot.adapters.claude import claude
from graphs.engine import Snapshot
from graphs.engine.errors import NodeFailed
from graphs.plan_hike import FLOW, MAX_TURNS
from tests.bot.scene import Scene, everything
from tests.graphs.hike.stage import CHANNEL, GOOD_TEXT, GROUP, Stage, hike
from tests.outside.aimock import Aimock, calls, says

pytestmark = pytest.mark.peer

WORKER, EVALUATOR, WRITER = "You plan hikes", "You judge", "You write the text message"
FORECAST = {"trailhead": "fern-hollow", "date": "2026-12-05"}
PLAN = 'It is near and dry.\nPLAN {"trailhead": "fern-hollow", "start": "08:00", "bring": "water, layers"}'
GOOD = json.dumps({"done": True, "needs_user": "", "feedback": ""})


def stage_of(base_url: str) -> Stage:
    """A stage whose model is at that address."""
    stage = Stage()
    model = claude("key", base_url, clock=lambda: stage.time)
    stage.runner = stage.with_model(model)
    return stage


def told_end(snapshot: Snapshot) -> str:
    return FLOW.ending(hike(snapshot), FLOW.outcome(hike(snapshot)))


# ---- llmock: tools, faults, and its verdict on the client -----------------------------------------------------------


def bodies(llmock: LLMock) -> list[dict[str, Any]]:
    return [record.body for record in llmock.requests]


def script(llmock: LLMock, *, plan: str = PLAN) -> None:
    """What a model says that plans well."""
    llmock.call_tool("list_trailheads").call_tool("forecast", FORECAST)
    llmock.reply(plan).reply(GOOD).reply(GOOD_TEXT)


def test_a_plan_is_made_with_tools_judged_written_and_sent(llmock: LLMock) -> None:
    script(llmock)
    stage = stage_of(llmock.base_url("anthropic"))
    shown = stage.plan()
    assert (shown.status, hike(shown).draft) == ("waiting", GOOD_TEXT)
    assert stage.decide(shown, "approve").status == "finished"
    assert stage.post.sent == [("sms", GROUP, GOOD_TEXT), ("post", CHANNEL, GOOD_TEXT)]
    llmock.assert_resilient(strict=True)


def test_every_tool_call_is_answered_in_the_next_message(llmock: LLMock) -> None:
    script(llmock)
    stage_of(llmock.base_url("anthropic")).plan()
    messages = bodies(llmock)[2]["messages"]
    asked = [[block["id"] for block in m["content"] if block["type"] == "tool_use"] for m in messages]
    answered = [[block.get("tool_use_id") for block in m["content"]] for m in messages]
    assert [len(ids) for ids in asked] == [0, 1, 0, 1, 0]
    assert (answered[2], answered[4]) == (asked[1], asked[3])


@pytest.mark.parametrize("fault", ["unknown_tool", "malformed_arguments"])
def test_a_broken_tool_call_is_answered_with_an_error_and_the_plan_goes_on(llmock: LLMock, fault: str) -> None:
    llmock.break_tool_call(fault).call_tool("forecast", FORECAST)
    script(llmock)
    stage = stage_of(llmock.base_url("anthropic"))
    shown = stage.plan()
    assert hike(shown).draft == GOOD_TEXT
    (result,) = bodies(llmock)[1]["messages"][-1]["content"]
    assert result["is_error"] is True
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_model_puts_the_run_to_sleep_and_no_finished_call_is_made_again(llmock: LLMock, status: int) -> None:
    script(llmock)
    stage = stage_of(llmock.base_url("anthropic"))
    shown = stage.plan()
    llmock.reset().fail(status, retry_after=40).reply(PLAN).reply(GOOD).reply(GOOD_TEXT)
    asleep = stage.decide(shown, "changes", reason="something nearer, please")
    assert asleep.status == "sleeping"
    assert asleep.wake_at is not None
    assert (datetime.fromtimestamp(asleep.wake_at / 1_000_000, UTC) - stage.time).total_seconds() == 40
    assert len(llmock.requests) == 1
    stage.later(seconds=41)
    assert stage.runner.advance(asleep.thread_id).status == "waiting"
    assert [record.status for record in llmock.requests] == [status, 200, 200, 200]


def test_an_outage_is_waited_for_and_not_hammered(llmock: LLMock) -> None:
    llmock.outage()
    stage = stage_of(llmock.base_url("anthropic"))
    asleep = stage.plan()
    for _ in range(3):
        assert asleep.status == "sleeping"
        stage.later(seconds=31)
        asleep = stage.runner.advance(asleep.thread_id)
    assert len(llmock.requests) == 4
    llmock.reset()
    script(llmock)
    stage.later(seconds=31)
    assert hike(stage.runner.advance(asleep.thread_id)).draft == GOOD_TEXT


@pytest.mark.parametrize(
    ("status", "words"), [(401, "API key"), (403, "API key"), (404, "knows no such model or address")]
)
def test_what_only_an_operator_can_mend_halts_the_run_and_says_so(llmock: LLMock, status: int, words: str) -> None:
    llmock.fail(status)
    halted = stage_of(llmock.base_url("anthropic")).plan()
    assert halted.status == "halted"
    assert words in halted.error
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


def test_a_conversation_that_the_api_refuses_fails_the_run_and_is_not_sent_again(llmock: LLMock) -> None:
    llmock.context_overflow()
    with pytest.raises(NodeFailed, match="refuses this conversation"):
        stage_of(llmock.base_url("anthropic")).plan()
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


def test_a_sleeping_run_is_woken_when_the_model_said_and_not_before(
    llmock: LLMock, new_scene: Callable[..., Scene], tmp_path: Path
) -> None:
    """In real time, with the bot's own sweeps: llmock measures how long its client waited."""
    scene = new_scene(
        model="claude", anthropic_api_key="key", anthropic_base_url=llmock.base_url("anthropic"), rounds=1
    )
    llmock.fail(529, retry_after=0.5).rate_limit(retry_after=0.5)
    llmock.call_tool("list_trailheads").reply("There is no such day.").reply("Nor such a place.")
    scene.ask("Wednesday, not far")
    scene.ended("gave_up")
    llmock.assert_resilient(strict=True)
    assert [record.status for record in llmock.requests][:3] == [529, 429, 200]


# ---- aimock: why a model stops --------------------------------------------------------------------------------------


def looks_up(aimock: Aimock, *then: dict[str, Any]) -> None:
    """The worker looks up a forecast, then says these things."""
    aimock.plays(WORKER, calls("forecast", FORECAST), *then)


def rooms(aimock: Aimock, role: str) -> list[int]:
    return [body["max_tokens"] for body in aimock.asked(role)]


def test_a_refusal_ends_the_run_at_once_with_nothing_sent(aimock: Aimock) -> None:
    looks_up(aimock, says("I can't help with that.", "refusal"))
    stage = stage_of(aimock.url)
    ended = stage.plan()
    assert ended.status == "gave_up"
    assert "The model refused to plan this hike; word the request differently." in told_end(ended)
    assert "I can't help" not in told_end(ended)
    assert len(aimock.asked(WORKER)) == 2
    assert stage.post.sent == []


def test_an_evaluator_that_refuses_ends_the_run(aimock: Aimock) -> None:
    looks_up(aimock, says(PLAN))
    aimock.plays(EVALUATOR, says("No.", "refusal"))
    assert "The evaluator refused" in told_end(stage_of(aimock.url).plan())
    assert len(aimock.asked(EVALUATOR)) == 1


def test_a_writer_that_refuses_is_replaced_by_a_text_made_of_the_plan(aimock: Aimock) -> None:
    looks_up(aimock, says(PLAN))
    aimock.plays(EVALUATOR, says(GOOD))
    aimock.plays(WRITER, says("I won't.", "refusal"))
    shown = stage_of(aimock.url).plan()
    assert (shown.status, hike(shown).composed) == ("waiting", True)
    assert "Fern Hollow" in hike(shown).draft
    assert "won't" not in hike(shown).draft


def test_a_paused_turn_is_sent_back_as_it_is_and_goes_on(aimock: Aimock) -> None:
    looks_up(aimock, says("Let me think about the drive.", "pause_turn"), says(PLAN))
    aimock.plays(EVALUATOR, says(GOOD))
    aimock.plays(WRITER, says(GOOD_TEXT))
    assert hike(stage_of(aimock.url).plan()).draft == GOOD_TEXT
    last = aimock.asked(WORKER)[-1]["messages"][-1]
    assert (last["role"], last["content"]) == ("assistant", "Let me think about the drive.")


def test_a_model_that_pauses_for_ever_is_stopped(aimock: Aimock) -> None:
    aimock.plays(WORKER, *[says(f"Thought {number}.", "pause_turn") for number in range(MAX_TURNS)])
    ended = stage_of(aimock.url).plan()
    assert ended.status == "gave_up"
    assert f"looked things up {MAX_TURNS} times" in told_end(ended)
    assert len(aimock.asked(WORKER)) == MAX_TURNS


def test_an_answer_cut_short_is_asked_for_once_more_with_twice_the_room(aimock: Aimock) -> None:
    looks_up(aimock, says(PLAN[:30], "max_tokens"), says(PLAN))
    aimock.plays(EVALUATOR, says(GOOD))
    aimock.plays(WRITER, says(GOOD_TEXT))
    assert hike(stage_of(aimock.url).plan()).draft == GOOD_TEXT
    first, short, longer = rooms(aimock, WORKER)
    assert (short, longer) == (first, 2 * first)


def test_half_a_tool_call_is_never_run(aimock: Aimock) -> None:
    half = calls("forecast", {"trailhead": "lantern-ridge", "date": "2026-12-05"}, "max_tokens")
    aimock.plays(WORKER, half, half)
    stage = stage_of(aimock.url)
    ended = stage.plan()
    assert ended.status == "gave_up"
    assert "did not fit, even with twice the room" in told_end(ended)
    assert stage.club.asked == []


def test_a_full_context_window_ends_the_run_without_another_try(aimock: Aimock) -> None:
    looks_up(aimock, says(PLAN, "model_context_window_exceeded"))
    ended = stage_of(aimock.url).plan()
    assert ended.status == "gave_up"
    assert "so there is no whole plan" in told_end(ended)
    assert len(aimock.asked(WORKER)) == 2


def test_a_reason_that_nobody_knows_yet_counts_as_cut_off(aimock: Aimock) -> None:
    looks_up(aimock, says(PLAN, "gone_fishing"), says(PLAN, "gone_fishing"))
    ended = stage_of(aimock.url).plan()
    assert "was cut off twice; try again later" in told_end(ended)
    assert len(aimock.asked(WORKER)) == 3


def test_a_verdict_that_does_not_fit_counts_as_not_done(aimock: Aimock) -> None:
    looks_up(aimock, *[says(PLAN)] * 3)
    aimock.plays(EVALUATOR, *[says(GOOD[:9], "max_tokens")] * 6)
    ended = stage_of(aimock.url).plan()
    assert (ended.status, hike(ended).rounds) == ("gave_up", 3)
    assert "could not be read" in told_end(ended)
    assert "could not be read" in aimock.asked(WORKER)[2]["messages"][-1]["content"]
    assert len(rooms(aimock, EVALUATOR)) == 6


@pytest.mark.parametrize(
    ("reason", "words"), [("refusal", "refused to plan"), ("model_context_window_exceeded", "did not fit")]
)
def test_the_channel_and_the_requester_are_told_why_there_is_no_plan(
    aimock: Aimock, new_scene: Callable[..., Scene], reason: str, words: str
) -> None:
    aimock.plays(WORKER, says("No.", reason))
    scene = new_scene(model="claude", anthropic_api_key="key", anthropic_base_url=aimock.url)
    scene.ask()
    scene.ended("gave_up")
    assert words in everything(scene.said("could not be planned"))
    scene.told("U0ANA0001", words)
    assert scene.outbox() == []
