"""How many steps a run and its children have taken, counted with each save instead of at each load."""

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


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("runs", "steps")
