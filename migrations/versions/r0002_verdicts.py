"""Verdicts of judges, append-only, and the scores that follow from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, what guards it, and the view."""
    op.create_table(
        "verdicts",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("quality", sa.Double, nullable=False),
        sa.Column("gate", sa.Text, nullable=False),
        sa.Column("coefficient", sa.Double, nullable=False),
        sa.Column("final_score", sa.Double, nullable=False),
        sa.Column("standin", sa.Boolean, nullable=False),
        sa.Column("later", sa.Boolean, nullable=False),
        sa.Column("record_hash", sa.LargeBinary, nullable=False),
        sa.Column(
            "stored_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("run_id", name="pk_verdicts"),
        sa.UniqueConstraint("record_hash", name="uq_verdicts_record_hash"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_verdicts_run_id"),
        sa.ForeignKeyConstraint(
            ["record_hash"], ["records.record_hash"], name="fk_verdicts_record_hash"
        ),
    )
    op.execute(
        """
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON verdicts
            FOR EACH STATEMENT EXECUTE FUNCTION arena_append_only()
        """
    )
    op.execute("ALTER TABLE verdicts ENABLE ALWAYS TRIGGER append_only")
    _create_scores()


def downgrade() -> None:
    """Records are append-only: there is no way back but a backup."""
    raise NotImplementedError("records are append-only")


def _create_scores() -> None:
    """A score counts all problems drawn: NULL while one of them is open or unjudged.

    The first attempt that closed a problem is the one that counts.
    """
    op.execute(
        """
        CREATE VIEW race_scores AS
        WITH closed AS (
            SELECT DISTINCT ON (race_id, agent, problem_id) race_id, agent, problem_id, run_id,
                success
            FROM runs WHERE closed ORDER BY race_id, agent, problem_id, attempt, run_id
        )
        SELECT a.race_id, a.label AS agent, p.bucket,
            count(*) AS problems,
            count(*) FILTER (WHERE c.run_id IS NULL) AS open,
            count(*) FILTER (WHERE c.run_id IS NOT NULL AND v.run_id IS NULL) AS unjudged,
            CASE WHEN count(c.run_id) = count(*)
                THEN avg(c.success::int::double precision) END AS asr,
            CASE WHEN count(v.run_id) = count(*) THEN avg(v.coefficient) END AS coefficient,
            CASE WHEN count(v.run_id) = count(*) THEN avg(v.final_score) END AS score
        FROM race_agents a
        JOIN race_problems p USING (race_id)
        LEFT JOIN closed c ON c.race_id = a.race_id AND c.agent = a.label
            AND c.problem_id = p.problem_id
        LEFT JOIN verdicts v ON v.run_id = c.run_id
        GROUP BY GROUPING SETS ((a.race_id, a.label, p.bucket), (a.race_id, a.label))
        """
    )
    op.execute(
        "COMMENT ON VIEW race_scores IS 'By race, agent and bucket; bucket NULL is all of them'"
    )
