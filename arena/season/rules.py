"""The rules of a season: what an operator may set, and what every race writes down.

A race keeps the rules with which it opened; they stand in the journal, so that who folds
it needs nothing else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from arena.exceptions import SeasonError
from arena.season.beacon import Source
from arena.season.clock import PACIFIC, zone
from scoring.types import Bucket, Json

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Hours = Annotated[float, Field(gt=0, le=168, allow_inf_nan=False)]

LONGEST_RACE_HOURS = 22.0
"""The shortest day has 23: a race is over before the next one is drawn."""


class SeasonRules(BaseModel):
    """The rules. Read-only; NaN and infinities are refused everywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    closing: Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$")] = "12:00"
    """The time of day, in `zone`, at which qualifying closes."""
    zone: str = PACIFIC
    """An IANA time zone."""
    minimum_qualifying_hours: Annotated[float, Field(ge=0, le=24, allow_inf_nan=False)] = 1.0
    """A race that opens later than this before a closing closes at the one after."""
    qualifying_threshold: Share = 0.3
    """The least qualifying score, on the open pool, that admits to a race."""
    submission_hours: Hours = 12.0
    """Hours between two submissions of one hotkey."""
    quota: Annotated[dict[Bucket, Annotated[int, Field(ge=0, le=10_000)]], Field(min_length=1)] = (
        Field(default_factory=lambda: dict.fromkeys(Bucket, 30))
    )
    """Problems of each bucket in a race."""
    validators: Annotated[int, Field(ge=1, le=256)] = 3
    """X: how many validators score each agent."""
    quorum: Annotated[int, Field(ge=1, le=256)] = 2
    """With how many an agent still has a score when the deadline has come."""
    deadline_hours: Annotated[float, Field(gt=0, le=LONGEST_RACE_HOURS, allow_inf_nan=False)] = 20.0
    """A race ends so long after its closing, whoever has not answered."""
    beacon: Source = Source.DRAND
    """Where the randomness of a draw comes from."""
    beacon_delay_seconds: Annotated[int, Field(ge=0, le=3600)] = 60
    """How long after the closing the beacon is made that decides the draw."""
    beacon_patience_hours: Annotated[float, Field(gt=0, le=23, allow_inf_nan=False)] = 2.0
    """A race without a draw so long after its closing is void."""
    carries: Annotated[int, Field(ge=0, le=100)] = 3
    """How often an agent without a score, by no fault of its own, races again by itself."""
    margin_initial: Share = 0.10
    """What a new champion is ahead by: a share of the room above its score."""
    margin_floor: Share = 0.01
    """What that decays to."""
    margin_half_life_days: Annotated[float, Field(gt=0, le=3650, allow_inf_nan=False)] = 7.0
    """How long the part above the floor takes to halve."""
    richness_share: Share = 0.0
    """The share of a score that comes from the trace's agentic ratio; 0 is off."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            zone(name)
        except SeasonError as error:
            raise ValueError(error.message) from None
        return name

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.quorum > self.validators:
            raise ValueError("quorum is more than validators")
        if self.margin_floor > self.margin_initial:
            raise ValueError("margin_floor is more than margin_initial")
        if self.beacon_patience_hours >= self.deadline_hours:
            raise ValueError("beacon_patience_hours leaves no time until deadline_hours")
        if not any(self.quota.values()):
            raise ValueError("quota asks for no problem")
        return self

    @property
    def submission_gap(self) -> timedelta:
        """The time between two submissions of one hotkey."""
        return timedelta(hours=self.submission_hours)

    @property
    def race_length(self) -> timedelta:
        """The time from the closing to the deadline."""
        return timedelta(hours=self.deadline_hours)

    @property
    def beacon_delay(self) -> timedelta:
        """The time from the closing to the beacon."""
        return timedelta(seconds=self.beacon_delay_seconds)

    @property
    def beacon_patience(self) -> timedelta:
        """The time from the closing until a race without a draw is void."""
        return timedelta(hours=self.beacon_patience_hours)

    @property
    def drawn(self) -> int:
        """Problems in a race."""
        return sum(self.quota.values())

    def to_json(self) -> dict[str, Json]:
        """As the journal holds them."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, value: Json) -> SeasonRules:
        """Read what `to_json` wrote. Raises SeasonError (`season.bad_rules`)."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise SeasonError(
                f"rules: {place + ': ' if place else ''}{first['msg']}", code="season.bad_rules"
            ) from None
