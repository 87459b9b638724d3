"""Questions that a machine may answer as well as a person: a health signal before a release is promoted."""

from __future__ import annotations

from pydantic import JsonValue

from bot.decisions import Wish, decide
from bot.parts import Parts
from graphs.engine.errors import StaleInterrupt, UnknownInterrupt
from storage import approvals
from storage.tables import ApprovalRow


class NotForMachines(ValueError):
    """This is for a person to decide; the sentence says how."""


def answer_interrupt(parts: Parts, thread_id: str, interrupt_id: str, value: JsonValue, name: str) -> None:
    """Answer an open signal or question of a run; the run becomes due.

    A signal takes JSON from whoever is allowed to call this; a question follows the rules for people. Raises
    `UnknownInterrupt`, `StaleInterrupt` or `NotForMachines`.
    """
    asked = _asked(parts, thread_id, interrupt_id)
    if asked.kind == "signal":
        parts.checkpointer.answer(thread_id, interrupt_id, value, name)
        parts.executor.after_commit(thread_id)
        return
    if asked.kind == "review":
        raise NotForMachines("This is a review: decide about it in Slack or with `signoff decide`.")
    outcome = decide(parts, interrupt_id, name, Wish(verdict="answer", value=value, via="api"))
    if outcome.result == "refused":
        raise StaleInterrupt(outcome.sentence, thread_id)


def _asked(parts: Parts, thread_id: str, interrupt_id: str) -> ApprovalRow:
    asked = approvals.find(parts.database, interrupt_id)
    if asked is None or asked.root != thread_id:
        raise UnknownInterrupt(f"{interrupt_id} is no question of {thread_id}; `signoff show` lists them.", thread_id)
    return asked
