"""What a step costs: its count is saved instead of counted at each load, and its key has no tree of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the change."""
    op.add_column("runs", sa.Column("steps", sa.BigInteger(), server_default="0", nullable=False))
    op.execute(
        "UPDATE runs SET steps = ("
        "  SELECT count(*) FROM checkpoints JOIN runs AS member ON member.thread_id = checkpoints.thread_id"
        "  WHERE member.root = runs.thread_id AND source = 'step')"
    )
    _rebuild_checkpoints(with_rowid=False)


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("runs", "steps")
    _rebuild_checkpoints(with_rowid=True)


def _rebuild_checkpoints(*, with_rowid: bool) -> None:
    if op.get_bind().dialect.name == "sqlite":
        options = {"sqlite_with_rowid": with_rowid}
        with op.batch_alter_table("checkpoints", recreate="always", table_kwargs=options):
            pass  # copied as it is
