"""A season's state: what folding its journal gives. Nothing here decides anything.

`Season` changes by `apply` alone. Everything that follows from it, the champion among it,
is computed from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import cast

from arena.exceptions import SeasonError
from arena.journal import Event
from arena.season.commands import ProblemOutcome
from arena.season.commitment import Commitment
from arena.season.listing import PoolListing
from arena.season.results import (
    Decision,
    RaceProblem,
    RaceResult,
    RacerResult,
    Sheet,
    TitleDecision,
)
from arena.season.rules import SeasonRules
from scoring.types import Bucket, Json, JsonObject

STREAM = "season"
"""The journal's stream of these events."""

RULES_SET = "rules.set"
RACE_OPENED = "race.opened"
SUBMITTED = "agent.submitted"
QUALIFIED = "agent.qualified"
NOT_QUALIFIED = "agent.not_qualified"
QUALIFYING_CLOSED = "qualifying.closed"
RACE_VOIDED = "race.voided"
RACE_DRAWN = "race.drawn"
REPORTED = "outcomes.reported"
RACE_CLOSED = "race.closed"
DISQUALIFIED = "agent.disqualified"
REINSTATED = "agent.reinstated"
DEREGISTERED = "hotkey.deregistered"
RACER_SELECTED = "racer.selected"
VALIDATOR_JOINED = "validator.joined"
VALIDATOR_LEFT = "validator.left"


class Void(StrEnum):
    """Why a race did not take place. Stable: events hold it."""

    NO_QUALIFIER = "race.no_qualifier"
    TOO_FEW_VALIDATORS = "race.too_few_validators"
    NOT_DRAWN = "race.not_drawn"
    """No beacon, or no secret, within the patience."""


class Stage(StrEnum):
    """Where a race stands before it is closed."""

    QUALIFYING = "qualifying"
    AWAITING_BEACON = "awaiting_beacon"
    RACING = "racing"


@dataclass(slots=True)
class Entrant:
    """One agent version."""

    version: str
    hotkey: str
    source: str
    submitted_at: datetime
    qualifying: float | None = None
    qualified: bool = False
    carried: int = 0
    raced: list[str] = field(default_factory=list)
    """The races in which it has a score."""
    left: bool = False
    """Its hotkey has left the metagraph since it was submitted: for good."""
    disqualified: str | None = None
    """The reason, while it stands."""

    @property
    def eligible(self) -> bool:
        """Whether it may race, hold the title and be paid."""
        return not self.left and self.disqualified is None


@dataclass(slots=True)
class Race:
    """A race that is not closed yet."""

    commitment: Commitment
    listing: PoolListing
    rules: SeasonRules
    stage: Stage = Stage.QUALIFYING
    racers: tuple[str, ...] = ()
    champion: str | None = None
    """Who defended when qualifying closed; it is one of the racers."""
    needed: int = 0
    """Validators for each racer: X, or as many as there are."""
    problems: tuple[RaceProblem, ...] = ()
    sheets: dict[str, dict[str, Sheet]] = field(default_factory=dict)
    """By racer and validator."""

    @property
    def race_id(self) -> str:
        """Its id, which holds the local date of its closing."""
        return self.commitment.race_id

    @property
    def closes_at(self) -> datetime:
        """When qualifying closes."""
        return self.commitment.closes_at

    @property
    def draw_until(self) -> datetime:
        """When it is void unless it was drawn."""
        return self.closes_at + self.rules.beacon_patience

    @property
    def deadline(self) -> datetime:
        """When it ends, whoever has not answered."""
        return self.closes_at + self.rules.race_length

    def complete(self, version: str, needed: int) -> bool:
        """Whether so many validators have all outcomes of a racer."""
        sheets = self.sheets.get(version, {}).values()
        return sum(len(sheet.scores) == len(self.problems) for sheet in sheets) >= needed


@dataclass(frozen=True, slots=True)
class Title:
    """One entry in the line of champions. `since` is the closing of the race that it won,
    from which its margin decays; `won_at` the moment of its promotion."""

    version: str
    race_id: str
    since: datetime
    won_at: datetime


@dataclass(frozen=True, slots=True)
class VoidRace:
    """A race that did not take place."""

    race_id: str
    at: datetime
    reason: Void


class Season:
    """The state after some events."""

    def __init__(self) -> None:
        self.now: datetime | None = None
        """When the last event was."""
        self.rules = SeasonRules()
        self.entrants: dict[str, Entrant] = {}
        self.last_submission: dict[str, datetime] = {}
        """By hotkey."""
        self.waiting: dict[str, datetime] = {}
        """Qualified agents that wait for a race, and since when, in that order."""
        self.selected: dict[str, str] = {}
        """By hotkey: which of its agents is to race, where it said so."""
        self.validators: dict[str, datetime] = {}
        """Who takes part, and since when."""
        self.gone: dict[str, datetime] = {}
        """Validators that took part, and since when they do no more."""
        self.open: Race | None = None
        """The race that is in qualifying, or awaits its beacon."""
        self.running: Race | None = None
        """The race that is drawn."""
        self.results: list[RaceResult] = []
        self.voids: list[VoidRace] = []
        self.titles: list[Title] = []
        """The line of champions; its last eligible entry holds the title."""

    @classmethod
    def folded(cls, events: Iterable[Event]) -> Season:
        """The state that these events lead to. Raises SeasonError at the first that cannot."""
        season = cls()
        for event in events:
            season.apply(event)
        return season

    # --- what follows from the state

    @property
    def title(self) -> Title | None:
        """Who holds the title: the last in the line that is neither disqualified nor gone.

        So the title of a champion that is disqualified or leaves goes back to the one
        before, and returns on an appeal unless somebody has won it in a race since.
        """
        for title in reversed(self.titles):
            if self.entrants[title.version].eligible:
                return title
        return None

    @property
    def champion(self) -> str | None:
        """The version that holds the title."""
        title = self.title
        return title.version if title else None

    # --- folding

    def apply(self, event: Event) -> None:
        """Take one event in. Raises SeasonError, and is then of no more use."""
        if event.at.tzinfo is None:
            raise SeasonError("an event's time needs a time zone", code="season.bad_event")
        if self.now is not None and event.at < self.now:
            raise SeasonError(
                f"{event.kind} is of {event.at:%F %T}, before the event ahead of it",
                code="season.clock_went_back",
            )
        handler = _HANDLERS.get(event.kind)
        if handler is None:
            raise SeasonError(f"unknown event {event.kind[:60]!r}", code="season.bad_event")
        try:
            handler(self, event.data, event.at)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SeasonError(
                f"{event.kind} cannot be read: {error!r:.200}", code="season.bad_event"
            ) from None
        self.now = event.at

    def _rules_set(self, data: JsonObject, at: datetime) -> None:
        self.rules = SeasonRules.from_json(data)

    def _race_opened(self, data: JsonObject, at: datetime) -> None:
        self.open = Race(
            Commitment.from_json(data["commitment"]),
            PoolListing.from_json(data["listing"]),
            SeasonRules.from_json(data["rules"]),
        )

    def _submitted(self, data: JsonObject, at: datetime) -> None:
        version, hotkey = str(data["version"]), str(data["hotkey"])
        self.entrants[version] = Entrant(version, hotkey, str(data["source"]), at)
        self.last_submission[hotkey] = at

    def _qualified(self, data: JsonObject, at: datetime) -> None:
        entrant = self.entrants[str(data["version"])]
        entrant.qualifying, entrant.qualified = _number(data["score"]), True
        self.waiting[entrant.version] = at

    def _not_qualified(self, data: JsonObject, at: datetime) -> None:
        self.entrants[str(data["version"])].qualifying = _number(data["score"])

    def _qualifying_closed(self, data: JsonObject, at: datetime) -> None:
        race = _present(self.open)
        race.stage = Stage.AWAITING_BEACON
        race.racers = tuple(_texts(data["racers"]))
        race.champion = cast("str | None", data["champion"])
        race.needed = int(_number(data["needed"]))
        for version in (*race.racers, *_texts(data["superseded"])):
            self.waiting.pop(version, None)

    def _race_voided(self, data: JsonObject, at: datetime) -> None:
        race = _present(self.open)
        self.voids.append(VoidRace(race.race_id, at, Void(str(data["reason"]))))
        self._wait_again(_texts(data["waiting"]), at)
        self.open = None

    def _race_drawn(self, data: JsonObject, at: datetime) -> None:
        race = _present(self.open)
        race.stage = Stage.RACING
        rows = cast("list[JsonObject]", data["problems"])
        race.problems = tuple(
            RaceProblem(str(row["problem_id"]), Bucket(str(row["bucket"]))) for row in rows
        )
        self.running, self.open = race, None

    def _reported(self, data: JsonObject, at: datetime) -> None:
        race = _present(self.running)
        sheets = race.sheets.setdefault(str(data["version"]), {})
        sheet = sheets.setdefault(str(data["validator"]), Sheet())
        for problem_id, row in cast("dict[str, list[float]]", data["outcomes"]).items():
            success, coefficient, ratio = row
            outcome = ProblemOutcome(bool(success), coefficient, ratio)
            sheet.add(problem_id, outcome, race.rules.richness_share)

    def _race_closed(self, data: JsonObject, at: datetime) -> None:
        race = _present(self.running)
        racers = tuple(RacerResult.from_json(row) for row in cast("list[Json]", data["racers"]))
        title = TitleDecision.from_json(data["title"])
        closes_at = race.closes_at
        on_time = bool(data["on_time"])
        self.results.append(RaceResult(race.race_id, closes_at, at, racers, title, on_time))
        for racer in racers:
            if racer.complete:
                self.entrants[racer.version].raced.append(race.race_id)
        if title.decision in (Decision.PROMOTED, Decision.VACANT):
            champion = str(title.champion)
            self.titles.append(Title(champion, race.race_id, closes_at, at))
        for version in _texts(data["carried"]):
            self.entrants[version].carried += 1
            self._wait_again([version], at)
        self.running = None

    def _disqualified(self, data: JsonObject, at: datetime) -> None:
        entrant = self.entrants[str(data["version"])]
        entrant.disqualified = str(data["reason"])
        self.waiting.pop(entrant.version, None)

    def _reinstated(self, data: JsonObject, at: datetime) -> None:
        entrant = self.entrants[str(data["version"])]
        entrant.disqualified = None
        if data["races_again"]:
            self._wait_again([entrant.version], at)

    def _deregistered(self, data: JsonObject, at: datetime) -> None:
        for version in _texts(data["versions"]):
            self.entrants[version].left = True
            self.waiting.pop(version, None)

    def _racer_selected(self, data: JsonObject, at: datetime) -> None:
        hotkey, version = str(data["hotkey"]), data["version"]
        if version is None:
            del self.selected[hotkey]
        else:
            self.selected[hotkey] = str(version)

    def _validator_joined(self, data: JsonObject, at: datetime) -> None:
        self.validators[str(data["validator"])] = at
        self.gone.pop(str(data["validator"]), None)

    def _validator_left(self, data: JsonObject, at: datetime) -> None:
        del self.validators[str(data["validator"])]
        self.gone[str(data["validator"])] = at

    def _wait_again(self, versions: Iterable[str], at: datetime) -> None:
        for version in versions:
            self.waiting[version] = at


_HANDLERS = {
    RULES_SET: Season._rules_set,
    RACE_OPENED: Season._race_opened,
    SUBMITTED: Season._submitted,
    QUALIFIED: Season._qualified,
    NOT_QUALIFIED: Season._not_qualified,
    QUALIFYING_CLOSED: Season._qualifying_closed,
    RACE_VOIDED: Season._race_voided,
    RACE_DRAWN: Season._race_drawn,
    REPORTED: Season._reported,
    RACE_CLOSED: Season._race_closed,
    DISQUALIFIED: Season._disqualified,
    REINSTATED: Season._reinstated,
    DEREGISTERED: Season._deregistered,
    RACER_SELECTED: Season._racer_selected,
    VALIDATOR_JOINED: Season._validator_joined,
    VALIDATOR_LEFT: Season._validator_left,
}


def _present(race: Race | None) -> Race:
    if race is None:
        raise SeasonError("there is no such race at this time", code="season.bad_event")
    return race


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return [str(item) for item in value]


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("expected a number")
    return value
