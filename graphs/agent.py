"""What every flow with a model shares: calling it, reading why it stopped, running its tools, nudging it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from graphs.engine import Halt, Later, Message, RetryPolicy, Runtime, Spent, Value
from graphs.ports import (
    Busy,
    Deps,
    Misconfigured,
    ModelReply,
    ModelRequest,
    Models,
    Nonsense,
    OverBudget,
    Tool,
    Turn,
)

Outcome = Literal["tools", "said", "paused", "empty", "truncated", "refused", "incomplete"]
"""What a reply amounts to: tools to run, a text, a turn to send back as it is; or nothing that can be used."""

UNREADABLE = RetryPolicy(max_attempts=3, retry_on=(Nonsense,))
"""For nodes that call out: an answer that cannot be read is asked for again before the run fails."""

LONGEST_ERROR = 400


class ToolError(Exception):
    """A tool cannot do what the model asked; the message tells the model what to do instead."""


@dataclass(frozen=True, slots=True)
class Tooling:
    """A tool as the model sees it, and what it does: `run` gets the checked arguments and returns JSON.

    `run` raises `ToolError` or `Nonsense` for what the model should hear of.
    """

    name: str
    description: str
    arguments: type[Value]
    run: Callable[[Any], JsonValue]

    @property
    def offer(self) -> Tool:
        """The tool for a request."""
        return Tool(name=self.name, description=self.description, input_schema=schema_of(self.arguments))


def schema_of(kind: type[Value]) -> dict[str, JsonValue]:
    """A flat value's JSON Schema with nothing in it that the API refuses: types and names, all of them required."""
    described = kind.model_json_schema()["properties"]
    properties: dict[str, JsonValue] = {
        name: {key: part[key] for key in ("type", "description") if key in part} for name, part in described.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def pin(models: Models) -> str:
    """The model names as a run record keeps them."""
    return f"{models.worker}|{models.writer}"


def models_of(runtime: Runtime[Deps]) -> Models:
    """The models the run was started with, or today's if none were pinned."""
    worker, _, writer = runtime.run.model.partition("|")
    return Models(worker or runtime.deps.models.worker, writer or worker or runtime.deps.models.writer)


@contextmanager
def patience() -> Iterator[None]:
    """Around a call outside: the run sleeps where waiting helps, and halts where only a person can help."""
    try:
        yield
    except Busy as error:
        raise Later(error.until, str(error)) from error
    except OverBudget as error:
        raise (Later(error.until, str(error)) if error.until else Halt(str(error))) from error
    except Misconfigured as error:
        raise Halt(str(error)) from error


def ask_model(runtime: Runtime[Deps], name: str, request: ModelRequest) -> ModelReply:
    """One model call, recorded under `name` as soon as it returns.

    The run sleeps while the model is busy or the budget is used up, and halts where only a person can help. Raises
    `Nonsense` for an answer that cannot be read.
    """

    def call() -> ModelReply:
        with patience():
            runtime.deps.budget.allow(runtime.run.root or runtime.thread_id)
            return runtime.deps.model.complete(request)

    return runtime.once(name, call, kind=ModelReply, spent=cost_of)


def cost_of(reply: ModelReply) -> Spent:
    """What a reply cost."""
    return Spent(1, reply.usage.input_tokens, reply.usage.output_tokens)


def outcome_of(reply: ModelReply) -> Outcome:
    """What a reply amounts to. Only `tools` may run its tool calls: any other may hold half of one."""
    match reply.stop_reason:
        case "tool_use":
            return "tools" if reply.tool_uses else "empty"
        case "end_turn" | "stop_sequence" if not reply.tool_uses:
            return "said" if reply.text.strip() else "empty"
        case "pause_turn" | "compaction" if not reply.tool_uses and kept(reply):
            return "paused"
        case "max_tokens" | "model_context_window_exceeded":
            return "truncated"
        case "refusal":
            return "refused"
        case _:
            return "incomplete"


def converse(runtime: Runtime[Deps], name: str, request: ModelRequest) -> tuple[ModelReply, Outcome]:
    """A model call and what it amounts to; asked once more with twice the room if cut short, or as it is if cut off."""
    reply = ask_model(runtime, name, request)
    if reply.stop_reason == "max_tokens":
        reply = ask_model(runtime, f"{name}:longer", request.model_copy(update={"max_tokens": 2 * request.max_tokens}))
    elif outcome_of(reply) == "incomplete":
        reply = ask_model(runtime, f"{name}:again", request)
    return reply, outcome_of(reply)


@dataclass(frozen=True, slots=True)
class Said:
    """What a turn adds to the conversation, and what it amounts to."""

    messages: list[Message]
    outcome: Outcome
    text: str = ""


def take_turn(runtime: Runtime[Deps], name: str, request: ModelRequest, nudge: str) -> Said:
    """The model's next turn; if it says nothing it is nudged once. What cannot be used adds no message."""
    added: list[Message] = []
    reply, outcome = converse(runtime, name, request)
    if outcome == "empty":
        added.append(told(nudge))
        request = request.model_copy(update={"turns": turns_of([*_messages(request), *added])})
        reply, outcome = converse(runtime, f"{name}:nudged", request)
    if outcome not in ("tools", "said", "paused"):
        return Said([], outcome)
    added.append(Message(role="assistant", content=kept(reply)))
    return Said(added, outcome, reply.text)


def kept(reply: ModelReply) -> list[JsonValue]:
    """The reply's blocks as they came, for the API takes them back unchanged only; but it refuses empty text."""
    return [block for block in reply.content if not _is_empty_text(block)]


def _is_empty_text(block: JsonValue) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and not str(block.get("text") or "").strip()


def told(text: str) -> Message:
    """Something said to the model."""
    return Message(role="user", content=[{"type": "text", "text": text}])


def quoted(value: JsonValue) -> str:
    """JSON text with plain letters: how data from people, files and the web is put before a model."""
    return json.dumps(value, ensure_ascii=False)


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Messages as turns: neighbours of one role become one, so that results and what follows stay together."""
    turns: list[Turn] = []
    for message in messages:
        role: Literal["user", "assistant"] = "assistant" if message.role == "assistant" else "user"
        content: list[JsonValue] = list(message.content) if isinstance(message.content, list) else [message.content]
        if turns and turns[-1].role == role:
            content = [*turns.pop().content, *content]
        turns.append(Turn(role=role, content=content))
    return turns


def _messages(request: ModelRequest) -> list[Message]:
    return [Message(role=turn.role, content=turn.content) for turn in request.turns]


def tool_uses(messages: Sequence[Message]) -> list[Mapping[str, Any]]:
    """The tool calls of the last message, in order."""
    content = messages[-1].content if messages and messages[-1].role == "assistant" else []
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_use"]


def run_tools(messages: Sequence[Message], tools: Sequence[Tooling]) -> Message:
    """Run the tool calls of the last message; every one gets its result in the one message returned, errors included.

    The run sleeps while a tool's source is busy, and halts where only a person can help.
    """
    known = {tool.name: tool for tool in tools}
    return Message(role="user", content=[_result(use, known) for use in tool_uses(messages)])


def _result(use: Mapping[str, Any], known: Mapping[str, Tooling]) -> JsonValue:
    result: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": use.get("id")}
    try:
        with patience():
            return {**result, "content": quoted(_run(use, known))}
    except (ToolError, Nonsense) as error:
        return {**result, "content": str(error)[:LONGEST_ERROR] or "It did not work.", "is_error": True}


def _run(use: Mapping[str, Any], known: Mapping[str, Tooling]) -> JsonValue:
    tool = known.get(str(use.get("name")))
    if tool is None:
        raise ToolError(f"There is no tool {use.get('name')!r}; there are {', '.join(known)}.")
    try:
        arguments = tool.arguments.model_validate_json(quoted(use.get("input")), strict=True)
    except ValidationError as error:
        raise ToolError(f"{tool.name} cannot take these arguments: {problem_of(error)}.") from error
    return tool.run(arguments)


def problem_of(error: ValidationError) -> str:
    """The first thing wrong with a value, in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
