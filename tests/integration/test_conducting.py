"""Three days of an arena pass without a hand on it: real Postgres, a local chain behind the
real SDK, two validators that claim, seal and complete."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database
from arena.exceptions import DatabaseUnreachableError
from arena.problems.pools import Pool
from arena.records.heads import commitment_of
from arena.records.log import TransparencyLog
from arena.season.record import record_of
from arena.season.release import current_release
from arena.season.results import Decision
from arena.season.standings import paid_race, race_standings
from arena.season.state import RACE_DRAWN
from arena.season.verifying import verify
from arena.settings import ArenaSettings
from neurons.chain import SubtensorChain
from neurons.local_chain.ledger import RAO, Rules
from tests.unit.arena.conducting.scenario import DAYS, three_days
from tests.unit.arena.conducting.world import MORNING, World, told
from tests.unit.neurons.chain.local import Network, network, wallet

pytestmark = pytest.mark.database

RULES = Rules(
    netuid=15, block_seconds=12.0, tempo=360, weights_rate_limit=5, max_uids=64,
    min_stake=100 * RAO, immunity=20,
)  # fmt: skip


class OnChain(World):
    """The same arena, whose metagraph and commitments are those of a local chain."""

    def __init__(self, database: Database, net: Network) -> None:
        super().__init__(database.engine, net.chain("Ferdie"))
        self.net = net
        net.clock.now = MORNING.timestamp()

    async def begin(self) -> None:
        for name in ("Alice", "Bob"):
            await self.net.register(name, stake=1_000 * RAO)
        await self.net.register("Ferdie")

    async def look(self) -> list[Any]:
        self.net.clock.now = self.now.timestamp()
        return await super().look()

    async def enter(self, name: str, skill: float = 1.0, *, stored: bool = True) -> Any:
        self.net.clock.now = self.now.timestamp()
        self.net.ledger.fund("coldkey", RULES.burn)
        with self.net.ledger.extrinsic("coldkey", "register") as block:
            self.net.ledger.register(self.miner(name), "coldkey", block)
        return await super().enter(name, skill, stored=stored)


async def test_three_days_pass_without_a_hand_on_it(database: Database, tmp_path: Path) -> None:
    async with network(tmp_path, RULES) as net:
        net.ledger.genesis = MORNING.timestamp()
        world = OnChain(database, net)
        await world.begin()
        story = await three_days(world)
        await _check_races(world)
        await _check_draws(world)
        await _check_stock(world, story.listed, story.held)
        await _check_release(world)
        await _check_log(world, net.chain())
        for _ in range(2 * DAYS):
            await world.at(minutes=2)
        days = ["2026-01-05", "2026-01-06", "2026-01-07"]
        assert [str(day) for day in world.exporter.made] == days


async def test_a_database_that_stops_in_the_middle_of_a_race_is_waited_for() -> None:
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))  # a socket's path must fit
    database = Database(ArenaSettings(data_dir=directory))
    outage = EmbeddedPostgres(directory)
    try:
        await database.ready()
        world = World(database.engine)
        await world.look()
        versions = [await world.enter(name, skill) for name, skill in (("a", 1.0), ("b", 0.2))]
        await world.at(minutes=1)
        await world.work()
        await world.at(minutes=1)
        race = (await world.season()).open
        assert race is not None
        await world.until(race.closes_at)
        await world.at(minutes=2)
        await asyncio.to_thread(_kill, outage)
        with pytest.raises(DatabaseUnreachableError):
            await world.at(minutes=1)
        await database.ready()
        assert await world.at(minutes=1) == []
        await world.work()
        assert "race.closed" in told(await world.at(minutes=1))
        assert (await world.season()).champion == str(versions[0])
    finally:
        await database.close()
        shutil.rmtree(directory, ignore_errors=True)


def _kill(server: EmbeddedPostgres) -> None:
    """Kill the postmaster as a power cut would, and wait until it is gone."""
    pid = int((server.cluster / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)
    with suppress(ProcessLookupError):
        while True:  # a zombie's end is its parent's to see: nobody listens any more, then
            os.kill(pid, 0)
            if not (server.cluster / "postmaster.pid").exists():
                return
            time.sleep(0.05)


async def _check_races(world: World) -> None:
    """Every racer has the score that its records come to, by two validators; the best won."""
    season = await world.season()
    assert len(season.results) == DAYS
    assert not season.voids
    assert len(season.validators) == 2
    drawn = await _drawn(world)
    champion = None
    for result in season.results:
        expected = {r.version: world.score(r.version, drawn[result.race_id]) for r in result.racers}
        assert {r.version: r.score for r in result.racers} == pytest.approx(expected)
        assert {r.validators for r in result.racers} == {2}
        ranked = [row.version for row in race_standings(season, result)]
        assert ranked == sorted(expected, key=lambda v: (-expected[v], v))
        if champion is not None:
            assert champion in expected
        champion = result.title.champion
    assert season.champion == champion
    assert season.results[0].title.decision is Decision.VACANT
    paid = paid_race(season)
    assert paid is not None
    assert paid.race_id == season.results[-1].race_id


async def _check_draws(world: World) -> None:
    """Each draw can be made again from what is published, and holds."""
    events = [entry.event for entry in await world.journal.read("season")]
    for result in (await world.season()).results:
        record = record_of(events, result.race_id)
        verification = verify(record, record.commitment.hash)
        assert verification.wrong == ()
        assert record.opened
        assert {check.name for check in verification.checks if check.holds} >= {
            "commitment", "time", "pool", "beacon chosen", "secret", "seed", "quota", "draw",
            "problems",
        }  # fmt: skip


async def _check_stock(
    world: World, listed: list[frozenset[str]], held: list[frozenset[str]]
) -> None:
    """Nothing that could be drawn left held-out before the draw; what was drawn is never drawn
    again, became open after its race, and some of it is retired."""
    for before, after in zip(listed, held, strict=True):
        assert before <= after
    bank = await world.bank()
    drawn = [problem for race in (await _drawn(world)).values() for problem in race]
    assert len(set(drawn)) == len(drawn) == 3 * DAYS
    assert {bank.need(problem).pool for problem in drawn} <= {Pool.OPEN, Pool.RETIRED}
    assert any(holding.retired for holding in bank)


async def _check_release(world: World) -> None:
    """The first champion's code is public from noon of the next weekday, and not before."""
    season = await world.season()
    title = season.titles[0]
    source = season.entrants[title.version].source
    noon = MORNING + timedelta(days=1, hours=4)
    for at, public in ((noon - timedelta(seconds=1), False), (noon, True)):
        assert (source in (await current_release(world.journal, at)).code) is public
    released = await current_release(world.journal, world.now)
    retired = {h.problem_id for h in await world.bank() if h.retired}
    assert released.problems == retired


async def _check_log(world: World, chain: SubtensorChain) -> None:
    """Every day is closed, every record is in it, and the roots stand on the chain."""
    log = TransparencyLog(world.engine)
    heads = await log.heads()
    assert [str(h.signed.head.day) for h in heads] == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert heads[-1].size == sum(v.head.sequence for v in (world.alice, world.bob))
    commitments = await log.commitments()
    assert [c.day for c in commitments] == [h.signed.head.day for h in heads]
    stands = await chain.committed(wallet("Ferdie").hotkey.ss58_address)
    assert stands is not None
    assert stands.data == commitment_of(heads[-1].signed.head)


async def _drawn(world: World) -> dict[str, list[str]]:
    """The problems of each race, by its id."""
    found: dict[str, list[str]] = {}
    for entry in await world.journal.read("season"):
        if entry.event.kind == RACE_DRAWN:
            rows: Any = entry.event.data["problems"]
            found[str(entry.event.data["race_id"])] = [row["problem_id"] for row in rows]
    return found
