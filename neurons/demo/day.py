"""The demonstration's day: the season's real state machine over a clock of its own.

The clock begins two days ago and ends before now, so that a day passes in a minute and
nothing that is written lies in the future.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from arena.journal import Event, Journal
from arena.problems.bank import Bank
from arena.problems.bank_store import LoadedBank, change_bank
from arena.problems.decisions import mark_raced
from arena.runs.frames import read_spool
from arena.runs.record import Kind, RunSummary
from arena.runs.spool import FILE_NAME
from arena.season.beacon import Source, standin_ticket, standin_value
from arena.season.commands import (
    Command,
    Draw,
    JoinValidator,
    OpenRace,
    ProblemOutcome,
    Qualify,
    Report,
    SetRules,
    Submit,
    Tick,
)
from arena.season.draw import SECRET_BYTES, Candidate, secret_hash
from arena.season.listing import KEY_BYTES, Opening, publish
from arena.season.racing import next_race
from arena.season.results import RaceResult
from arena.season.rules import SeasonRules
from arena.season.state import Season
from arena.season.store import LoadedSeason, command, load_season
from scoring.types import Bucket, JsonObject

BEGAN = timedelta(days=2)


@dataclass
class Day:
    """A race of the season from its opening to its result."""

    journal: Journal
    bank: Bank
    now: datetime
    loaded: LoadedSeason
    secret: str = ""
    openings: Mapping[str, Opening] | None = None

    @property
    def season(self) -> Season:
        """The season as it stands."""
        return self.loaded.season

    async def open(self, quota: Mapping[Bucket, int], validator: str, threshold: float) -> str:
        """Set the rules, let the validator in, commit to a draw. The race's id."""
        rules = SeasonRules(
            quota=dict(quota),
            validators=1,
            quorum=1,
            qualifying_threshold=threshold,
            beacon=Source.STANDIN,
        )
        await self._do(SetRules(rules))
        await self._do(JoinValidator(validator))
        race_id, closes_at = next_race(self.season, self.now)
        held = self.bank.drawable()
        candidates = [Candidate(h.problem_id, h.problem.bucket, h.cluster) for h in held]
        listing, self.openings = publish(candidates, secrets.token_bytes(KEY_BYTES))
        self.secret = secrets.token_bytes(SECRET_BYTES).hex()
        ticket = standin_ticket(closes_at, rules.beacon_delay)
        await self._do(OpenRace(secret_hash(race_id, self.secret), ticket, listing))
        return race_id

    async def submit(self, version: str, source: str) -> None:
        """An admitted agent enters; each has a hotkey of its own."""
        self.now += timedelta(seconds=1)
        await self._do(Submit(version, f"hotkey-of-{version}", source))

    async def qualify(self, scores: Mapping[str, float | None]) -> tuple[str, ...]:
        """Enter what was scored on the open pool and close qualifying. Who races."""
        for version, score in scores.items():
            await self._do(Qualify(version, score))
        assert self.season.open is not None
        self.now = self.season.open.closes_at
        await self._do(Tick())
        return self.season.open.racers if self.season.open else ()

    async def draw(self) -> tuple[str, ...]:
        """Reveal the secret, take the beacon, draw. The ids of the problems."""
        race = self.season.open
        assert race is not None
        assert self.openings is not None
        ticket = race.commitment.ticket
        beacon = standin_value(ticket.number, "demonstration")
        self.now = beacon.at
        await self._do(Draw(race.race_id, self.secret, beacon, self.openings))
        assert self.season.running is not None
        ids = tuple(problem.problem_id for problem in self.season.running.problems)

        async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], None]:
            return mark_raced(loaded.bank, ids, race.race_id, self.now), None

        self.bank, _ = await change_bank(self.journal, decide)
        return ids

    async def report(
        self, validator: str, outcomes: Mapping[str, Mapping[str, ProblemOutcome]]
    ) -> RaceResult:
        """Enter the outcomes of all racers and close the race."""
        race = self.season.running
        assert race is not None
        for version in race.racers:
            self.now += timedelta(minutes=1)
            await self._do(Report(race.race_id, version, validator, outcomes[version]))
        await self._do(Tick())
        return self.season.results[-1]

    async def _do(self, order: Command) -> None:
        await command(self.journal, self.loaded, order, self.now)


async def begin_day(journal: Journal, bank: Bank) -> Day:
    """A day that begins two days ago, on a journal that may hold nothing yet."""
    return Day(journal, bank, began_at(), await load_season(journal))


def began_at() -> datetime:
    """When the demonstration's clock begins, in UTC."""
    return datetime.now(UTC).replace(microsecond=0) - BEGAN


def outcomes_of(race: Path) -> dict[str, dict[str, ProblemOutcome]]:
    """What a race directory holds of every agent, by label and problem id: closed, judged runs."""
    found: dict[str, dict[str, ProblemOutcome]] = {}
    for frame in read_spool(race / FILE_NAME):
        record = frame.content.record
        if record.kind is not Kind.RUN:
            continue
        run = RunSummary.of(record.value)
        if run.closed and run.coefficient is not None:
            axis = cast("JsonObject | None", record.value["axis"])
            ratio = float(cast("float", axis["agentic_ratio"])) if axis else 0.0
            outcome = ProblemOutcome(run.success, run.coefficient, ratio)
            found.setdefault(run.agent, {})[run.problem_id] = outcome
    return found


def mean_score(outcomes: Iterable[ProblemOutcome], problems: int) -> float | None:
    """Success times coefficient over all problems; None while one is missing."""
    scores = [o.coefficient if o.success else 0.0 for o in outcomes]
    return sum(scores) / problems if len(scores) == problems else None
