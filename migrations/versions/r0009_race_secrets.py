"""What races are committed to before their draw, sealed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, append-only."""
    op.create_table(
        "race_secrets",
        sa.Column("race_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column(
            "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("race_id", name="pk_race_secrets"),
    )
    op.execute(
        """
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON race_secrets
            FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
        """
    )
    op.execute("ALTER TABLE race_secrets ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")
