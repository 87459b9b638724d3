"""An approval as decisions see it, and its draft versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, cast

from pydantic import JsonValue

from graphs.engine.errors import StoreFailed
from graphs.engine.values import dump, load
from graphs.flow import Policy, Review
from storage.audit import content_hash
from storage.releases import release_draft
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, insert_into

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """One row of approvals, read inside a transaction; times are microseconds since the epoch."""

    id: str
    root: str
    thread_id: str
    step: int
    task: str
    place: str
    kind: str
    ask: Any
    draft: Mapping[str, JsonValue]
    draft_version: int
    content_hash: str
    status: str
    policy: Mapping[str, Any]
    requester: str
    team: str
    answer: Any
    taken: bool
    expires_at: int | None
    undo_until: int | None
    settled_at: int | None

    @property
    def quorum(self) -> int:
        """How many people must approve one draft version."""
        return int(self.policy.get("quorum", 1))


_names = [column.name for column in fields(Asked)]
_JSON = [_names.index(name) for name in ("ask", "draft", "policy", "answer")]
_TAKEN = _names.index("taken")
_COLUMNS = ", ".join(_names)
_LOAD = prepare(f"SELECT {_COLUMNS} FROM approvals WHERE id = :id")
_ROOT = prepare(f"SELECT {_COLUMNS} FROM approvals WHERE root = :root ORDER BY created_at, id")
_STORE = prepare(
    "UPDATE approvals SET rev = rev + 1, status = :status, draft = :draft, draft_version = :draft_version,"
    " content_hash = :content_hash, answer = :answer, taken = :taken, undo_until = :undo_until,"
    " settled_at = :settled_at WHERE id = :id AND status = :was AND draft_version = :seen"
)
_OPEN = prepare(insert_into(ApprovalRow))


def read_asked(row: Any) -> Asked:
    """A row of the columns of `Asked`, in their order."""
    values = list(row)
    for place in _JSON:
        values[place] = None if values[place] is None else load(values[place])
    values[_TAKEN] = bool(values[_TAKEN])
    return Asked(*values)


def load_asked(tx: Transaction, approval_id: str) -> Asked | None:
    """One approval; the caller has locked its root's row."""
    row: Any = tx.run(_LOAD, id=approval_id).fetchone()
    return read_asked(row) if row else None


def all_of(tx: Transaction, root: str) -> list[Asked]:
    """Every approval of a root run, oldest first."""
    return [read_asked(row) for row in tx.run(_ROOT, root=root).fetchall()]


def open_row(tx: Transaction, policy: Mapping[str, JsonValue], **values: Any) -> None:
    """Insert a pending approval; times follow from its policy, counted from now, unless `values` says otherwise."""
    after = cast(list[int], policy["remind_after"])
    expires = cast(int | None, policy["expires_after"])
    row: dict[str, Any] = {
        "path": "[]",
        "draft": "{}",
        "draft_version": 1,
        "content_hash": "",
        "status": "pending",
        "rev": 0,
        "policy": dump(dict(policy)),
        "answer": None,
        "taken": False,
        "reminded": 0,
        "remind_at": tx.now + after[0] if after else None,
        "expires_at": None if expires is None or values["kind"] == "effect" else tx.now + expires,
        "undo_until": None,
        "created_at": tx.now,
        "settled_at": None,
    }
    tx.run(_OPEN, **{**row, **values})


def store(tx: Transaction, before: Asked, after: Asked) -> None:
    """Compare and set: `rev` counts up; a new draft version brings its own releases, the old ones stay with theirs."""
    changed = tx.run(
        _STORE,
        id=before.id,
        was=before.status,
        seen=before.draft_version,
        status=after.status,
        draft=dump(dict(after.draft)),
        draft_version=after.draft_version,
        content_hash=after.content_hash,
        answer=None if after.answer is None else dump(after.answer),
        taken=after.taken,
        undo_until=after.undo_until,
        settled_at=after.settled_at,
    )
    if changed.rowcount != 1:
        raise StoreFailed(f"The approval {before.id} changed while its run was locked; try again.")
    if after.draft_version != before.draft_version and after.kind == "review":
        release_draft(tx, after.id, after.root, after.draft_version, _review(after))


def next_version(asked: Asked, draft: Mapping[str, JsonValue] | None = None) -> Asked:
    """The same approval, pending again with its next draft version: clicks and counts from before are void."""
    values = dict(asked.draft if draft is None else draft)
    return replace(
        asked,
        status="pending",
        draft=values,
        draft_version=asked.draft_version + 1,
        content_hash=draft_hash(values),
        answer=None,
        taken=False,
        undo_until=None,
        settled_at=None,
    )


def draft_hash(draft: Mapping[str, JsonValue]) -> str:
    """One hash for all values of a draft, whatever their order."""
    return content_hash(dump(dict(sorted(draft.items()))))


def _review(asked: Asked) -> Review:
    return Review.from_json(asked.ask).with_draft(asked.draft)


def policy_to_json(policy: Policy) -> dict[str, JsonValue]:
    """A policy as it is stored with each approval; times in microseconds."""
    return {
        "quorum": policy.quorum,
        "allow_requester": policy.allow_requester,
        "remind_after": [after // MICROSECOND for after in policy.remind_after],
        "expires_after": policy.expires_after // MICROSECOND if policy.expires_after is not None else None,
        "undo_for": policy.undo_for // MICROSECOND,
    }
