"""When nobody can tell whether an effect went out: the question to a person, and what each answer does."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from graphs.engine.effects import Receipt
from graphs.engine.errors import StoreFailed
from graphs.engine.values import dump
from graphs.flow import Choice, Policy, Question
from storage import audit, drafts, roots
from storage.drafts import Asked
from storage.statements import Transaction, prepare

SENT = Choice(value="sent", label="It went out")
AGAIN = Choice(value="again", label="Send again")
STOP = Choice(value="stop", label="Stop")
NAMES = {"sms": "The text message", "post": "The message", "pull_request": "The pull request", "refund": "The refund"}

_FIND = prepare("SELECT kind, address FROM effects WHERE thread_id = :thread_id AND step = :step AND n = :n")
_RESOLVE = prepare(
    "UPDATE effects SET status = :status, receipt = :receipt, not_before = NULL "
    "WHERE thread_id = :thread_id AND step = :step AND n = :n AND status = 'unknown'"
)
_BECOMES = {"sent": "sent", "again": "pending", "stop": "failed"}


@dataclass(frozen=True, slots=True)
class Doubt:
    """An effect, by its key, whose outcome is unknown after its `attempt`."""

    root: str
    key: str
    kind: str
    address: str
    attempt: int


def effect_question(tx: Transaction, effect: Doubt, run: roots.Root) -> str:
    """Ask people of the run's channel whether it went out; the id of the question."""
    choices = [SENT, STOP] if run.ending else [SENT, AGAIN, STOP]
    name = NAMES.get(effect.kind, f"The effect {effect.kind!r}")
    text = f"{name} to {effect.address} may or may not have gone out: the answer was lost. Please look there."
    question = question_id(effect.key, effect.attempt)
    thread, step, n = effect.key.rsplit(":", 2)
    drafts.open_row(
        tx,
        drafts.policy_to_json(Policy()),
        id=question,
        root=effect.root,
        thread_id=thread,
        step=int(step),
        task="",
        place=n,
        kind="effect",
        subject=dump(text),
        ask=dump(Question(text=text, kind="choice", choices=choices).to_json()),
        requester=run.who,
        team=run.team,
        channel=run.channel,
    )
    data: dict[str, JsonValue] = {"approval": question, "kind": "effect", "about": effect.key, "version": 1}
    audit.append(tx, effect.root, "asked", data, content=text)
    return question


def question_id(key: str, attempt: int) -> str:
    """The id of the question about one attempt; a thread id in it would not fit into a button."""
    return f"lost-{hashlib.blake2b(f'{key} {attempt}'.encode(), digest_size=8).hexdigest()}"


def resolve(tx: Transaction, asked: Asked, answer: str, by: str) -> None:
    """Take a person's word for it: `sent`, `again` (pending once more, under the same release) or `stop`."""
    place = {"thread_id": asked.thread_id, "step": asked.step, "n": int(asked.place)}
    row: Any = tx.run(_FIND, **place).fetchone()
    receipt = None if answer == "again" or row is None else _receipt(row[0], row[1], answer, by)
    if tx.run(_RESOLVE, **place, status=_BECOMES[answer], receipt=receipt).rowcount != 1:
        raise StoreFailed(f"The effect that {asked.id} asks about is not in doubt any more; look at the run.")
    data: dict[str, JsonValue] = {"effect": f"{asked.thread_id}:{asked.step}:{asked.place}", "by": by, "answer": answer}
    audit.append(tx, asked.root, "resolved", data)


def _receipt(kind: str, address: str, answer: str, by: str) -> str:
    if answer == "sent":
        return dump(Receipt(kind=kind, to=address, status="sent", detail=f"<@{by}> says that it went out.").to_json())
    return dump(Receipt(kind=kind, to=address, status="failed", detail=f"Stopped by <@{by}>.").to_json())
