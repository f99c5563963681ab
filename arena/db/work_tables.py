"""The work queue's tables: what is wanted of validators, and what became of it (`arena/work`)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from arena.db.declaring import metadata, stored_at

evaluations = Table(
    "evaluations",
    metadata,
    Column("evaluation_id", Uuid, primary_key=True),
    Column("version", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("season_race", Text),
    Column("problems", ARRAY(Text), nullable=False),
    Column("needed", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("taken", Integer, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("opened_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    UniqueConstraint("version", "kind", "season_race", postgresql_nulls_not_distinct=True),
    CheckConstraint("kind IN ('qualifying', 'race')", name="kind_known"),
    CheckConstraint("state IN ('OPEN', 'CLOSED', 'CANCELLED')", name="state_known"),
    CheckConstraint(
        "needed > 0 AND 0 <= finished AND finished <= taken AND taken <= needed", name="seats"
    ),
    Index(
        "ix_evaluations_wanted",
        "opened_at",
        "evaluation_id",
        postgresql_where=text("state = 'OPEN' AND taken < needed"),
    ),
)
"""What is wanted of validators (`arena/work`). `taken` of the `needed` seats are held or
finished, `finished` of them for good."""

evaluation_runs = Table(
    "evaluation_runs",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("evaluation_id", Uuid, ForeignKey("evaluations.evaluation_id"), nullable=False),
    Column("validator", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("lease", Interval, nullable=False),
    Column("claimed_at", DateTime(timezone=True), nullable=False),
    Column("started_at", DateTime(timezone=True)),
    Column("heard_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("retry_at", DateTime(timezone=True)),
    Column("counted", Integer, nullable=False),
    Column("failure_code", Text),
    Column("failure_fault", Text),
    Column("failure_message", Text),
    UniqueConstraint("evaluation_id", "validator", "attempt"),
    CheckConstraint(
        "state IN ('CLAIMED', 'RUNNING', 'SUCCESS', 'FAILED', 'TIMED_OUT', 'STALE', 'CANCELLED')",
        name="state_known",
    ),
    Index(
        "ix_evaluation_runs_seat",
        "evaluation_id",
        "validator",
        unique=True,
        postgresql_where=text(
            "state IN ('CLAIMED', 'RUNNING', 'SUCCESS') OR failure_fault = 'agent'"
        ),
    ),
    Index(
        "ix_evaluation_runs_held",
        "validator",
        "expires_at",
        postgresql_where=text("state IN ('CLAIMED', 'RUNNING')"),
    ),
)
"""Validators' turns at evaluations. A validator has one seat in an evaluation at most; a turn
that has ended never changes. `counted` records came during it."""

run_problems = Table(
    "run_problems",
    metadata,
    Column("run_id", Uuid, ForeignKey("evaluation_runs.run_id"), nullable=False),
    Column("problem_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("run_id", "problem_id"),
)
"""How far a turn is, as its validator says: for pages. Nothing is decided by it."""

counted_records = Table(
    "counted_records",
    metadata,
    Column("evaluation_id", Uuid, ForeignKey("evaluations.evaluation_id"), nullable=False),
    Column("validator", Text, nullable=False),
    Column("problem_id", Text, nullable=False),
    Column("record_hash", LargeBinary, nullable=False),
    Column("run_id", Uuid, ForeignKey("evaluation_runs.run_id"), nullable=False),
    Column("counted_at", DateTime(timezone=True), nullable=False),
    stored_at(),
    PrimaryKeyConstraint("evaluation_id", "validator", "problem_id"),
    UniqueConstraint("record_hash"),
    # Deferred: within one transaction the record may be stored before or after it is counted.
    ForeignKeyConstraint(
        ["record_hash"], ["records.record_hash"], deferrable=True, initially="DEFERRED"
    ),
)
"""Which record counts for a problem of an evaluation by a validator: exactly one, the first.
`run_id` is the turn in which it came."""

work_history = Table(
    "work_history",
    metadata,
    Column("evaluation_id", Uuid, ForeignKey("evaluations.evaluation_id"), nullable=False),
    Column("run_id", Uuid, ForeignKey("evaluation_runs.run_id")),
    Column("sequence", BigInteger, Identity(always=True), primary_key=True),
    Column("validator", Text),
    Column("state", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("actor", Text),
    Column("code", Text),
    Column("fault", Text),
    Column("message", Text),
    stored_at(),
    Index(None, "evaluation_id", "sequence"),
)
"""Every state that an evaluation (`run_id` is NULL) or a turn came to: whose turn, when, who
did it (`actor`; NULL is the arena), and for ends other than success why and by whose fault."""
