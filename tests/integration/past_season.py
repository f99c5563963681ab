"""A season that has a past: agents submitted, raced and paid days ago, in a real database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from arena.api.inputs import open_evaluation
from arena.db.journal import PostgresJournal
from arena.journal import Event
from arena.problems.bank import IMPORTED, RETIRED
from arena.problems.bank import STREAM as BANK
from arena.problems.holdings import content_hash, content_of
from arena.runs.record import AgentRef, RunRecord
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
    Tick,
)
from arena.season.draw import Candidate, secret_hash
from arena.season.listing import Opening, publish
from arena.season.racing import next_race
from arena.season.rules import SeasonRules
from arena.season.store import command, load_season
from arena.submissions.service import SubmissionService
from arena.submissions.store import AgentVersion
from arena.work.types import Evaluation, EvaluationKind
from scoring.types import Bucket, JsonObject, Problem
from tests.unit.arena.api.world import World, problem

RULES = SeasonRules(quota={Bucket.PRODUCT: 2}, beacon=Source.STANDIN, validators=2, quorum=1)
HELD_OUT = [
    Candidate(str(uuid5(UUID(int=7), f"held out {i}")), Bucket.PRODUCT, f"held-{i}")
    for i in range(4)
]


def source(name: str) -> bytes:
    """A file that is nobody's copy."""
    return f"def agent_main(problem):\n    answer = {name!r}\n    return [answer]\n".encode()


class PastSeason:
    """Drives the journal of a world at times of its own, which lie in the past."""

    def __init__(self, world: World, begin: datetime) -> None:
        self.world = world
        self.now = begin
        self.journal = PostgresJournal(world.database.engine)
        self.openings: Mapping[str, Opening] = {}
        self.secret = ""

    async def do(self, order: Command) -> None:
        """One command, now."""
        await command(self.journal, await load_season(self.journal), order, self.now)

    async def begin(self) -> None:
        """Rules, and the world's validators."""
        await self.do(SetRules(RULES))
        for validator in self.world.validators:
            await self.do(JoinValidator(validator.hotkey))

    async def submit(self, hotkey: str, name: str) -> AgentVersion:
        """An agent of this name, whose file holds it."""
        service = SubmissionService(self.world.database.engine, self.journal)
        try:
            return await service.submit(hotkey, name, source(name), None, self.now)
        finally:
            service.close()

    async def qualify(self, version: AgentVersion, score: float) -> None:
        """Its qualifying score."""
        await self.do(Qualify(str(version.version_id), score))

    async def open(self) -> str:
        """A race in qualifying."""
        season = (await load_season(self.journal)).season
        race_id, closes_at = next_race(season, self.now)
        self.secret = hashlib.sha256(race_id.encode()).hexdigest()
        listing, self.openings = publish(HELD_OUT, hashlib.sha256(race_id.encode()).digest())
        ticket = standin_ticket(closes_at, RULES.beacon_delay)
        await self.do(OpenRace(secret_hash(race_id, self.secret), ticket, listing))
        return race_id

    async def close(self) -> None:
        """On to the closing of the open race."""
        race = (await load_season(self.journal)).season.open
        assert race is not None
        self.now = race.closes_at
        await self.do(Tick())

    async def draw(self) -> None:
        """With the beacon."""
        race = (await load_season(self.journal)).season.open
        assert race is not None
        beacon = standin_value(race.commitment.ticket.number, "test")
        self.now = max(self.now, beacon.at)
        await self.do(Draw(race.race_id, self.secret, beacon, self.openings))

    async def race(self, solved: Mapping[UUID, int]) -> None:
        """Every validator reports; the first so many problems of each agent succeed."""
        race = (await load_season(self.journal)).season.running
        assert race is not None
        self.now += timedelta(minutes=1)
        for version in race.racers:
            outcomes = {
                one.problem_id: ProblemOutcome(i < solved[UUID(version)], 1.0)
                for i, one in enumerate(race.problems)
            }
            for validator in self.world.validators:
                await self.do(Report(race.race_id, version, validator.hotkey, outcomes))
        await self.do(Tick())

    async def import_problems(self, problems: Mapping[str, list[Problem]]) -> None:
        """Problems into the bank, by pool."""
        events = [
            Event(IMPORTED, self.now, imported(one, pool, number))
            for pool, some in problems.items()
            for number, one in enumerate(some)
        ]
        after = len(await self.journal.read(BANK))
        await self.journal.append(BANK, events, after=after)

    async def retire(self, *problems: Problem) -> None:
        """Out of use, for good."""
        data: JsonObject = {"problems": [p.problem_id for p in problems], "reason": "rotation"}
        after = len(await self.journal.read(BANK))
        await self.journal.append(BANK, [Event(RETIRED, self.now, data)], after=after)

    async def evaluation(
        self, version: AgentVersion, race: str | None, needed: int = 1, problems: int = 2
    ) -> Evaluation:
        """An evaluation of the first problems of the world."""
        return await open_evaluation(
            self.world.queue,
            self.world.inputs,
            version.version_id,
            EvaluationKind.RACE if race else EvaluationKind.QUALIFYING,
            race,
            name=version.name,
            source=source(version.name),
            problems=[problem(i) for i in range(1, problems + 1)],
            suite=20261120,
            needed=needed,
            at=self.world.clock(),
        )

    def record(
        self, version: AgentVersion, evaluation: Evaluation, number: int, who: str
    ) -> RunRecord:
        """A run's record as an honest validator makes it."""
        made = self.world.record(evaluation, number, who)
        label = str(version.version_id)
        return replace(made, agent=AgentRef(label, version.name, version.source_hash, label))


def imported(one: Problem, pool: str, number: int) -> JsonObject:
    """What the bank's journal says of a problem that comes in, in a cluster of this number."""
    content = content_of(replace(one, pool=None))
    return {
        "problem": content,
        "content_hash": content_hash(content),
        "pool": pool,
        "cluster": f"{pool}-{number}",
        "version": 1,
        "provenance": {"origin": "file"},
        "reason": "import",
    }
