"""Seals of records, and the problems that records name; append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _stored_at() -> sa.Column[object]:
    return sa.Column(
        "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
    )


def upgrade() -> None:
    """Create the tables and what guards them."""
    op.create_table(
        "seals",
        sa.Column("seal_hash", sa.LargeBinary, nullable=False),
        sa.Column("validator", sa.Text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("previous", sa.LargeBinary),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("record_hash", sa.LargeBinary, nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("block_number", sa.BigInteger),
        sa.Column("block_hash", sa.Text),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("seal_hash", name="pk_seals"),
        sa.UniqueConstraint("record_hash", name="uq_seals_record_hash"),
        sa.UniqueConstraint("validator", "sequence", name="uq_seals_validator_sequence"),
        # The first seal follows none: a second first one is a fork like any other.
        sa.UniqueConstraint(
            "validator",
            "previous",
            name="uq_seals_validator_previous",
            postgresql_nulls_not_distinct=True,
        ),
        sa.ForeignKeyConstraint(
            ["record_hash"], ["records.record_hash"], name="fk_seals_record_hash"
        ),
    )
    op.create_index("ix_seals_sealed_at", "seals", ["sealed_at"])
    op.create_table(
        "problem_contents",
        sa.Column("problem_id", sa.Text, nullable=False),
        sa.Column("content_hash", sa.LargeBinary, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        _stored_at(),
        sa.PrimaryKeyConstraint("problem_id", "content_hash", name="pk_problem_contents"),
    )
    for table in ("seals", "problem_contents"):
        op.execute(
            f"""
            CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
            """
        )
        op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")
