"""Claude's adapter against somebody else's reading of the Messages API, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock
from llmock.testing import LLMockServer

from bot.adapters.claude import Claude, claude
from graphs.ports import Busy, ModelRequest, PortError, Turn
from tests.bot.adapters.clock import StillClock
from tests.bot.adapters.walk import TOOLS, says

pytestmark = [pytest.mark.peer, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    """The peer's server, started by hand, for its plugin would be loaded for every other test too."""
    with LLMockServer() as server:
        yield server


@pytest.fixture
def llmock(server: LLMockServer) -> LLMock:
    llmock = LLMock(server)
    llmock.reset()
    return llmock


@pytest.fixture
def model(llmock: Any) -> Claude:
    return claude("key", llmock.base_url("anthropic"), clock=StillClock())


def request(*turns: Turn) -> ModelRequest:
    return ModelRequest(model="claude-sonnet-5-5", system="You plan hikes.", turns=list(turns), tools=TOOLS)


def test_a_tool_is_called_answered_and_a_plan_given(llmock: Any, model: Claude) -> None:
    llmock.call_tool("forecast", {"trailhead": "fern-hollow", "date": "2026-12-05"})
    llmock.reply("Fern Hollow at 08:00.")
    first = model.complete(request(says("A walk.")))
    (use,) = first.tool_uses
    assert (first.stop_reason, use["name"]) == ("tool_use", "forecast")
    assert use["input"] == {"trailhead": "fern-hollow", "date": "2026-12-05"}
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "dry"}
    turns = [says("A walk."), Turn(role="assistant", content=first.content), Turn(role="user", content=[result])]
    last = model.complete(request(*turns))
    assert (last.stop_reason, last.text) == ("end_turn", "Fern Hollow at 08:00.")
    assert last.usage.input_tokens > 0


def test_limits_and_overload_are_busy_and_not_retried(llmock: Any, model: Claude) -> None:
    llmock.rate_limit(retry_after=30)
    llmock.fail(529)
    with pytest.raises(Busy) as caught:
        model.complete(request(says("A walk.")))
    assert caught.value.until == StillClock().after(seconds=30)
    with pytest.raises(Busy):
        model.complete(request(says("A walk.")))
    assert len(llmock.requests) == 2


def test_an_outage_is_busy(llmock: Any, model: Claude) -> None:
    llmock.outage()
    with pytest.raises(Busy):
        model.complete(request(says("A walk.")))


def test_a_conversation_that_is_too_long_is_an_error(llmock: Any, model: Claude) -> None:
    llmock.context_overflow()
    with pytest.raises(PortError) as caught:
        model.complete(request(says("A walk.")))
    assert type(caught.value) is PortError
