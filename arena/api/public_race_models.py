"""What anyone may read of races and standings: the models of `oro-sdk` 7, field by field."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from arena.api.public_agent_models import LEGACY


class SuitePublic(BaseModel):
    """A set of problems. A bank's number is a date; 1 to 3 are the public suites."""

    suite_id: int
    suite_version: int
    is_active: bool
    execution_kind: str = LEGACY
    benchmark_name: str | None = None
    benchmark_number: int | None = None


class ProblemText(BaseModel):
    """A problem as an agent sees it: its answer is not part of it."""

    problem_id: UUID
    suite_id: int
    metadata: dict[str, Any]


class SuiteWithProblemsResponse(BaseModel):
    """A public suite."""

    suite: SuitePublic
    problems: list[ProblemText]
    qualifying_tasks: list[dict[str, Any]] = Field(default_factory=list, max_length=0)


class LeaderboardEntry(BaseModel):
    """An agent version. `final_score` is what the board is ordered by."""

    rank: int
    agent_version_id: UUID
    agent_name: str
    miner_hotkey: str
    version_number: int
    final_score: float
    race_score: float | None = None
    eligible_at: datetime | None = None
    is_discarded: bool = False
    is_miner_banned: bool = False
    is_current_top: bool = False
    was_top: bool = False
    top_at: datetime | None = None
    is_active_qualifier: bool = False
    outranked_by_agent_version_id: UUID | None = None
    eliminated_at: datetime | None = None
    weighted_score: float | None = None


class LeaderboardResponse(BaseModel):
    """A page of the board."""

    total: int
    limit: int
    offset: int
    suite: SuitePublic
    entries: list[LeaderboardEntry]
    unique_miners: int
    agents_submitted_24h: int = 0
    challenge_threshold: float | None = None


class TopAgentResponse(BaseModel):
    """Who holds the title, and what takes it. `margin` is the share of the room above the
    champion's score that a challenger has to be ahead by now."""

    suite_id: int
    computed_at: datetime
    top_agent_version_id: UUID | None = None
    top_miner_hotkey: str | None = None
    top_score: float | None = None
    policy: dict[str, Any] | None = None
    challenge_threshold: float | None = None
    margin: float | None = None


class TopHistoryEntry(BaseModel):
    """A champion."""

    agent_version_id: UUID
    agent_name: str
    miner_hotkey: str
    version_number: int
    final_score: float
    top_at: datetime
    is_current_top: bool
    was_top: bool
    suite_id: int


class TopHistoryResponse(BaseModel):
    """The line of champions, the newest first."""

    suite_id: int
    entries: list[TopHistoryEntry]


class TopMinerPayoutResponse(BaseModel):
    """Who is paid most. Amounts are the chain's: this arena states none."""

    as_of: datetime
    miner_hotkey: str | None = None
    agent_name: str | None = None
    tao_per_day: float | None = None
    usd_per_day: float | None = None
    tao_price_usd: float | None = None


class RacePublic(BaseModel):
    """A race. `name` is the season's own id, which holds the date of its closing."""

    race_id: UUID
    suite_id: int
    status: str
    race_number: int | None = None
    qualifying_closes_at: datetime | None = None
    race_started_at: datetime | None = None
    race_completed_at: datetime | None = None
    winner_agent_version_id: UUID | None = None
    winner_score: float | None = None
    qualifying_threshold: float | None = None
    winner_agent_name: str | None = None
    qualifier_count: int = 0
    scored_count: int | None = None
    top50_mean: float | None = None
    top50_std: float | None = None
    created_at: datetime | None = None
    projected_completion_at: datetime | None = None
    name: str
    void_reason: str | None = None


class RaceQualifierPublic(BaseModel):
    """Who runs in a race, or waits for it."""

    agent_version_id: UUID
    qualification_type: str
    agent_name: str | None = None
    miner_hotkey: str | None = None
    version_number: int = 0
    qualifying_score: float | None = None
    race_score: float | None = None
    eliminated_at: datetime | None = None
    race_rank: int | None = None
    is_discarded: bool = False
    weighted_score: float | None = None


class RaceCurrentResponse(BaseModel):
    """The race that runs, else the one in qualifying."""

    race: RacePublic | None = None
    qualifiers: list[RaceQualifierPublic]


class RaceDetailResponse(BaseModel):
    """A race with everyone in it."""

    race: RacePublic
    qualifiers: list[RaceQualifierPublic]


class RaceHistoryResponse(BaseModel):
    """A page of the races that are over, the newest first."""

    total: int
    limit: int
    offset: int
    races: list[RacePublic]


class RaceSeedCommitmentResponse(BaseModel):
    """What a race was committed to, and, once it is drawn, what it was drawn with.

    The whole record, with which anyone can make the draw again, is `record_url`'s.
    """

    race_id: UUID
    scheme: str
    secret_sha256: str
    drand_chain_hash: str
    drand_offset_seconds: int
    drand_round: int
    drand_round_time: datetime
    committed_at: datetime
    revealed: bool
    drand_signature: str | None = None
    drand_randomness: str | None = None
    secret: str | None = None
    world_seed: str | None = None
    world_pack_sha256: str | None = None
    rejected_attempts: list[dict[str, Any]] | None = None
    commitment_sha256: str
    record_url: str


class SpreadBucket(BaseModel):
    """How many pairs of validators are further apart than so many percentage points."""

    threshold_pp: float
    count: int
    pct: float


class ValidatorVarianceEntry(BaseModel):
    """How one validator's scores lie to those of the others on the same agents."""

    validator_hotkey: str
    pairs_evaluated: int
    mean_delta_vs_peers: float
    std_dev: float
    mean_score: float
    validator_name: str | None = None


class RaceValidatorVarianceResponse(BaseModel):
    """How far validators are apart on the same agents. Empty until the race is over."""

    race_id: UUID
    n_pairs: int
    race_number: int | None = None
    mean_spread: float | None = None
    median_spread: float | None = None
    max_spread: float | None = None
    spread_buckets: list[SpreadBucket]
    validators: list[ValidatorVarianceEntry]


class TrajectoryDay(BaseModel):
    """Records that came into the public log on a day."""

    date: str
    distinct: int
    cumulative: int


class TrajectoryHistoryResponse(BaseModel):
    """How the log has grown, from its signed heads."""

    series: list[TrajectoryDay]
    total: int | None = None
    daily_rate: int | None = None
    weekly_rate: int | None = None
    updated_at: datetime | None = None


class InferenceModelsResponse(BaseModel):
    """Models that validators route."""

    models: list[str]
    aliases: dict[str, str] = Field(default_factory=dict)


class RankedInferenceModel(BaseModel):
    """A model. This arena ranks none: the order is the alphabet's."""

    id: str
    rank_metric: dict[str, Any] = Field(default_factory=dict)
    healthy: bool = True


class RankedInferenceModelsResponse(BaseModel):
    """The same, one object each."""

    models: list[RankedInferenceModel]
    ranked_by: str | None = None
    as_of: datetime | None = None
