"""One function for every way to decide: button, modal, inbox, command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bot.parts import Parts
from bot.people import UnknownPerson, actor_of
from graphs.flow import Review
from storage import approvals, runs
from storage.answers import BadAnswer, check_draft
from storage.decisions import Outcome, Verb
from storage.decisions import decide as decide_stored
from storage.tables import ApprovalRow

UNREADABLE = "This cannot be edited: the bot has another version of the flow now. Approve, decline or wait."


class DraftRefused(ValueError):
    """An edit that the flow does not accept: `errors` maps draft fields to sentences."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = dict(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants done with an approval. `version` None stands for the current draft."""

    verdict: Verb
    version: int | None = None
    edits: Mapping[str, JsonValue] | None = None
    reason: str = ""
    value: JsonValue = None
    via: str = ""


def decide(parts: Parts, approval_id: str, user: str, wish: Wish, timeout: float | None = None) -> Outcome:
    """Decide about an approval, which is loaded by its id, and nudge whoever advances its run.

    Raises `DraftRefused` for an edit that the flow's check refuses, and what `storage.decisions.decide` raises.
    """
    asked = approvals.find(parts.database, approval_id)
    channel = asked.channel if asked else ""
    try:
        actor = actor_of(parts.people, user, channel)
    except UnknownPerson as error:
        return Outcome("refused", refusal="unknown", sentence=str(error))
    if asked is not None and wish.verdict in ("edit", "save"):
        check_edits(parts, asked, wish.edits or {})
    outcome = decide_stored(
        parts.database,
        approval_id,
        actor=actor,
        verdict=wish.verdict,
        version=wish.version,
        edits=wish.edits,
        reason=wish.reason,
        value=wish.value,
        via=wish.via,
        timeout=timeout,
    )
    parts.executor.after_commit(outcome.root)
    return outcome


def check_edits(parts: Parts, asked: ApprovalRow, edits: Mapping[str, JsonValue]) -> None:
    """Refuse edits that do not fit their fields or that the flow's own check refuses; raises `DraftRefused`."""
    if asked.kind != "review":
        return
    review = Review.from_json(asked.ask)
    errors: dict[str, str] = {}
    for name, value in edits.items():
        try:
            check_draft(review, asked.draft, {name: value})
        except BadAnswer as error:
            errors[name] = str(error)
    draft = {**asked.draft, **edits}
    errors = {**flow_errors(parts, asked, draft), **errors}
    if errors:
        raise DraftRefused(errors)


def flow_errors(parts: Parts, asked: ApprovalRow, draft: Mapping[str, JsonValue]) -> dict[str, str]:
    """What the flow says against a draft, by field."""
    root = runs.find(parts.database, asked.root)
    if root is None:
        return {}
    flow = parts.flow_of(root)
    if flow is None or not parts.can_read(root):
        return {next(iter(draft)): UNREADABLE}
    return flow.check(parts.runner.get_state(asked.thread_id).values, draft)
