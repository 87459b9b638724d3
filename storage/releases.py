"""What an approval lets out: one kind, one address, one content, once; bound to the effect that uses it for good."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from pydantic import JsonValue

from graphs.engine.errors import UpdateRefused
from graphs.engine.values import dump
from graphs.flow import Review
from storage.audit import content_hash
from storage.statements import Transaction, prepare
from storage.tables import ApprovalRow, ReleaseRow

_approvals = cast(sa.Table, ApprovalRow.__table__)  # type: ignore[attr-defined]
_releases = cast(sa.Table, ReleaseRow.__table__)  # type: ignore[attr-defined]
_effect: sa.BindParameter[str] = sa.bindparam("effect_key", type_=sa.String)
_is_free = sa.or_(_releases.c.used_by.is_(None), _releases.c.used_by == _effect)

_RELEASE = prepare(sa.insert(_releases))
_MATCH = prepare(
    sa.select(_releases.c.id)
    .join(_approvals, _approvals.c.id == _releases.c.approval)
    .where(
        _releases.c.root == sa.bindparam("root_id"),
        _releases.c.kind == sa.bindparam("of_kind"),
        _releases.c.address == sa.bindparam("to"),
        _releases.c.content_hash == sa.bindparam("hashed"),
        _releases.c.draft_version == _approvals.c.draft_version,
        _approvals.c.root == sa.bindparam("root_id"),
        _approvals.c.kind == "review",
        _approvals.c.status == "final",
        _is_free,
    )
    # The one this effect has used already comes first, otherwise sending again would use up a second one.
    .order_by(sa.case((_releases.c.used_by == _effect, 0), else_=1), _releases.c.id)
    .limit(1)
)
_BIND = prepare(
    sa.update(_releases).where(_releases.c.id == sa.bindparam("release_id"), _is_free).values(used_by=_effect)
)


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
    match: Any = tx.run(_MATCH, root_id=root, of_kind=kind, to=address, hashed=hashed, effect_key=effect).fetchone()
    if match is None or tx.run(_BIND, release_id=match[0], effect_key=effect).rowcount != 1:
        return None
    return str(match[0])
