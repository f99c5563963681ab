"""What miners send and get: the models of `oro-sdk` 7, field by field, and a little more."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from arena.api.version_states import VersionState


class SubmitAgentResponse(BaseModel):
    """An admitted submission. The same file again gives the same version."""

    admission_status: str = "ACCEPTED"
    hotkey: str
    agent_id: UUID
    agent_version_id: UUID
    admission_reason: str | None = None
    next_allowed_at: datetime
    message: str = "the agent is taken in"
    version_number: int
    source_sha256: str


class ToldViolation(BaseModel):
    """Something in the file that a rule forbids. `found` is text of the file: escape it."""

    file: str
    line: int = Field(description="From 1; 0 when it is the whole file")
    column: int
    rule: str
    code: str
    severity: str = "error"
    message: str
    found: str
    fix: str


class GateRefusal(BaseModel):
    """The SDK's CodeAnalysisError. `remaining_seconds` is set when it cost the cooldown."""

    detail: str
    error_code: str = "CODE_ANALYSIS_ERROR"
    violations: list[ToldViolation]
    more: int = Field(description="Places that are not listed, those found by the bank apart")
    remaining_seconds: int | None = None
    next_allowed_at: datetime | None = None


class RefusedFile(BaseModel):
    """A file of the caller that the gate refused."""

    agent_name: str
    source_sha256: str
    size: int
    refused_at: datetime
    violations: list[ToldViolation]
    more: int


class AgentVersionHistoryEntry(BaseModel):
    """A version, as its owner sees it."""

    agent_version_id: UUID
    version_number: int
    submitted_at: datetime
    state: VersionState
    eliminated_at: datetime | None = None
    eliminated_in_race_number: int | None = None
    final_score: float | None = None
    is_selected_for_race: bool = False
    selection_fallback_reason: str | None = None
    is_pinnable: bool = False
    pin_disabled_reason: str | None = None


class AgentPublic(BaseModel):
    """An agent with its newest version."""

    agent_id: UUID
    miner_hotkey: str
    agent_name: str
    created_at: datetime
    latest_version: AgentVersionHistoryEntry | None


class MinerAgentsResponse(BaseModel):
    """The caller's agents, when it may submit again, and what it selected to race."""

    agents: list[AgentPublic]
    can_submit: bool
    next_allowed_at: datetime | None
    racing_agent_version_id: UUID | None
    racing_agent_id: UUID | None
    selected_agent_version_id: UUID | None
    selected_agent_id: UUID | None


class MinerRaceSelectionRequest(BaseModel):
    """Which version is to race."""

    agent_version_id: UUID


_Credential = Annotated[str, Field(min_length=1, max_length=4_096, repr=False)]


class StoreInferenceCredentialRequest(BaseModel):
    """A key of a model provider. It is sealed, and never shown again."""

    credential: _Credential


class SetDefaultProviderRequest(BaseModel):
    """Which of the caller's providers pays for its runs."""

    provider: Annotated[str, Field(max_length=40)]


class InferenceAuthStatusResponse(BaseModel):
    """Whether the caller has a credential of a provider."""

    connected: bool
    provider: str
    updated_at: datetime | None = None


class InferenceAuthListResponse(BaseModel):
    """All providers, and the one that pays."""

    providers: list[InferenceAuthStatusResponse]
    default_provider: str | None


class ChutesAuthStatusResponse(BaseModel):
    """Whether the caller has a credential of Chutes."""

    connected: bool
    updated_at: datetime | None = None


class Done(BaseModel):
    """It is so now."""

    ok: bool = True
    provider: str


class OwnProblem(BaseModel):
    """A problem of the caller's own evaluation, without its text. Scores stand here when the
    evaluation is over; `failure` is the code of what went wrong."""

    problem_id: UUID
    category: str | None
    validator_hotkey: str
    status: str
    success: bool | None = None
    score: float | None = None
    reasoning_quality: float | None = None
    failure: str | None = None
    execution_time: float | None = None


class OwnProblems(BaseModel):
    """How one evaluation of the caller's version went, problem by problem."""

    agent_version_id: UUID
    evaluation_id: UUID
    phase: str
    over: bool
    problems: list[OwnProblem]
