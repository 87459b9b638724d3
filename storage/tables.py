"""Every table, once: SQLModel declares and reads them, migrations create them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from graphs.engine.values import dump, load

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

ENDINGS = ("", "finished", "declined", "gave_up", "expired", "cancelled", "failed")
APPROVAL_STATUSES = (
    "pending",
    "approved",
    "final",
    "declined",
    "changes_requested",
    "answered",
    "expired",
    "cancelled",
    "superseded",
)
EFFECT_STATUSES = ("pending", "sending", "sent", "failed", "unknown", "cancelled")
SOURCES = ("input", "step", "update", "receipt", "fork")
KINDS = ("review", "question", "signal", "effect")
SCOPES = ("run", "approval", "ending", "told")


class Json(sa.types.TypeDecorator[Any]):
    """JSON in TEXT, ASCII only, so that NUL and lone surrogates survive on both databases."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else dump(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        return None if value is None else load(value)


class Moment(sa.types.TypeDecorator[datetime]):
    """Microseconds since the epoch in a BIGINT; aware UTC at the edge, naive times are refused."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> int | None:
        return value if value is None or isinstance(value, int) else to_micros(value)

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else from_micros(value)


def to_micros(moment: datetime) -> int:
    """An aware time as microseconds since the epoch; raises `ValueError` for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; times are aware.")
    whole = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 1_000_000 + whole.microseconds


def from_micros(micros: int) -> datetime:
    """Microseconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


def insert_into(table: type[SQLModel]) -> str:
    """SQL that inserts a whole row; its parameters are the columns."""
    names = list(table.model_fields)
    columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.__tablename__} ({columns}) VALUES ({values})"


def _json(**kwargs: Any) -> Any:
    return Field(sa_type=Json, **kwargs)


def _moment(**kwargs: Any) -> Any:
    return Field(sa_type=Moment, **kwargs)


def _big(**kwargs: Any) -> Any:
    return Field(sa_type=sa.BigInteger, **kwargs)


def _one_of(column: str, values: tuple[str, ...]) -> sa.CheckConstraint:
    quoted = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({quoted})", name=column)


class RunRow(SQLModel, table=True):
    """One execution. `due_at` says when somebody should advance it, `claim` who does, `lease_until` for how long.

    A root's `steps`, calls and tokens are those of its whole tree.
    """

    __tablename__ = "runs"
    __table_args__ = (
        _one_of("ending", ENDINGS),
        sa.Index("ix_runs_due_at", "due_at", sqlite_where=sa.text("due_at IS NOT NULL"),
                 postgresql_where=sa.text("due_at IS NOT NULL")),
        sa.Index("ix_runs_lease_until", "lease_until", sqlite_where=sa.text("claim IS NOT NULL"),
                 postgresql_where=sa.text("claim IS NOT NULL")),
        sa.Index("ix_runs_root", "root"),
        sa.Index("ix_runs_created_at", "created_at"),
        sa.Index("ix_runs_ending", "ending", "ended_at"),
    )  # fmt: skip
    thread_id: str = Field(primary_key=True)
    root: str
    parent: str = ""
    flow: str
    version: int
    fingerprint: str
    model: str = ""
    who: str = ""
    team: str = ""
    channel: str = ""
    max_steps: int = 0
    pause_before: Any = _json(default=[])
    rev: int = _big(default=0)
    steps: int = _big(default=0, sa_column_kwargs={"server_default": "0"})
    claim: str | None = None
    lease_until: datetime | None = _moment(default=None)
    due_at: datetime | None = _moment(default=None)
    ending: str = ""
    error: str = _json(default="")
    calls: int = _big(default=0)
    input_tokens: int = _big(default=0)
    output_tokens: int = _big(default=0)
    created_at: datetime = _moment()
    ended_at: datetime | None = _moment(default=None)


class CheckpointRow(SQLModel, table=True):
    """All there is to know between two supersteps: `body` is a snapshot (`is_full`) or what changed."""

    __tablename__ = "checkpoints"
    # Without rowids a step writes one page of SQLite's less: there is no second tree for the key.
    __table_args__ = (_one_of("source", SOURCES), {"sqlite_with_rowid": False})
    thread_id: str = Field(primary_key=True)
    step: int = Field(primary_key=True)
    source: str
    next: str = Field(sa_type=sa.Text)
    body: str = Field(sa_type=sa.Text)
    is_full: bool
    meta: str = Field(sa_type=sa.Text)
    author: str = ""
    at: datetime = _moment()


class PendingWriteRow(SQLModel, table=True):
    """One fact of a half-done superstep, append-only."""

    __tablename__ = "pending_writes"
    thread_id: str = Field(primary_key=True)
    step: int = Field(primary_key=True)
    task: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    value: str = Field(sa_type=sa.Text)
    at: datetime = _moment()


class ApprovalRow(SQLModel, table=True):
    """Something people are asked. `ask` is the question as the graph put it, `draft` its current values.

    `due_at` is when somebody must look at it next: to remind, escalate or expire.
    """

    __tablename__ = "approvals"
    __table_args__ = (
        _one_of("status", APPROVAL_STATUSES),
        _one_of("kind", KINDS),
        sa.Index("ix_approvals_root", "root"),
        sa.Index("ix_approvals_remind_at", "remind_at", sqlite_where=sa.text("status = 'pending'"),
                 postgresql_where=sa.text("status = 'pending'")),
        sa.Index("ix_approvals_expires_at", "expires_at", sqlite_where=sa.text("status IN ('pending', 'approved')"),
                 postgresql_where=sa.text("status IN ('pending', 'approved')")),
        sa.Index("ix_approvals_status", "status", "settled_at"),
    )  # fmt: skip
    id: str = Field(primary_key=True)
    root: str
    thread_id: str
    step: int
    task: str
    place: str
    kind: str
    subject: str = _json(default="")
    ask: Any = _json()
    path: Any = _json(default=[])
    draft: Any = _json(default={})
    draft_version: int = 1
    content_hash: str = ""
    status: str = "pending"
    rev: int = _big(default=0)
    policy: Any = _json(default={})
    requester: str = ""
    team: str = ""
    channel: str = ""
    answer: Any = _json(default=None, nullable=True)
    taken: bool = False
    reminded: int = 0
    remind_at: datetime | None = _moment(default=None)
    expires_at: datetime | None = _moment(default=None)
    undo_until: datetime | None = _moment(default=None)
    created_at: datetime = _moment()
    settled_at: datetime | None = _moment(default=None)


class DecisionRow(SQLModel, table=True):
    """One click, counted or refused. `verdict` also names edits saved for others, undos and answers."""

    __tablename__ = "decisions"
    __table_args__ = (sa.Index("ix_decisions_approval", "approval"),)
    id: str = Field(primary_key=True)
    approval: str
    draft_version: int
    who: str
    team: str = ""
    verdict: str
    edits: Any = _json(default={})
    reason: str = _json(default="")
    counted: bool
    refusal: str = ""
    via: str = ""
    at: datetime = _moment()


class ReleaseRow(SQLModel, table=True):
    """What one draft version of a review lets out, once; `used_by` is the effect that used it."""

    __tablename__ = "releases"
    __table_args__ = (
        sa.Index("ix_releases_approval", "approval"),
        sa.Index("ix_releases_match", "kind", "content_hash"),
    )
    id: str = Field(primary_key=True)
    approval: str
    root: str
    draft_version: int
    kind: str
    address: str
    content_hash: str
    used_by: str | None = None


class EffectLedgerRow(SQLModel, table=True):
    """One effect. `attempt` and `send_until` fence its sender; `look_at` is when a lost answer may be looked up."""

    __tablename__ = "effects"
    __table_args__ = (
        _one_of("status", EFFECT_STATUSES),
        sa.Index("ix_effects_root", "root"),
        sa.Index("ix_effects_open", "status", sqlite_where=sa.text("status IN ('pending', 'sending', 'unknown')"),
                 postgresql_where=sa.text("status IN ('pending', 'sending', 'unknown')")),
    )  # fmt: skip
    thread_id: str = Field(primary_key=True)
    step: int = Field(primary_key=True)
    n: int = Field(primary_key=True)
    root: str
    kind: str
    address: str
    content: str = _json()
    payload: Any = _json(default={})
    into: str = ""
    guarded: bool = True
    status: str = "pending"
    attempt: int = 0
    not_before: datetime | None = _moment(default=None)
    send_until: datetime | None = _moment(default=None)
    first_sent_at: datetime | None = _moment(default=None)
    receipt: Any = _json(default=None, nullable=True)
    at: datetime = _moment()


class MemoryRow(SQLModel, table=True):
    """JSON that outlives runs."""

    __tablename__ = "memories"
    namespace: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    value: Any = _json()
    at: datetime = _moment()


class UsageRow(SQLModel, table=True):
    """Model calls and tokens per UTC day and person, for the daily budget."""

    __tablename__ = "usage"
    day: str = Field(primary_key=True)
    who: str = Field(primary_key=True)
    calls: int = _big(default=0)
    input_tokens: int = _big(default=0)
    output_tokens: int = _big(default=0)


class DeliveryRow(SQLModel, table=True):
    """The inbox: one envelope, trigger or event, with its payload until it is dealt with, then the id alone."""

    __tablename__ = "deliveries"
    __table_args__ = (
        sa.Index("ix_deliveries_open", "at", sqlite_where=sa.text("done_at IS NULL"),
                 postgresql_where=sa.text("done_at IS NULL")),
    )  # fmt: skip
    id: str = Field(primary_key=True)
    kind: str
    payload: Any = _json(default=None, nullable=True)
    attempts: int = 0
    not_before: datetime | None = _moment(default=None)
    at: datetime = _moment()
    done_at: datetime | None = _moment(default=None)


class CardRow(SQLModel, table=True):
    """A Slack message that shows something of ours, and the rev of it that was last drawn.

    `subject` is the approval's id or the run's thread id. `busy_until` keeps two processes from posting it twice.
    """

    __tablename__ = "cards"
    __table_args__ = (_one_of("scope", SCOPES),)
    scope: str = Field(primary_key=True)
    subject: str = Field(primary_key=True)
    channel: str = ""
    ts: str = ""
    drawn: str = ""
    failures: int = 0
    busy_until: datetime | None = _moment(default=None)
    not_before: datetime | None = _moment(default=None)
    posted_at: datetime | None = _moment(default=None)
    note: str = _json(default="")


class AuditRow(SQLModel, table=True):
    """What happened, chained per root run: `hash` covers the row and the hash before it; texts stand by their hash."""

    __tablename__ = "audit"
    __table_args__ = (sa.Index("ix_audit_at", "at"),)
    root: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    kind: str
    data: Any = _json()
    content_hash: str = ""
    at: datetime = _moment()
    hash: str


class ScheduleRow(SQLModel, table=True):
    """A recurring start; `rule` says when in `time_zone`, `next_at` is the next time in UTC."""

    __tablename__ = "schedules"
    id: str = Field(primary_key=True)
    who: str
    team: str = ""
    channel: str = ""
    flow: str
    input: Any = _json()
    rule: str
    time_zone: str
    next_at: datetime | None = _moment(default=None)


class SwitchRow(SQLModel, table=True):
    """Switches that hold for every process: `hold` stops all effects, `sweep` remembers the last sweep."""

    __tablename__ = "switches"
    name: str = Field(primary_key=True)
    value: Any = _json()
    at: datetime = _moment()
