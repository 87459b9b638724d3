"""What a graph needs from outside, as protocols and values: a model, trailheads with their forecast, and senders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from pydantic import JsonValue

from graphs.engine.values import Value


class PortError(Exception):
    """Something outside could not do what it was asked; the message says what to do."""


class Busy(PortError):
    """Rate limited, overloaded or out of reach: worth asking again at `until` (aware UTC)."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class Misconfigured(PortError):
    """A key, model name or address is wrong: asking again will not help until somebody changes a setting."""


class OverBudget(PortError):
    """The run, or the day, has used its model calls or tokens; at `until` there is more (None: ask somebody)."""

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class Nonsense(PortError):
    """The other side answered something that cannot be read (HTML, broken JSON, nothing)."""


class Tool(Value):
    """A tool a model may call; `input_schema` is JSON Schema for its arguments."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class Turn(Value):
    """One turn of a conversation: content blocks exactly as the API took or gave them."""

    role: Literal["user", "assistant"]
    content: list[JsonValue]


class ModelRequest(Value):
    """One model call. `reply_schema` is a JSON Schema the reply must follow, or None for free text."""

    model: str
    system: str
    turns: list[Turn]
    tools: list[Tool] = []
    reply_schema: dict[str, JsonValue] | None = None
    max_tokens: int = 4096


class Usage(Value):
    """Tokens of one model call; input counts what was read from and written to the cache too."""

    input_tokens: int = 0
    output_tokens: int = 0


class ModelReply(Value):
    """What a model answered. `stop_reason` is the API's own word; None means the answer was cut off."""

    content: list[JsonValue]
    stop_reason: str | None
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        blocks = (b for b in self.content if isinstance(b, Mapping) and b.get("type") == "text")
        return "".join(str(b.get("text") or "") for b in blocks)

    @property
    def tool_uses(self) -> list[Mapping[str, JsonValue]]:
        """The `tool_use` blocks, in order."""
        return [b for b in self.content if isinstance(b, Mapping) and b.get("type") == "tool_use"]


class Model(Protocol):
    """A language model. Raises `Busy`, `Misconfigured` or `Nonsense`, nothing else."""

    @property
    def provider(self) -> str:
        """`simulated` or `anthropic`; shown to people and stored with the run."""
        ...

    def complete(self, request: ModelRequest) -> ModelReply: ...


class Trailhead(Value):
    """A place to start walking; `length_km` is the trail's length, `drive_minutes` from the club's meeting point."""

    id: str
    name: str
    latitude: float
    longitude: float
    time_zone: str
    length_km: float | None = None
    drive_minutes: int | None = None
    notes: str = ""


class Hour(Value):
    """The hour that ends at `until` (local, "HH:MM"): a None is unknown, which is not dry.

    `temperature` in degrees Celsius at its end, `precipitation_probability` in percent over the hour.
    """

    until: str
    temperature: float | None
    precipitation_probability: int | None
    sky: str


class Forecast(Value):
    """The hours 06:00 to 18:00 of one local day at a trailhead."""

    trailhead_id: str
    day: date
    time_zone: str
    fetched_at: datetime
    hours: list[Hour]
    attribution: str


class Trails(Protocol):
    """The club's trailheads and their weather. Raises `Busy`, `Misconfigured`, `Nonsense`, or `LookupError`."""

    def list_trailheads(self) -> Sequence[Trailhead]: ...

    def forecast(self, trailhead_id: str, day: date) -> Forecast: ...


class Budget(Protocol):
    """Model calls and tokens a run and a day may use."""

    def allow(self, thread_id: str) -> None:
        """Raises `OverBudget` when the next call of this run would be one too many."""
        ...


@dataclass(frozen=True, slots=True)
class Models:
    """The model names a run uses: `worker` plans, `writer` judges and writes. Pinned when a run starts."""

    worker: str
    writer: str


@dataclass(frozen=True, slots=True)
class Deps:
    """What nodes are given besides their state; never stored."""

    model: Model
    models: Models
    trails: Trails
    budget: Budget
    sms_to: str
    post_to: str
    max_rounds: int = 3


class NotAccepted(PortError):
    """The other side surely did not accept the request. `until` says when to try again; None means it never will."""

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class Sent(Value):
    """Proof that something went out: the other side's own reference, and what it said."""

    ref: str
    detail: dict[str, JsonValue] = {}


class Sender(Protocol):
    """Lets one kind of effect out.

    `look_up` is asked when an answer was lost. It returns what went out, or None. `absence_proves` says whether None
    proves that nothing did. `send` raises `NotAccepted` when surely nothing went out; anything else it raises leaves
    the outcome unknown.
    """

    @property
    def kind(self) -> str: ...

    @property
    def absence_proves(self) -> bool: ...

    def send(self, key: str, address: str, content: str, payload: Mapping[str, JsonValue]) -> Sent: ...

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None: ...
