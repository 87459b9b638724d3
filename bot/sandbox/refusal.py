"""How the stand-in says no: with Slack's own error code."""

from __future__ import annotations

from bot.sandbox.records import JsonObject


class Refusal(Exception):
    """A Web API call is refused with `code`; `fields` are further fields of the answer, `retry_after` is in seconds."""

    def __init__(self, code: str, *, status: int = 200, retry_after: int | None = None, **fields: object) -> None:
        super().__init__(f"Slack refuses this with {code!r}.")
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.fields = fields

    def answer(self) -> JsonObject:
        """The body of the HTTP answer."""
        return {"ok": False, "error": self.code, **self.fields}


def invalid(code: str, messages: list[str]) -> Refusal:
    """A refusal that explains itself in `response_metadata.messages`, as Slack does for blocks and arguments."""
    errors = [message.removeprefix("[ERROR] ") for message in messages]
    return Refusal(code, errors=errors, response_metadata={"messages": messages})
