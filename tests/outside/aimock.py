"""Says what aimock answers next, role by role, and reads what it was asked."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

import httpx2

JsonObject = dict[str, Any]


class Aimock:
    """One running aimock; a role is told by how its system prompt begins."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._control = httpx2.Client(base_url=f"{url}/__aimock", timeout=10.0, trust_env=False)

    def __enter__(self) -> Aimock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._control.close()

    def reset(self) -> None:
        """Forget what to say and what was asked."""
        self._control.post("/reset").raise_for_status()

    def plays(self, role: str, *answers: JsonObject) -> None:
        """Answer the role's calls with these, one after the other."""
        fixtures = [
            {"match": {"systemMessage": role, "sequenceIndex": at}, "response": answer}
            for at, answer in enumerate(answers)
        ]
        self._control.post("/fixtures", json={"fixtures": fixtures}).raise_for_status()

    def asked(self, role: str) -> list[JsonObject]:
        """The calls of a role, oldest first, as aimock keeps them: turned into its own form."""
        entries = self._control.get("/journal").raise_for_status().json()
        bodies = [entry["body"] for entry in entries if entry["body"] and "/messages" in entry["path"]]
        return [body for body in bodies if role in str(body["messages"][0].get("content"))]


def says(text: str, reason: str = "stop") -> JsonObject:
    """A text, and why the model stopped there."""
    return {"content": text, "finishReason": reason}


def calls(name: str, arguments: JsonObject, reason: str = "tool_calls") -> JsonObject:
    """One tool call, and why the model stopped there."""
    return {"toolCalls": [{"name": name, "arguments": json.dumps(arguments)}], "finishReason": reason}
