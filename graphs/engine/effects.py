"""Effects as values, and the receipts they become."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import JsonValue

from graphs.engine.values import Value

ReceiptStatus = Literal["sent", "failed", "cancelled"]


class Effect(Value):
    """Something a node wants done outside, performed after its step is committed.

    `to` is the address, `content` the exact text or document, `into` the state key for the receipt ("" for none).
    """

    kind: ClassVar[str]
    to: str
    content: str
    into: str = ""

    def payload(self) -> dict[str, JsonValue]:
        """What a sender needs besides kind, address and content."""
        return {key: value for key, value in self.to_json().items() if key not in {"to", "content", "into"}}


class Receipt(Value):
    """What became of an effect: `ref` is the other side's reference, `detail` what it said or why it failed."""

    kind: str
    to: str
    status: ReceiptStatus
    ref: str = ""
    detail: str = ""
