"""What is read of the arena: its health, the log of records, the standings of an epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from arena.api.metagraph import MetagraphCache
from arena.api.presence import PRESENT, Presence
from arena.api.ticks import CONDUCTOR, tick
from arena.db.journal import PostgresJournal
from arena.records.log import TransparencyLog
from arena.records.proofs import InclusionProof
from arena.records.store import RecordStore
from arena.runs.signing import KeypairSigner
from arena.season.standings import paid_race
from arena.season.state import STREAM
from arena.work.types import Ended, RunState
from scoring.weights import Finisher, weight_vector
from tests.unit.arena.api.world import Chain, Clock, Validator, World
from tests.unit.arena.season.driving import Driver

pytestmark = pytest.mark.database


async def test_health_says_which_part_fails(world: World) -> None:
    async with world.client() as client:
        early = (await client.get("/health/deep")).json()
        assert (early["status"], early["conductor"]["ok"]) == ("degraded", False)
        await tick(world.database.engine, CONDUCTOR, world.clock() - timedelta(hours=1))
        late = (await client.get("/health/deep")).json()
        assert late["conductor"]["detail"] == "late"
        await tick(world.database.engine, CONDUCTOR, world.clock())
        good = await client.get("/health/deep")
        assert (good.status_code, good.json()["status"]) == (200, "ok")
        assert b"arena_api_requests_total" in (await client.get("/metrics")).content


async def test_metrics_may_be_off(world: World) -> None:
    world.settings = world.settings.model_copy(update={"metrics": False})
    async with world.client() as client:
        assert (await client.get("/metrics")).status_code == 404


async def test_the_last_metagraph_stays_when_the_chain_goes_down() -> None:
    chain, clock = Chain(), Clock()
    cache = MetagraphCache(chain.read, clock, refresh_s=60, max_age_s=60)
    assert cache.age_s() is None
    assert await cache.refresh()
    chain.down = True
    assert not await cache.refresh()
    assert cache.failed == "chain.unavailable"
    assert cache.current().block == 1_000
    chain.down = False
    chain.block = 1_361
    epoch = cache.current().epoch
    assert await cache.refresh()
    assert cache.failed is None
    assert cache.current().epoch == epoch + 1


async def test_a_record_is_proven_by_its_seal_its_hash_and_its_run(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    record = world.record(evaluation, 1)
    sealed = alice.seal(record.encode(), at=datetime(2026, 1, 1, tzinfo=UTC))
    await RecordStore(world.database.engine).put([sealed])
    log = TransparencyLog(world.database.engine)
    async with world.client() as client:
        path = f"/v1/public/records/{record.run_id}/proof"
        early = await client.get(path)
        assert (early.status_code, early.json()["error_code"]) == (404, "RECORD_NOT_FOUND")
        operator = KeypairSigner("//Arena")
        day = datetime(2026, 1, 1, tzinfo=UTC)
        await log.close(day.date(), operator, now=day + timedelta(days=2))
        for name in (record.run_id, sealed.sealed.hash, sealed.record.hash):
            answer = await client.get(f"/v1/public/records/{name}/proof")
            proof = InclusionProof.from_bytes(answer.content)
            assert proof.sealed == sealed.sealed
            assert b"reward" not in answer.content
        heads = (await client.get("/v1/public/records/heads")).json()
        assert [head["head"]["size"] for head in heads["heads"]] == [1]
        for name in ("x'; DROP TABLE seals; --", "..%2F..%2Fetc", "a" * 101, "%00"):
            refused = await client.get(f"/v1/public/records/{name}/proof")
            assert refused.status_code in (404, 422)


async def test_standings_are_frozen_for_an_epoch_and_the_same_for_all(world: World) -> None:
    driver, journal = Driver(), PostgresJournal(world.database.engine)
    alice, bob = world.validators

    async def ask(client: httpx.AsyncClient, who: Validator) -> dict[str, Any]:
        answer = await client.get("/v1/validator/weight-salt", headers=who.headers())
        return {**answer.json(), "eligible": None}

    async def race(**solved: int) -> None:
        driver.open()
        for version in solved:
            if version not in driver.season.entrants:
                driver.enter(version)
        driver.race(solved)
        await journal.append(STREAM, driver.events[done:], after=done)

    async with world.client() as one, world.client() as two:
        assert (await ask(one, alice))["epoch_standings"] is None
        done = 0
        await race(a=5, b=4, c=3, d=1)
        first = await ask(one, alice)
        done = len(driver.events)
        driver.now += timedelta(hours=13)
        await race(a=3, e=6, f=2)  # the champion defends
        assert await ask(two, bob) == first  # frozen, whatever happened since
        world.chain.block += world.chain.tempo + 1
    async with world.client() as later:
        second = await ask(later, alice)
    assert second["epoch_index"] == first["epoch_index"] + 1
    assert second["epoch_standings"] != first["epoch_standings"]
    _pays_as_the_season_says(driver, second["epoch_standings"])


async def test_no_earlier_epochs_standings_come_back_when_the_tempo_changes(world: World) -> None:
    driver, journal = Driver(), PostgresJournal(world.database.engine)
    alice = world.validators[0]

    async def ask() -> dict[str, Any]:
        async with world.client() as client:
            answer = await client.get("/v1/validator/weight-salt", headers=alice.headers())
        return dict(answer.json())

    async def race(done: int, **solved: int) -> None:
        driver.open()
        for version in solved.keys() - driver.season.entrants.keys():
            driver.enter(version)
        driver.race(solved)
        await journal.append(STREAM, driver.events[done:], after=done)

    await race(0, a=5, b=4, c=3, d=1)
    first = await ask()
    done = len(driver.events)
    driver.now += timedelta(hours=13)
    await race(done, a=1, e=6, f=2)
    world.chain.tempo, world.chain.block = 720, 1_430
    second = await ask()
    assert second["epoch_index"] == first["epoch_index"]
    assert second["epoch_standings"]["race_id"] != first["epoch_standings"]["race_id"]


def _pays_as_the_season_says(driver: Driver, standings: dict[str, Any]) -> None:
    """Who builds the vector from the answer builds the season's own."""
    paid = paid_race(driver.season)
    assert paid is not None
    told = [Finisher(**finisher) for finisher in standings["finishers"]]
    hotkeys = ["burn", *sorted(f.miner_hotkey for f in paid.finishers)]
    burn = standings["t_burn"]
    mine, theirs = (
        weight_vector(f, hotkeys, top_share=1 - burn, burn_share=burn, champion=champion)
        for f, champion in (
            (paid.finishers, paid.champion),
            (told, standings["top_version"]),
        )
    )
    assert mine == theirs
    assert hotkeys[max(range(1, len(mine)), key=mine.__getitem__)] == standings["top_hotkey"]


async def test_who_did_no_work_of_late_is_not_eligible(world: World) -> None:
    alice, bob = world.validators
    async with world.client() as client:
        assert not await _eligible(client, alice)
        await _completed(world, alice, 1, world.clock() - timedelta(days=3))
        # Nobody has had work since: three days without submissions make nobody a copier.
        assert await _eligible(client, alice)
        assert not await _eligible(client, bob)
        await _completed(world, bob, 2, world.clock())
        assert await _eligible(client, bob)
        assert not await _eligible(client, alice)


async def test_who_asks_and_finds_every_seat_taken_is_eligible(world: World) -> None:
    alice, bob = world.validators
    await _completed(world, bob, 1, world.clock())
    async with world.client() as client:
        assert not await _eligible(client, alice)
        await Presence(world.database.engine).asked(alice.hotkey, world.clock() - PRESENT)
        assert not await _eligible(client, alice), "it has stopped asking"
        assert (await _claim(client, alice)) is None
        assert await _eligible(client, alice)
    async with world.client() as other:
        assert await _eligible(other, alice), "whichever process it asked"


async def test_who_asks_and_does_not_do_what_it_is_given_is_not_eligible(world: World) -> None:
    alice, bob = world.validators
    await _completed(world, bob, 1, world.clock())
    await world.open(problems=1, needed=1, number=2)
    async with world.client() as client:
        assert (await _claim(client, alice)) is not None
        assert await _eligible(client, alice), "it is at work"
        later = world.clock() + timedelta(minutes=10)
        assert len(await world.queue.expire(later)) == 1
        await _completed(world, bob, 2, later)
        assert (await _claim(client, alice)) is None
        assert not await _eligible(client, alice)


async def _eligible(client: httpx.AsyncClient, who: Validator) -> bool:
    answer = await client.get("/v1/validator/weight-salt", headers=who.headers())
    return bool(answer.json()["eligible"])


async def _claim(client: httpx.AsyncClient, who: Validator) -> dict[str, Any] | None:
    answer = await client.post("/v1/validator/work/claim", headers=who.headers())
    return dict(answer.json()) if answer.status_code == 200 else None


async def _completed(world: World, who: Validator, number: int, at: datetime) -> None:
    """A validator's run of the `number`-th version, whole."""
    evaluation = await world.open(problems=1, needed=1, number=number)
    lease = await world.queue.claim(who.hotkey, capacity=1, now=at, lease=timedelta(seconds=60))
    assert lease is not None
    assert lease.evaluation == evaluation
    sealed = who.seal(world.record(evaluation, 1, who.hotkey[:8]).encode())
    await RecordStore(world.database.engine).put([sealed])
    problem, digest = evaluation.problems[0], sealed.record.hash
    await world.queue.count_record(lease.run_id, who.hotkey, problem, digest, at)
    await world.queue.complete(lease.run_id, who.hotkey, Ended(RunState.SUCCESS), at)
