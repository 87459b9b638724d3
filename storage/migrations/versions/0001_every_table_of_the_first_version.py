"""Every table of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the change."""
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("ask", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("draft", sa.Text(), nullable=False),
        sa.Column("draft_version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("requester", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("taken", sa.Boolean(), nullable=False),
        sa.Column("reminded", sa.Integer(), nullable=False),
        sa.Column("remind_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("undo_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('review', 'question', 'signal', 'effect')", name=op.f("ck_approvals_kind")),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'final', 'declined', 'changes_requested', 'answered', 'expired', 'cancelled', 'superseded')",  # noqa: E501
            name=op.f("ck_approvals_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
    )
    with op.batch_alter_table("approvals", schema=None) as batch_op:
        batch_op.create_index(
            "ix_approvals_expires_at",
            ["expires_at"],
            unique=False,
            sqlite_where=sa.text("status IN ('pending', 'approved')"),
            postgresql_where=sa.text("status IN ('pending', 'approved')"),
        )
        batch_op.create_index(
            "ix_approvals_remind_at",
            ["remind_at"],
            unique=False,
            sqlite_where=sa.text("status = 'pending'"),
            postgresql_where=sa.text("status = 'pending'"),
        )
        batch_op.create_index("ix_approvals_root", ["root"], unique=False)
        batch_op.create_index("ix_approvals_status", ["status", "settled_at"], unique=False)

    op.create_table(
        "audit",
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("root", "seq", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("ix_audit_at", ["at"], unique=False)

    op.create_table(
        "cards",
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("ts", sa.String(), nullable=False),
        sa.Column("drawn", sa.String(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("busy_until", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("posted_at", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint("scope IN ('run', 'approval', 'ending', 'told')", name=op.f("ck_cards_scope")),
        sa.PrimaryKeyConstraint("scope", "subject", name=op.f("pk_cards")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("next", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("is_full", sa.Boolean(), nullable=False),
        sa.Column("meta", sa.Text(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "source IN ('input', 'step', 'update', 'receipt', 'fork')", name=op.f("ck_checkpoints_source")
        ),
        sa.PrimaryKeyConstraint("thread_id", "step", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("approval", sa.String(), nullable=False),
        sa.Column("draft_version", sa.Integer(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("edits", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("refusal", sa.String(), nullable=False),
        sa.Column("via", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.create_index("ix_decisions_approval", ["approval"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index(
            "ix_deliveries_open",
            ["at"],
            unique=False,
            sqlite_where=sa.text("done_at IS NULL"),
            postgresql_where=sa.text("done_at IS NULL"),
        )

    op.create_table(
        "effects",
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("into", sa.String(), nullable=False),
        sa.Column("guarded", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("send_until", sa.BigInteger(), nullable=True),
        sa.Column("first_sent_at", sa.BigInteger(), nullable=True),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'sending', 'sent', 'failed', 'unknown', 'cancelled')", name=op.f("ck_effects_status")
        ),
        sa.PrimaryKeyConstraint("thread_id", "step", "n", name=op.f("pk_effects")),
    )
    with op.batch_alter_table("effects", schema=None) as batch_op:
        batch_op.create_index(
            "ix_effects_open",
            ["status"],
            unique=False,
            sqlite_where=sa.text("status IN ('pending', 'sending', 'unknown')"),
            postgresql_where=sa.text("status IN ('pending', 'sending', 'unknown')"),
        )
        batch_op.create_index("ix_effects_root", ["root"], unique=False)

    op.create_table(
        "memories",
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "key", name=op.f("pk_memories")),
    )
    op.create_table(
        "pending_writes",
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "step", "task", "key", name=op.f("pk_pending_writes")),
    )
    op.create_table(
        "releases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("approval", sa.String(), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("draft_version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("used_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
    )
    with op.batch_alter_table("releases", schema=None) as batch_op:
        batch_op.create_index("ix_releases_approval", ["approval"], unique=False)
        batch_op.create_index("ix_releases_match", ["kind", "content_hash"], unique=False)

    op.create_table(
        "runs",
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("root", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("max_steps", sa.Integer(), nullable=False),
        sa.Column("pause_before", sa.Text(), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.Column("claim", sa.String(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("ending", sa.String(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "ending IN ('', 'finished', 'declined', 'gave_up', 'expired', 'cancelled', 'failed')",
            name=op.f("ck_runs_ending"),
        ),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index("ix_runs_created_at", ["created_at"], unique=False)
        batch_op.create_index(
            "ix_runs_due_at",
            ["due_at"],
            unique=False,
            sqlite_where=sa.text("due_at IS NOT NULL"),
            postgresql_where=sa.text("due_at IS NOT NULL"),
        )
        batch_op.create_index("ix_runs_ending", ["ending", "ended_at"], unique=False)
        batch_op.create_index(
            "ix_runs_lease_until",
            ["lease_until"],
            unique=False,
            sqlite_where=sa.text("claim IS NOT NULL"),
            postgresql_where=sa.text("claim IS NOT NULL"),
        )
        batch_op.create_index("ix_runs_root", ["root"], unique=False)

    op.create_table(
        "schedules",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("time_zone", sa.String(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    op.create_table(
        "switches",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switches")),
    )
    op.create_table(
        "usage",
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "who", name=op.f("pk_usage")),
    )


def downgrade() -> None:
    """Take it back."""
    op.drop_table("usage")
    op.drop_table("switches")
    op.drop_table("schedules")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("ix_runs_root")
        batch_op.drop_index(
            "ix_runs_lease_until",
            sqlite_where=sa.text("claim IS NOT NULL"),
            postgresql_where=sa.text("claim IS NOT NULL"),
        )
        batch_op.drop_index(
            "ix_runs_due_at", sqlite_where=sa.text("due_at IS NOT NULL"), postgresql_where=sa.text("due_at IS NOT NULL")
        )
        batch_op.drop_index("ix_runs_ending")
        batch_op.drop_index("ix_runs_created_at")

    op.drop_table("runs")
    with op.batch_alter_table("releases", schema=None) as batch_op:
        batch_op.drop_index("ix_releases_match")
        batch_op.drop_index("ix_releases_approval")

    op.drop_table("releases")
    op.drop_table("pending_writes")
    op.drop_table("memories")
    with op.batch_alter_table("effects", schema=None) as batch_op:
        batch_op.drop_index("ix_effects_root")
        batch_op.drop_index(
            "ix_effects_open",
            sqlite_where=sa.text("status IN ('pending', 'sending', 'unknown')"),
            postgresql_where=sa.text("status IN ('pending', 'sending', 'unknown')"),
        )

    op.drop_table("effects")
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_deliveries_open", sqlite_where=sa.text("done_at IS NULL"), postgresql_where=sa.text("done_at IS NULL")
        )

    op.drop_table("deliveries")
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_index("ix_decisions_approval")

    op.drop_table("decisions")
    op.drop_table("checkpoints")
    op.drop_table("cards")
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index("ix_audit_at")

    op.drop_table("audit")
    with op.batch_alter_table("approvals", schema=None) as batch_op:
        batch_op.drop_index("ix_approvals_status")
        batch_op.drop_index("ix_approvals_root")
        batch_op.drop_index(
            "ix_approvals_remind_at",
            sqlite_where=sa.text("status = 'pending'"),
            postgresql_where=sa.text("status = 'pending'"),
        )
        batch_op.drop_index(
            "ix_approvals_expires_at",
            sqlite_where=sa.text("status IN ('pending', 'approved')"),
            postgresql_where=sa.text("status IN ('pending', 'approved')"),
        )

    op.drop_table("approvals")
