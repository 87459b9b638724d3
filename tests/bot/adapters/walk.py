"""A hand-made loop of worker, tools, evaluator and writer around a model, as a graph would run it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.adapters.trailheads import made_up_trailheads
from graphs.ports import Model, ModelReply, ModelRequest, Tool, Turn

DAY = "2026-12-05"
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"done": {"type": "boolean"}, "needs_user": {"type": "string"}, "feedback": {"type": "string"}},
    "required": ["done", "needs_user", "feedback"],
}
TOOLS = [
    Tool(name="list_trailheads", description="All trailheads", input_schema={"type": "object", "properties": {}}),
    Tool(
        name="forecast",
        description="The weather of a day",
        input_schema={
            "type": "object",
            "properties": {"trailhead": {"type": "string"}, "date": {"type": "string"}},
            "required": ["trailhead", "date"],
        },
    ),
]
Rain = Callable[[str, int], int | None]


def says(text: str) -> Turn:
    return Turn(role="user", content=[{"type": "text", "text": text}])


@dataclass
class Walk:
    """`rain(trailhead, hour)` is the chance in the hour that ends then. Remembers replies, tool calls and turns."""

    model: Model
    rain: Rain = lambda trailhead, hour: 10
    broken: Sequence[str] = ()
    turns: list[Turn] = field(default_factory=list)
    tool_calls: list[Mapping[str, Any]] = field(default_factory=list)

    def work(self, text: str) -> ModelReply:
        """Say something to the worker and run its tools until it stops calling them."""
        self.turns.append(says(text))
        while True:
            reply = self.model.complete(
                ModelRequest(model="claude-sonnet-5-5", system="You plan hikes.", turns=self.turns, tools=TOOLS)
            )
            if reply.content:
                self.turns.append(Turn(role="assistant", content=reply.content))
            if reply.stop_reason != "tool_use":
                return reply
            self.turns.append(Turn(role="user", content=[self._result(use) for use in reply.tool_uses]))

    def judge(self, plan: str) -> str:
        system = 'You judge a plan. A plan ends with PLAN {"trailhead": "<id>", "start": "HH:MM", "bring": ""}'
        return self._ask(system, f"Is this plan good?\n{plan}", VERDICT)

    def write(self, plan: str) -> str:
        return self._ask("You write the text message.", f"Date: {DAY}\n{plan}", None)

    def _ask(self, system: str, text: str, schema: dict[str, Any] | None) -> str:
        request = ModelRequest(model="claude-haiku-5-5", system=system, turns=[says(text)], reply_schema=schema)
        return self.model.complete(request).text

    def _result(self, use: Mapping[str, Any]) -> dict[str, Any]:
        self.tool_calls.append({"name": use["name"], **use["input"]})
        result = {"type": "tool_result", "tool_use_id": use["id"]}
        if use["name"] in self.broken or use["input"].get("trailhead") in self.broken:
            return {**result, "is_error": True, "content": "The service is down."}
        return {**result, "content": json.dumps(self._found(use))}

    def _found(self, use: Mapping[str, Any]) -> Any:
        if use["name"] == "list_trailheads":
            kept = {"id", "name", "length_km", "drive_minutes", "notes"}
            return [{k: v for k, v in t.to_json().items() if k in kept} for t in made_up_trailheads()]
        name = use["input"]["trailhead"]
        hours = [
            {"until": f"{h:02d}:00", "temperature": 8.0, "rain": self.rain(name, h), "sky": "cloudy"}
            for h in range(7, 19)
        ]
        return {"trailhead": name, "date": use["input"]["date"], "hours": hours}


def plan_of(reply: ModelReply) -> dict[str, str]:
    """The last line of a plan."""
    line = reply.text.splitlines()[-1]
    plan: dict[str, str] = json.loads(line.removeprefix("PLAN "))
    return plan
