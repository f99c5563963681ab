"""What validators send and get: the models of `oro-sdk` 7, field by field.

What the SDK sends besides is not read. Some answers hold more than the SDK names; it keeps
such fields beside its own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from arena.work.views import ProblemState

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Key = Annotated[str, Field(max_length=300)]


class HostState(BaseModel):
    """How a validator's machine is, as it says."""

    service_versions: Annotated[dict[str, Any] | None, Field(max_length=64)] = None
    cpu_pct: _Number | None = None
    ram_pct: _Number | None = None
    disk_pct: _Number | None = None
    docker_container_count: _Count | None = None


class ClaimWorkRequest(HostState):
    """What a validator says when it asks for work. `working`: the runs that it works on, so
    that one it lost in a crash comes back at once."""

    runtime_contract: int | None = None
    working: Annotated[list[UUID] | None, Field(max_length=64)] = None


class InferenceTokenGrant(BaseModel):
    """What this run's model calls are paid with. It is a miner's secret: use it for the run,
    send it to `base_url` alone, store and log it nowhere."""

    provider: str
    access_token: Annotated[str, Field(repr=False)]
    base_url: str
    expires_at: datetime


class ClaimWorkResponse(BaseModel):
    """A run to do. `evaluation_id` is the `race_id` of its records, `phase` their phase,
    `agent_version_id` the label and version of their agent, `artefact` the manifest of the
    model that the agent brings."""

    eval_run_id: UUID
    agent_version_id: UUID
    suite_id: int
    lease_expires_at: datetime
    code_download_url: str
    env_pack_sha256: str | None = None
    race_id: UUID | None = None
    delivery_id: str | None = None
    episode_nonces: dict[str, str] | None = None
    inference_token: InferenceTokenGrant | None = None
    artefact: dict[str, Any] | None = None
    evaluation_id: UUID
    phase: str
    agent_name: str
    source_sha256: str
    resumed: bool


class HeartbeatResponse(BaseModel):
    """Until when the run is held now."""

    lease_expires_at: datetime


class ProblemPublic(BaseModel):
    """A problem; `metadata` is all of it, with its reward."""

    problem_id: UUID
    suite_id: int
    metadata: dict[str, Any]


class RunProblemsResponse(BaseModel):
    """The problems of a run, in order."""

    problems: list[ProblemPublic]


class ProblemProgressUpdate(BaseModel):
    """How far a problem is. Only the status is kept: scores are read from records."""

    problem_id: UUID
    status: ProblemState
    score: _Share | None = None
    score_components_summary: Annotated[dict[str, Any] | None, Field(max_length=64)] = None
    logs_s3_key: _Key | None = None
    reasoning_score: _Share | None = None
    inference_failure_count: _Count | None = None
    inference_total: _Count | None = None
    execution_time: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class ProgressUpdateRequest(BaseModel):
    """How far the problems of a run are."""

    problems: Annotated[list[ProblemProgressUpdate], Field(max_length=1_000)]


class ProgressUpdateResponse(BaseModel):
    """It is taken."""

    accepted: bool = True


class CompleteRunRequest(BaseModel):
    """How a run ended. The score is compared with what the records say, and not used."""

    terminal_status: Literal["SUCCESS", "FAILED", "TIMED_OUT"]
    validator_score: _Share | None = None
    score_components: Annotated[dict[str, Any] | None, Field(max_length=64)] = None
    results_s3_key: _Key | None = None
    failure_reason: Annotated[str | None, Field(max_length=10_000)] = None
    sandbox_metadata: Annotated[dict[str, Any] | None, Field(max_length=64)] = None


class WorkItemStatus(BaseModel):
    """How many of the validators that are needed have finished."""

    included_success_count: int
    required_successes: int
    is_closed: bool


class CompleteRunResponse(BaseModel):
    """What is stored. Whether the version qualified is decided by the calendar, later."""

    eval_run_id: UUID
    status: str
    work_item: WorkItemStatus
    agent_version_became_eligible: bool = False
    final_score: float | None = None


class PresignUploadRequest(BaseModel):
    """A file that a validator wants to leave with a problem of its run."""

    content_length: Annotated[int, Field(ge=0, le=2**62)]
    eval_run_id: UUID
    problem_id: UUID
    content_type: Annotated[str, Field(max_length=130)] = "application/json"


class PresignUploadResponse(BaseModel):
    """Where to, how, and until when."""

    upload_url: str
    results_s3_key: str
    expires_at: datetime
    method: str = "PUT"


class PinnedFinisher(BaseModel):
    """A finisher of the last race."""

    miner_hotkey: str
    agent_version_id: str
    race_score: float


class EpochStandings(BaseModel):
    """What the weights of an epoch are made of. `top_version` is the agent that holds the
    title, when it is among the finishers; else the best race score is first."""

    top_hotkey: str | None
    t_burn: float
    finishers: list[PinnedFinisher]
    top_version: str | None = None
    race_id: str | None = None


class WeightSaltResponse(BaseModel):
    """The standings of an epoch, the same for every validator that asks in it.

    Without standings there was no race yet: weights are left as they are. A validator that is
    not `eligible` has done no work of late, and burns.
    """

    epoch_index: int
    eligible: bool = False
    weight_overlay: dict[str, float] = Field(default_factory=dict)
    epoch_standings: EpochStandings | None = None
