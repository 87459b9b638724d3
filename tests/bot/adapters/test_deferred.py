"""The model is built once, and not before it is needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bot.adapters.deferred import Deferred
from graphs.ports import Model, ModelReply, ModelRequest

REQUEST = ModelRequest(model="m", system="", turns=[])


class Echo:
    """Answers with the name of the model it was asked for."""

    provider = "echo"

    def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply(content=[{"type": "text", "text": request.model}], stop_reason="end_turn")


def test_it_is_built_by_the_first_call_and_only_once() -> None:
    built: list[Model] = []

    def build() -> Model:
        built.append(Echo())
        return built[-1]

    model = Deferred("echo", build)
    assert (model.provider, built) == ("echo", [])
    with ThreadPoolExecutor(8) as hands:
        replies = list(hands.map(model.complete, [REQUEST] * 16))
    assert [reply.text for reply in replies] == ["m"] * 16
    assert len(built) == 1
