"""What an approval lets out: one kind, one address, one content, once; bound to the effect that uses it for good."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from graphs.engine.errors import UpdateRefused
from graphs.engine.values import dump
from graphs.flow import Review
from storage.audit import content_hash
from storage.statements import Transaction, prepare
from storage.tables import ReleaseRow, insert_into

_IS_FREE = "(used_by IS NULL OR used_by = :effect)"
_RELEASE = prepare(insert_into(ReleaseRow))
# The one this effect has used already comes first, otherwise sending again would use up a second one.
_MATCH = prepare(
    "SELECT releases.id FROM releases JOIN approvals ON approvals.id = releases.approval"
    " WHERE releases.root = :root AND releases.kind = :kind AND address = :address"
    " AND releases.content_hash = :content_hash AND releases.draft_version = approvals.draft_version"
    f" AND approvals.root = :root AND approvals.kind = 'review' AND status = 'final' AND {_IS_FREE}"
    " ORDER BY CASE WHEN used_by = :effect THEN 0 ELSE 1 END, releases.id LIMIT 1"
)
_BIND = prepare(f"UPDATE releases SET used_by = :effect WHERE id = :id AND {_IS_FREE}")


def text_of(value: JsonValue) -> str:
    """The text that goes out for a draft's value: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump(value)


def release_draft(tx: Transaction, approval_id: str, root: str, version: int, review: Review) -> None:
    """Write down what one draft version lets out; raises `UpdateRefused` for a release without draft."""
    for n, release in enumerate(review.releases):
        if release.content not in review.draft:
            raise UpdateRefused(f"{review.title!r} releases {release.content!r}, which its draft does not have.", root)
        tx.run(
            _RELEASE,
            id=f"{approval_id}:{version}:{n}",
            approval=approval_id,
            root=root,
            draft_version=version,
            kind=release.kind,
            address=release.to,
            content_hash=content_hash(text_of(review.draft[release.content].value)),
            used_by=None,
        )


def bind_release(tx: Transaction, root: str, kind: str, *, address: str, content: str, effect: str) -> str | None:
    """Bind a free release of a final review, at its current draft version, to an effect of the same run for good.

    One that is bound to this effect already counts. Its id, or None if none lets this kind, address and content out.
    """
    hashed = content_hash(content)
    wanted = {"root": root, "kind": kind, "address": address, "content_hash": hashed, "effect": effect}
    match: Any = tx.run(_MATCH, **wanted).fetchone()
    if match is None or tx.run(_BIND, id=match[0], effect=effect).rowcount != 1:
        return None
    return str(match[0])
