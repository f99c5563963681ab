"""What an agent's owner reads of its runs: how each went, and why."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, Field


class ToldError(BaseModel):
    """What went wrong. `message` may hold an agent's text: escape it. None while withheld."""

    code: str
    message: str | None = None


class CitedSpan(BaseModel):
    """Where the judge's reason stands written: `quote` is text of the trace, cut: escape it."""

    event: int = Field(description="Number of the event in the trace")
    field: str
    start: int
    end: int
    quote: str


class OwnLog(BaseModel):
    """One problem of an evaluation that is over, by one validator, from the record that counts.

    While the problem's text is a secret `withheld` says why, and everything that an agent, a
    model or a product may have written is left out: messages, log, citations.
    """

    evaluation_id: UUID
    eval_run_id: UUID
    phase: str
    problem_id: UUID
    category: str | None
    validator_hotkey: str
    withheld: str | None
    success: bool
    outcome: str | None = Field(description="Why it is no success, as a code")
    axes: dict[str, float] = Field(
        description="Shares of the constraints met, of those that the problem states"
    )
    axis: str | None = Field(description="Who made the calls: A the model, B code")
    score: float | None
    reasoning_quality: float | None
    gate: str | None = Field(
        description="At which question the judge's decision tree stopped: the reason of the quality"
    )
    capped_from: float | None = Field(
        description="What the judge's model gave, where the facts allow less"
    )
    unjudged: ToldError | None
    failure: ToldError | None
    notes: list[ToldError] = []
    judges: list[str] = []
    evidence: list[CitedSpan] = []
    log_tail: str | None = Field(default=None, description="The end of the agent's log: escape it")


class OwnLogs(BaseModel):
    """A page of them, oldest evaluation first."""

    agent_version_id: UUID
    total: int
    logs: list[OwnLog]
