"""What people meet: reviews and questions a graph hands over, what they answer, and the flow around a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import JsonValue

from graphs.engine.moving import Move
from graphs.engine.values import Value

if TYPE_CHECKING:
    from graphs.engine.graph import Graph

FieldKind = Literal["text", "line", "number", "date", "choice"]
QuestionKind = Literal["text", "number", "date", "choice", "choices", "yes_no"]
Verdict = Literal["approve", "edit", "decline", "changes"]
Risk = Literal["normal", "high"]
Ending = Literal["finished", "declined", "gave_up", "expired", "cancelled", "failed"]


class Choice(Value):
    """One thing to choose: `value` is stored, `label` is shown."""

    value: str
    label: str


class Field(Value):
    """One editable part of a draft, or one line of a form. `value` is JSON of the kind; dates are ISO strings."""

    value: JsonValue = None
    label: str
    kind: FieldKind = "text"
    max_length: int | None = None
    choices: list[Choice] = []
    required: bool = True
    hint: str = ""


class Release(Value):
    """What an approval lets out, once: the draft field named `content`, as `kind`, to the address `to`."""

    kind: str
    to: str
    content: str


class Review(Value):
    """A draft for people to approve, edit, decline or send back; `facts` are what stands behind it, in order."""

    asks: ClassVar[str] = "review"
    title: str
    draft: dict[str, Field]
    facts: dict[str, str] = {}
    risk: Risk = "normal"
    valid_until: datetime | None = None
    releases: list[Release] = []

    def answered(self, value: JsonValue) -> Decision:
        """Read the stored answer."""
        return Decision.model_validate(value)

    def contents(self) -> dict[str, JsonValue]:
        """The draft's values by field name."""
        return {name: part.value for name, part in self.draft.items()}

    def with_draft(self, values: Mapping[str, JsonValue]) -> Review:
        """The same review with other draft values; unknown names raise `KeyError`."""
        parts = {
            name: part.model_copy(update={"value": values.get(name, part.value)}) for name, part in self.draft.items()
        }
        if unknown := set(values) - set(parts):
            raise KeyError(f"The draft has no field {sorted(unknown)[0]!r}; it has {', '.join(parts)}.")
        return self.model_copy(update={"draft": parts})


class Question(Value):
    """Something only a person knows; answered by a button, a modal, the inbox or the command line."""

    asks: ClassVar[str] = "question"
    text: str
    kind: QuestionKind = "text"
    choices: list[Choice] = []

    def answered(self, value: JsonValue) -> JsonValue:
        """The answer itself: str, number, ISO date, choice value(s) or bool, by kind."""
        return value


class Decision(Value):
    """What a person decided: `runtime.interrupt(review)` returns it. `draft` holds the values as approved."""

    verdict: Verdict
    draft: dict[str, JsonValue]
    reason: str = ""
    by: str
    at: datetime
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may decide and how long it may take. Times count from the moment the draft was shown."""

    quorum: int = 1
    allow_requester: bool = False
    remind_after: tuple[timedelta, ...] = (timedelta(hours=4), timedelta(hours=8))
    expires_after: timedelta | None = None
    undo_for: timedelta = timedelta(0)


def _no_errors(_state: Any, _draft: Mapping[str, JsonValue]) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A graph and what people need around it.

    `start(form) -> input` raises `FormError`; `check(state, draft) -> {field: error}`; `outcome(state)` names the end
    of a run that ran to END; `ending(state, how)` is what the channel is told. `moves` maps the states of older
    versions, by their number, so that their runs can be taken here.
    """

    name: str
    command: str
    usage: str
    form: Mapping[str, Field]
    graph: Graph[Any]
    start: Callable[[Mapping[str, JsonValue], datetime], Mapping[str, Any]]
    outcome: Callable[[Any], Ending]
    ending: Callable[[Any, Ending], str]
    check: Callable[[Any, Mapping[str, JsonValue]], dict[str, str]] = _no_errors
    policy: Policy = field(default_factory=Policy)
    unguarded: frozenset[str] = frozenset()
    moves: Mapping[int, Move] = field(default_factory=dict)


class FormError(ValueError):
    """A form cannot start a run: `errors` maps field names to sentences."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = dict(errors)
