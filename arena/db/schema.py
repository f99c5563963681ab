"""The tables, as SQLAlchemy Core. `migrations/` creates them; a test holds the two together.

Nearly every table here is append-only: the database itself refuses UPDATE, DELETE and
TRUNCATE (see `migrations/versions`). What changes with time, such as how far a race
is, is read from the rows that exist. `MUTABLE` names the others, and which of their
columns may change.

Records stand as compressed bytes of their canonical JSON. Agents write NUL bytes and
anything else into them, which no Postgres text type takes; and a hash holds for bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from arena.db.artefact_tables import artefact_files, artefact_uploads
from arena.db.calendar_tables import race_secrets
from arena.db.declaring import metadata as metadata
from arena.db.declaring import stored_at
from arena.db.submission_tables import (
    agent_versions,
    agents,
    inference_credentials,
    refused_submissions,
)
from arena.db.work_tables import counted_records as counted_records
from arena.db.work_tables import evaluation_runs as evaluation_runs
from arena.db.work_tables import evaluations as evaluations
from arena.db.work_tables import run_problems as run_problems
from arena.db.work_tables import work_history as work_history

races = Table(
    "races",
    metadata,
    Column("race_id", Text, primary_key=True),
    Column("phase", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("inputs", JSONB, nullable=False),
    stored_at(),
)
"""One race. `fingerprint` is the SHA-256 of the canonical JSON of `inputs`."""

agent_sources = Table(
    "agent_sources",
    metadata,
    Column("source_hash", LargeBinary, primary_key=True),
    Column("source", LargeBinary, nullable=False),
    stored_at(),
)
"""Agents' files by SHA-256, compressed with zstandard."""

race_agents = Table(
    "race_agents",
    metadata,
    Column("race_id", Text, ForeignKey("races.race_id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("source_hash", LargeBinary, ForeignKey("agent_sources.source_hash"), nullable=False),
    PrimaryKeyConstraint("race_id", "label"),
)
"""Who races. `label` is the name made distinct within the race."""

race_problems = Table(
    "race_problems",
    metadata,
    Column("race_id", Text, ForeignKey("races.race_id"), nullable=False),
    Column("problem_id", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("bucket", Text, nullable=False),
    Column("pool", Text),
    Column("cluster", Text),
    PrimaryKeyConstraint("race_id", "problem_id"),
)
"""What was drawn: the denominator. Written before the first run, never changed."""

records = Table(
    "records",
    metadata,
    Column("record_hash", LargeBinary, primary_key=True),
    Column("schema_version", SmallInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    stored_at(),
)
"""Records: zstandard over canonical JSON; `record_hash` is the SHA-256 of that JSON."""

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("race_id", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("problem_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("closed", Boolean, nullable=False),
    Column("success", Boolean),
    Column("success_upstream", Boolean),
    Column("axis", Text),
    Column("failure_code", Text),
    Column("failure_fault", Text),
    Column("wall_s", Double, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True), nullable=False),
    Column("record_hash", LargeBinary, ForeignKey("records.record_hash"), nullable=False),
    stored_at(),
    UniqueConstraint("record_hash"),
    ForeignKeyConstraint(["race_id", "agent"], ["race_agents.race_id", "race_agents.label"]),
    ForeignKeyConstraint(
        ["race_id", "problem_id"], ["race_problems.race_id", "race_problems.problem_id"]
    ),
    Index(None, "race_id", "agent", "problem_id"),
)
"""Attempts. `closed` is false when the host, the provider or the arena failed: such a
problem has no outcome yet, and `success` is NULL."""

verdicts = Table(
    "verdicts",
    metadata,
    Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
    Column("quality", Double, nullable=False),
    Column("gate", Text, nullable=False),
    Column("coefficient", Double, nullable=False),
    Column("final_score", Double, nullable=False),
    Column("standin", Boolean, nullable=False),
    Column("later", Boolean, nullable=False),
    Column("record_hash", LargeBinary, ForeignKey("records.record_hash"), nullable=False),
    stored_at(),
    UniqueConstraint("record_hash"),
)
"""What judges said, at most one verdict a run: none is *unjudged*, and no zero. `later`
verdicts stand in a record of their own, the others in their run's. The view `race_scores`
sums them up by race, agent and bucket."""

seals = Table(
    "seals",
    metadata,
    Column("seal_hash", LargeBinary, primary_key=True),
    Column("validator", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("previous", LargeBinary),
    Column("kind", Text, nullable=False),
    Column("record_hash", LargeBinary, ForeignKey("records.record_hash"), nullable=False),
    Column("sealed_at", DateTime(timezone=True), nullable=False, index=True),
    Column("block_number", BigInteger),
    Column("block_hash", Text),
    Column("content", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    stored_at(),
    UniqueConstraint("record_hash"),
    UniqueConstraint("validator", "sequence"),
    UniqueConstraint("validator", "previous", postgresql_nulls_not_distinct=True),
)
"""Who vouches for a record (`arena/runs/seal.py`): `content` is the seal's exact bytes and
`seal_hash` their SHA-256; the other columns are read from it. A validator has one seal of
each number and one after each seal, the first after none. A seal stands here only with its
record; one whose record is withheld stands in exports. Numbers come in any order."""

problem_contents = Table(
    "problem_contents",
    metadata,
    Column("problem_id", Text, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    stored_at(),
    PrimaryKeyConstraint("problem_id", "content_hash"),
)
"""Problems with their rewards, as records name them (`problem.content_hash`): zstandard over
canonical JSON; `content_hash` is the SHA-256 of that JSON. Never public by itself."""

journal = Table(
    "journal",
    metadata,
    Column("stream", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("data", LargeBinary, nullable=False),
    stored_at(),
    PrimaryKeyConstraint("stream", "sequence"),
)
"""What happened to bank, clusters, partition and calendar (`arena/journal.py`): the entries
of a stream, counted from 1 without a gap. `data` is canonical JSON; `at` is the event's own
time, `stored_at` the database's."""

log_heads = Table(
    "log_heads",
    metadata,
    Column("day", Date, primary_key=True),
    Column("head_hash", LargeBinary, nullable=False),
    Column("previous", LargeBinary),
    Column("size", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("consistency", LargeBinary, nullable=False),
    Column("subtrees", LargeBinary, nullable=False),
    stored_at(),
    UniqueConstraint("head_hash"),
    UniqueConstraint("previous", postgresql_nulls_not_distinct=True),
)
"""Heads of the log (`arena/records/heads.py`), one a day: `content` is the head's exact bytes
and `head_hash` their SHA-256. `consistency` is the proof that the head before grew to it and
`subtrees` the compact range at its size, both as hashes of 32 bytes, packed. There is one
head after each head, and one first."""

log_entries = Table(
    "log_entries",
    metadata,
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("seal_hash", LargeBinary, ForeignKey("seals.seal_hash"), nullable=False),
    Column("leaf_hash", LargeBinary, nullable=False),
    stored_at(),
    UniqueConstraint("seal_hash"),
)
"""The log: which seal is leaf `index`, counted from 0, and the leaf's hash (RFC 9162). A
seal is entered when the day it was stored by is closed, in one transaction with the head."""

head_commitments = Table(
    "head_commitments",
    metadata,
    Column("head_hash", LargeBinary, ForeignKey("log_heads.head_hash"), nullable=False),
    Column("address", Text, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    stored_at(),
    PrimaryKeyConstraint("head_hash", "address", "block"),
)
"""Heads that were put on chain: by whom, and the block since which `data` stands there. A
head that was committed vouches for all before it."""

request_nonces = Table(
    "request_nonces",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Nonces of signed requests (`arena/api/nonces.py`): the SHA-256 of hotkey and nonce, until
the signature is too old by itself."""

auth_challenges = Table(
    "auth_challenges",
    metadata,
    Column("challenge_hash", LargeBinary, primary_key=True),
    Column("hotkey", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Challenges that were not signed yet, by their SHA-256."""

auth_sessions = Table(
    "auth_sessions",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("hotkey", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Sessions by the SHA-256 of their tokens, which stand nowhere."""

process_ticks = Table(
    "process_ticks",
    metadata,
    Column("process", Text, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
)
"""When each process beside the API was last heard of: the conductor's, for `/health/deep`, and
validators' that asked for work (`arena/api/presence.py`)."""

epoch_standings = Table(
    "epoch_standings",
    metadata,
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
    stored_at(),
)
"""The standings that weights of an epoch of the chain are set by: canonical JSON, frozen when
the first validator asks. `epoch` is the block that it begins with."""

APPEND_ONLY = (
    races,
    agent_sources,
    race_agents,
    race_problems,
    records,
    runs,
    verdicts,
    seals,
    problem_contents,
    journal,
    log_heads,
    log_entries,
    head_commitments,
    counted_records,
    work_history,
    epoch_standings,
    artefact_uploads,
    artefact_files,
    agents,
    agent_versions,
    refused_submissions,
    race_secrets,
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What the application may change in a table's rows, beside adding and reading them."""

    columns: tuple[str, ...]
    """Columns that may be updated."""
    delete: bool = False
    """Whether rows may be deleted."""


MUTABLE: Mapping[Table, Changes] = {
    evaluations: Changes(("state", "taken", "finished", "ended_at")),
    evaluation_runs: Changes(
        (
            "state",
            "lease",
            "started_at",
            "heard_at",
            "expires_at",
            "ended_at",
            "retry_at",
            "counted",
            "failure_code",
            "failure_fault",
            "failure_message",
        )
    ),
    run_problems: Changes(("state", "updated_at")),
    request_nonces: Changes((), delete=True),
    auth_challenges: Changes((), delete=True),
    auth_sessions: Changes((), delete=True),
    process_ticks: Changes(("at",)),
    inference_credentials: Changes(("sealed", "updated_at", "chosen_at"), delete=True),
}
"""The tables that are no journals. `arena/db/guard.py` gives the application exactly these
rights; a table is in `APPEND_ONLY` or here."""
