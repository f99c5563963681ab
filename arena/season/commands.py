"""What may be asked of a season. `deciding.decide` turns one into events, or refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from arena.season.beacon import BeaconValue, Ticket
from arena.season.listing import Opening, PoolListing
from arena.season.rules import SeasonRules


@dataclass(frozen=True, slots=True)
class SetRules:
    """Rules for the races that open from now on."""

    rules: SeasonRules


@dataclass(frozen=True, slots=True)
class OpenRace:
    """Begin qualifying, committed to a secret, a beacon and a pool of held-out problems."""

    secret_hash: str
    ticket: Ticket
    listing: PoolListing


@dataclass(frozen=True, slots=True)
class Submit:
    """An agent that admission let in. `source` is the hash of its code."""

    version: str
    hotkey: str
    source: str


@dataclass(frozen=True, slots=True)
class Qualify:
    """What an agent scored on the open pool; None while one of its problems is open."""

    version: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """Do what is due: close qualifying, void what cannot be drawn, end a race."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The secret and the beacon's value, and what opens the rows of the listing."""

    race_id: str
    secret: str
    beacon: BeaconValue
    openings: Mapping[str, Opening]


@dataclass(frozen=True, slots=True)
class ProblemOutcome:
    """One run of a racer that has an outcome and a verdict; `agentic_ratio` is its trace's."""

    success: bool
    coefficient: float
    agentic_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """Outcomes of one racer by one validator, by problem id; more may follow."""

    race_id: str
    version: str
    validator: str
    outcomes: Mapping[str, ProblemOutcome]


@dataclass(frozen=True, slots=True)
class Disqualify:
    """Take an agent out, with the reason that everyone will read."""

    version: str
    reason: str


@dataclass(frozen=True, slots=True)
class Appeal:
    """Reopen the case of a disqualified agent, with the reason that everyone will read."""

    version: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deregister:
    """A miner's hotkey that has left the metagraph."""

    hotkey: str


@dataclass(frozen=True, slots=True)
class SelectRacer:
    """Which of a hotkey's agents is to race, when it may; None: the latest one again."""

    hotkey: str
    version: str | None


@dataclass(frozen=True, slots=True)
class JoinValidator:
    """A validator that takes part from now on."""

    validator: str


@dataclass(frozen=True, slots=True)
class LeaveValidator:
    """A validator that takes part no longer. What it reported stays."""

    validator: str


Command: TypeAlias = (
    SetRules
    | OpenRace
    | Submit
    | Qualify
    | Tick
    | Draw
    | Report
    | Disqualify
    | Appeal
    | Deregister
    | SelectRacer
    | JoinValidator
    | LeaveValidator
)
