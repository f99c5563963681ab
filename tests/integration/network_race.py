"""A small race of a whole network: what it comes to, disturbed or not.

The held-out pool has exactly the problems of a race, so that every draw takes all of them:
whatever secret and beacon a race has, its standings are those of every other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard
from rich.console import Console
from sqlalchemy import Text, cast, func, select

from arena.db import schema
from arena.db.engine import Database, open_database
from arena.db.journal import PostgresJournal
from arena.season.beacon import Source
from arena.season.rules import SeasonRules
from arena.season.standings import race_standings
from arena.settings import ArenaSettings
from arena.work.types import EvaluationKind
from neurons.demo import mining, watching
from neurons.demo.bank import grow_bank
from neurons.demo.contenders import SHIPPED, Contender
from neurons.demo.network import Network
from neurons.demo.story import Story
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from scoring.types import Bucket

AGENTS = tuple(contender for contender in SHIPPED if contender.name in ("react", "pipeline"))
VALIDATORS = ("validator-1", "validator-2")
RULES = SeasonRules(
    quota=dict.fromkeys(Bucket, 2),
    validators=2,
    quorum=2,
    qualifying_threshold=0.0,
    minimum_qualifying_hours=0,
    beacon=Source.STANDIN,
    beacon_delay_seconds=0,
)
SETTINGS = {
    "ARENA_CONDUCTOR_EVERY": "1",
    "ARENA_CONDUCTOR_CHAIN_EVERY": "2",
    "ARENA_CONDUCTOR_QUALIFYING_PROBLEMS": "1",
    "ARENA_API_METAGRAPH_REFRESH": "2",
    "ARENA_API_LEASE": "20",
    "ARENA_VALIDATOR_SANDBOX": "bubblewrap",
    "ARENA_VALIDATOR_WORKERS": "1",
    "ARENA_VALIDATOR_POLL_SECONDS": "1",
    "ARENA_VALIDATOR_HEARTBEAT_SECONDS": "3",
    "ARENA_VALIDATOR_WEIGHTS_SECONDS": "5",
    "ARENA_VALIDATOR_RETRY_FIRST_SECONDS": "0.5",
    "ARENA_VALIDATOR_RETRY_LONGEST_SECONDS": "2",
    "ARENA_VALIDATOR_DRAIN": "return",
    "ARENA_VALIDATOR_SANDBOX_MEMORY_MIB": "512",
}


@dataclass(frozen=True)
class Field:
    """Who races, who watches, by which rules; and the models that agents bring, by name."""

    agents: tuple[Contender, ...] = AGENTS
    validators: tuple[str, ...] = VALIDATORS
    rules: SeasonRules = RULES
    models: Mapping[str, Path] = field(default_factory=dict)


Disturb = Callable[[Network], Awaitable[None]]


@dataclass(frozen=True)
class Ran:
    """What a race came to. `standings`: name, score and ASR, best first; `records`: how many
    outcomes are stored of each (evaluation, validator, problem)."""

    standings: list[tuple[str, float | None, float | None]]
    records: list[int]
    expected: int
    """Evaluations times validators times problems."""
    answering: dict[str, set[str]]
    """Which models answered each agent in the race, by its name, as its records have it."""


async def race(home: Path, disturb: Disturb | None = None, racing: Field | None = None) -> Ran:
    """Start a network in an empty folder, race, and disturb it while some runs are in and
    others are not."""
    world = home / "world.jsonl.gz"
    write_world(1_500, 15, world)
    network = Network(home, world, SETTINGS)
    settings = ArenaSettings(data_dir=network.data, database_url=None)
    async with open_database(settings) as database:
        await database.ready()
        try:
            return await _race(network, settings, database, disturb, racing or Field())
        finally:
            network.stop()


async def _race(
    network: Network,
    settings: ArenaSettings,
    database: Database,
    disturb: Disturb | None,
    racing: Field,
) -> Ran:
    rules = racing.rules
    journal = PostgresJournal(database.engine)
    at = datetime.now(UTC) - timedelta(hours=1)
    bank = await grow_bank(
        journal, open_catalog(network.world), raced=rules.drawn * 2 // 3, opened=3, seed=7, at=at
    )
    assert len(bank.drawable()) == rules.drawn
    network.begin_chain()
    validators = {name: network.join(name, validates=True) for name in racing.validators}
    for contender in racing.agents:
        network.join(contender.name)
    quiet = Console(quiet=True)
    story = Story(settings, quiet, None, network, journal, bank, "", validators)

    network.start_arena("arena", "--no-conductor")
    calendar = network.start_calendar(rules, ARENA_CONDUCTOR_OPENS_RACES="false")
    for contender in racing.agents:
        answer = await mining.submit(network, contender, racing.models.get(contender.name))
        assert answer.version is not None, answer.told
        story.versions[answer.version] = contender.name
    for name in racing.validators:
        network.start_validator(name)
    await watching.qualified(story)
    network.start_calendar(watching.closing_soon(rules, datetime.now(UTC), calendar.ready_s))
    await watching.drawn(story)
    if disturb is not None:
        await _some_are_in(database)
        await disturb(network)
    season, result = await watching.decided(story)
    rows = race_standings(season, result)
    standings = [(story.versions[row.version], row.score, row.asr) for row in rows]
    runs = rules.drawn * len(racing.agents) * len(racing.validators)
    answering = await _answering(database)
    by_name = {story.versions[version]: models for version, models in answering.items()}
    return Ran(standings, await _records(database), runs, by_name)


async def _some_are_in(database: Database) -> None:
    """Until the race has two counted records: the first runs are in, the others are not."""
    while sum(await _records(database)) < 2:  # noqa: ASYNC110 - other processes' doing
        await asyncio.sleep(0.05)


async def _records(database: Database) -> list[int]:
    """How many outcomes are stored of each problem of each validator of each race evaluation
    that has any, whether they count or not."""
    races, runs, seals = schema.evaluations.c, schema.runs.c, schema.seals.c
    joined = schema.runs.join(schema.seals, runs.record_hash == seals.record_hash).join(
        schema.evaluations, runs.race_id == cast(races.evaluation_id, Text)
    )
    query = (
        select(func.count())
        .select_from(joined)
        .where(races.kind == EvaluationKind.RACE, runs.closed)
        .group_by(runs.race_id, seals.validator, runs.problem_id)
    )
    async with database.engine.connect() as connection:
        return list((await connection.scalars(query)).all())


async def _answering(database: Database) -> dict[str, set[str]]:
    """The models of each agent's version in the race, by its records."""
    races, runs, contents = schema.evaluations.c, schema.runs.c, schema.records.c
    joined = schema.runs.join(schema.records, runs.record_hash == contents.record_hash).join(
        schema.evaluations, runs.race_id == cast(races.evaluation_id, Text)
    )
    query = (
        select(runs.agent, contents.content)
        .select_from(joined)
        .where(races.kind == EvaluationKind.RACE, runs.closed)
    )
    found: dict[str, set[str]] = {}
    async with database.engine.connect() as connection:
        for agent, content in await connection.execute(query):
            record = json.loads(zstandard.decompress(content))
            found.setdefault(agent, set()).add(record["conditions"]["model"])
    return found
