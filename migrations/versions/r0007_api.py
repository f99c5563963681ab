"""What the API keeps: nonces, challenges, sessions, signs of life; standings by epoch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    """Create the tables. Only standings are append-only: the others forget what is over."""
    op.create_table(
        "request_nonces",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        _time("expires_at"),
        sa.PrimaryKeyConstraint("digest", name="pk_request_nonces"),
    )
    op.create_table(
        "auth_challenges",
        sa.Column("challenge_hash", sa.LargeBinary, nullable=False),
        sa.Column("hotkey", sa.Text, nullable=False),
        _time("expires_at"),
        sa.PrimaryKeyConstraint("challenge_hash", name="pk_auth_challenges"),
    )
    op.create_table(
        "auth_sessions",
        sa.Column("token_hash", sa.LargeBinary, nullable=False),
        sa.Column("hotkey", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        _time("created_at"),
        _time("expires_at"),
        sa.PrimaryKeyConstraint("token_hash", name="pk_auth_sessions"),
    )
    for table in ("request_nonces", "auth_challenges", "auth_sessions"):
        op.create_index(f"ix_{table}_expires_at", table, ["expires_at"])
    op.create_table(
        "process_ticks",
        sa.Column("process", sa.Text, nullable=False),
        _time("at"),
        sa.PrimaryKeyConstraint("process", name="pk_process_ticks"),
    )
    op.create_table(
        "epoch_standings",
        sa.Column("epoch", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column(
            "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("epoch", name="pk_epoch_standings"),
    )
    op.execute(
        """
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON epoch_standings
            FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
        """
    )
    op.execute("ALTER TABLE epoch_standings ENABLE ALWAYS TRIGGER append_only")


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")
