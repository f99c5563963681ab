"""Journals of events, append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and what guards it."""
    op.create_table(
        "journal",
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column(
            "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("stream", "sequence", name="pk_journal"),
    )
    op.execute(
        """
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
            FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
        """
    )
    op.execute("ALTER TABLE journal ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """Journals are append-only: there is no way back but a backup."""
    raise NotImplementedError("journals are append-only")
