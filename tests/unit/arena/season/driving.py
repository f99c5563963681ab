"""A season that a test drives: commands in, events appended and applied."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from arena.journal import Event
from arena.season.beacon import BeaconValue, Source, standin_ticket, standin_value
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
from arena.season.deciding import decide
from arena.season.draw import Candidate, secret_hash
from arena.season.listing import Opening, publish
from arena.season.racing import next_race
from arena.season.rules import SeasonRules
from arena.season.state import Season
from scoring.types import Bucket

START = datetime(2026, 3, 2, 20, 30, tzinfo=UTC)
"""A Monday, half past noon Pacific; the clocks change on the Sunday that follows."""

RULES = SeasonRules(quota=dict.fromkeys(Bucket, 2), beacon=Source.STANDIN, validators=3, quorum=2)
VALIDATORS = ("val-a", "val-b", "val-c")


def pool(count: int = 6, prefix: str = "p") -> list[Candidate]:
    """So many problems of each bucket, each a cluster of its own."""
    return [
        Candidate(f"{prefix}-{bucket}-{i}", bucket, f"{prefix}-c-{bucket}-{i}")
        for bucket in Bucket
        for i in range(count)
    ]


class Driver:
    """A season with its journal and what its operator keeps secret."""

    def __init__(self, rules: SeasonRules = RULES, validators: Iterable[str] = VALIDATORS) -> None:
        self.season = Season()
        self.events: list[Event] = []
        self.now = START
        self.secret = ""
        self.openings: Mapping[str, Opening] = {}
        self.do(SetRules(rules))
        for validator in validators:
            self.do(JoinValidator(validator))

    def do(self, command: Command) -> list[Event]:
        """Decide now, and take the events in."""
        events = decide(self.season, command, self.now)
        for event in events:
            self.season.apply(event)
        self.events += events
        return events

    def settle(self) -> list[Event]:
        """Tick until nothing comes."""
        found: list[Event] = []
        while events := self.do(Tick()):
            found += events
        return found

    def open(self, problems: Iterable[Candidate] | None = None) -> str:
        """Open a race."""
        race_id, closes_at = next_race(self.season, self.now)
        self.secret = hashlib.sha256(race_id.encode()).hexdigest()
        key = hashlib.sha256(b"key" + race_id.encode()).digest()
        listing, self.openings = publish(pool() if problems is None else problems, key)
        ticket = standin_ticket(closes_at, self.season.rules.beacon_delay)
        self.do(OpenRace(secret_hash(race_id, self.secret), ticket, listing))
        return race_id

    def enter(self, version: str, hotkey: str | None = None, score: float = 0.9) -> None:
        """Submit an agent and give it a qualifying score."""
        self.do(Submit(version, hotkey or f"hk-{version}", f"source of {version}"))
        self.do(Qualify(version, score))

    def beacon(self) -> BeaconValue:
        """The value that the open race waits for."""
        assert self.season.open is not None
        return standin_value(self.season.open.commitment.ticket.number, "test")

    def close(self) -> list[Event]:
        """Go on to the closing of the open race."""
        assert self.season.open is not None
        self.now = max(self.now, self.season.open.closes_at)
        return self.settle()

    def draw(self) -> list[Event]:
        """Draw, as soon as the beacon is there."""
        assert self.season.open is not None
        beacon = self.beacon()
        self.now = max(self.now, beacon.at)
        return self.do(Draw(self.season.open.race_id, self.secret, beacon, self.openings))

    def report(
        self, version: str, validator: str, solved: int, coefficient: float = 1.0
    ) -> list[Event]:
        """All outcomes of one racer by one validator: the first `solved` succeed."""
        race = self.season.running
        assert race is not None
        outcomes = {
            problem.problem_id: ProblemOutcome(i < solved, coefficient)
            for i, problem in enumerate(race.problems)
        }
        return self.do(Report(race.race_id, version, validator, outcomes))

    def race(self, solved: Mapping[str, int]) -> list[Event]:
        """From the closing to the end of the open race: who solves how many of its problems."""
        self.close()
        self.draw()
        self.now += timedelta(minutes=1)
        race = self.season.running
        assert race is not None
        for version in race.racers:
            for validator in self.season.validators:
                self.report(version, validator, solved[version])
        return self.settle()
