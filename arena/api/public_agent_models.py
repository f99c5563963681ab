"""What anyone may read of agents and their runs: the models of `oro-sdk` 7, field by field."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from arena.api.version_states import VersionState
from arena.work.types import RunState
from arena.work.views import ProblemState

LEGACY = "legacy_shoppingbench"
"""The SDK's name for problems of ShoppingBench, against its environment packs."""


class AgentVersionPublic(BaseModel):
    """A version whose code is public."""

    agent_version_id: UUID
    agent_id: UUID
    agent_name: str
    miner_hotkey: str
    version_number: int
    submitted_at: datetime
    released_at: datetime
    code_available_at: datetime
    suite_id: int | None = None
    latest_final_score: float | None = None
    source_sha256: str


class AgentVersionStatus(BaseModel):
    """How far a version is. `final_score` is its qualifying score, over the open pool."""

    agent_version_id: UUID
    agent_name: str
    miner_hotkey: str
    version_number: int
    submitted_at: datetime
    state: VersionState
    eliminated_at: datetime | None = None
    eliminated_in_race_number: int | None = None
    suite_id: int | None = None
    required_successes: int = 1
    success_count: int = 0
    active_count: int = 0
    is_closed: bool = False
    final_score: float | None = None
    race_score: float | None = None
    reasoning_coefficient: float | None = None
    release_state: str = "HIDDEN"
    code_available_at: datetime | None = None
    is_active_qualifier: bool = False
    outranked_by_agent_version_id: UUID | None = None
    weighted_score: float | None = None
    qualifying_threshold: float | None = None
    disqualified_reason: str | None = None
    is_champion: bool = False


class EvaluationRunPublic(BaseModel):
    """A validator's turn. Scores and reasons stand here when the evaluation is over."""

    eval_run_id: UUID
    agent_version_id: UUID
    suite_id: int
    validator_hotkey: str
    status: RunState
    claimed_at: datetime
    lease_expires_at: datetime
    is_included: bool
    last_heartbeat_at: datetime | None = None
    completed_at: datetime | None = None
    invalidated_at: datetime | None = None
    invalidated_by: str | None = None
    invalidation_reason: str | None = None
    failure_reason: str | None = None
    validator_score: float | None = None
    phase: str
    race_id: UUID | None = None
    race_number: int | None = None
    evaluation_id: UUID


class EvaluationItemRead(BaseModel):
    """A released problem of a run."""

    item_id: str
    item_kind: str = "legacy_problem"
    status: str
    eval_run_id: UUID
    validator_hotkey: str
    family: str | None = None
    score: float | None = None
    record_sha256: str
    record_run_id: str


class EvaluationItemsRead(BaseModel):
    """The problems of a run that are released, of all that it has."""

    eval_run_id: UUID
    execution_kind: str = LEGACY
    detail_released: bool
    persisted_item_count: int
    items: list[EvaluationItemRead]
    expected_item_count: int


class EvaluationRunDetail(BaseModel):
    """A validator's turn with its released problems."""

    eval_run_id: UUID
    agent_version_id: UUID
    agent_name: str
    validator_hotkey: str
    status: RunState
    version_number: int
    claimed_at: datetime
    score: float | None = None
    completed_at: datetime | None = None
    failure_reason: str | None = None
    is_included: bool = True
    invalidated_at: datetime | None = None
    invalidation_reason: str | None = None
    execution_kind: str = LEGACY
    items: EvaluationItemsRead


class ValidatorProblemResult(BaseModel):
    """One validator's released result of a problem."""

    eval_run_id: UUID
    validator_hotkey: str
    status: ProblemState
    score: float | None = None
    reasoning_score: float | None = None
    updated_at: datetime | None = None
    execution_time: float | None = None


class ProblemProgressEntry(BaseModel):
    """A released problem and what validators made of it."""

    problem_id: UUID
    category: str | None = None
    phase: str | None = None
    race_id: UUID | None = None
    validator_results: list[ValidatorProblemResult]


class AgentVersionProblemsResponse(BaseModel):
    """The problems of a version that are released; `withheld` are not."""

    agent_version_id: UUID
    problems: list[ProblemProgressEntry]
    suite_id: int | None = None
    generated_results: list[dict[str, Any]] = Field(default_factory=list, max_length=0)
    qualifying_tasks: list[dict[str, Any]] = Field(default_factory=list, max_length=0)
    withheld: int


class PendingEvaluation(BaseModel):
    """An evaluation that wants validators."""

    work_item_id: UUID
    agent_version_id: UUID
    agent_name: str
    version_number: int
    miner_hotkey: str
    suite_id: int
    required_successes: int
    completed_successes: int
    active_runs: int
    remaining: int
    queued_at: datetime
    phase: str
    race_id: UUID | None = None


class PendingEvaluationSummary(BaseModel):
    """All of them."""

    total_pending: int
    total_runs_needed: int
    total_runs_active: int
    projected_completion_at: datetime | None = None


class PendingEvaluationsResponse(BaseModel):
    """Evaluations that want validators, in the order in which they are claimed."""

    summary: PendingEvaluationSummary
    items: list[PendingEvaluation]


class RunningEvaluation(BaseModel):
    """A turn that is held now."""

    eval_run_id: UUID
    agent_version_id: UUID
    agent_name: str
    version_number: int
    miner_hotkey: str
    validator_hotkey: str
    status: RunState
    started_at: datetime
    progress_percent: float
    phase: str
    race_id: UUID | None = None


class ValidatorCurrentAgent(BaseModel):
    """What a validator is at."""

    agent_name: str
    version_id: UUID
    version_number: int
    started_at: datetime


class ValidatorPublic(BaseModel):
    """A validator that works here."""

    hotkey: str
    status: str
    registered_at: datetime
    last_claim_at: datetime | None = None
    last_seen_at: datetime | None = None
    current_agent: ValidatorCurrentAgent | None = None


class ArtifactDownloadRequest(BaseModel):
    """What to fetch. `eval_run_id` and `problem_id` go with a problem's logs."""

    artifact_type: Annotated[str, Field(max_length=60)]
    agent_version_id: UUID
    eval_run_id: UUID | None = None
    problem_id: UUID | None = None


class ArtifactDownloadResponse(BaseModel):
    """A link, and until when."""

    download_url: str
    expires_at: datetime
