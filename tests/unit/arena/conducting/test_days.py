"""Days of the calendar, and what may go wrong in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from arena.api.presence import Presence
from arena.conducting.stock import CatalogGrower
from arena.problems.pools import Pool
from arena.records.store import RecordStore
from arena.season.commands import Disqualify
from arena.season.results import Decision
from arena.season.state import Stage, Void
from arena.season.store import command, load_season
from arena.simulation.catalogue import Arrivals
from arena.work.types import EvaluationKind
from scoring.types import Bucket
from tests.unit.arena.conducting.world import (
    KEY,
    MORNING,
    ROTATION,
    Grower,
    World,
    subjects,
    told,
    views,
)

pytestmark = pytest.mark.database

RACE, QUALIFYING = EvaluationKind.RACE, EvaluationKind.QUALIFYING


async def qualified(world: World, *names: str, skill: float = 1.0) -> list[UUID]:
    """Agents that wait for the race of the day, and two validators that take part."""
    await world.look()
    versions = [await world.enter(name, skill) for name in names]
    await world.at(minutes=1)
    await world.work()
    await world.at(minutes=1)
    return versions


async def drawn(world: World, *names: str) -> list[UUID]:
    """The same, and the race of the day is drawn."""
    versions = await qualified(world, *names)
    race = (await world.season()).open
    assert race is not None
    await world.until(race.closes_at)
    await world.at(minutes=2)
    return versions


async def test_from_an_empty_database_to_a_champion(world: World) -> None:
    assert told(await world.look()) == ["rules.set", "bank.grown", "bank.grown", "race.opened"]
    assert await world.look() == []
    version = await world.enter("first")
    assert told(await world.at(minutes=1)) == ["evaluation.opened"]
    assert await world.work() == 1
    assert told(await world.at(minutes=1)) == ["agent.qualified", "validator.joined"]
    race = (await world.season()).open
    assert race is not None
    assert told(await world.until(race.closes_at)) == ["qualifying.closed"]
    done = await world.at(minutes=2)
    assert told(done)[:3] == ["race.drawn", "problems.raced", "evaluation.opened"]
    assert told(done)[-1] == "race.opened"
    await world.work()
    assert told(await world.at(hours=1))[:2] == ["outcomes.reported", "race.closed"]
    assert (await world.season()).champion == str(version)


async def test_a_second_look_at_the_same_moment_finds_nothing_to_do(world: World) -> None:
    await drawn(world, "one", "two")
    assert await world.look() == []
    world.reborn()
    assert await world.look() == []


async def test_of_two_conductors_one_looks_at_a_time(world: World) -> None:
    from arena.conducting.conductor import _alone

    async with _alone(world.engine) as alone:
        assert alone
        assert await world.look() == []
    assert "race.opened" in told(await world.look())


async def test_nothing_that_is_listed_leaves_held_out_before_the_draw(world: World) -> None:
    # A rotation would open fresh problems, too, were no race open.
    world.reborn(rotation=replace(ROTATION, opens=3))
    await drawn(world, "one")  # the next race is open since the draw
    listed = {h.problem_id for h in (await world.bank()).drawable()}
    raced = {p.problem_id for p in (await world.season()).running.problems}  # type: ignore[union-attr]
    assert not listed & raced
    assert {(await world.bank()).need(p).pool for p in raced} == {Pool.HELD_OUT}
    await world.work()
    assert "bank.rotated" in told(await world.at(hours=1))
    bank = await world.bank()
    assert {bank.need(p).pool for p in raced} == {Pool.OPEN}
    assert {bank.need(p).pool for p in listed} == {Pool.HELD_OUT}


async def test_a_validator_that_is_lost_in_a_race_is_not_waited_for_beyond_the_deadline(
    world: World,
) -> None:
    one, two = await drawn(world, "one", "two")
    lost = await world.bob.claim()
    assert lost is not None
    await world.bob.run(lost, problems=1)
    while (lease := await world.alice.claim()) is not None:
        await world.alice.run(lease)
    assert "race.closed" not in told(await world.at(hours=2))
    race = (await world.season()).running
    assert race is not None
    done = await world.until(race.deadline)
    assert "race.closed" in told(done)
    # What the lost one held is over with its race: nobody is charged.
    assert {*subjects(done, "evaluation.cancelled")} <= {str(one), str(two)}
    season = await world.season()
    assert {r.validators for r in season.results[0].racers} == {1}
    assert all(r.score is not None for r in season.results[0].racers)
    assert {*await views(world, one, RACE), *await views(world, two, RACE)} == {"CANCELLED"}


async def test_who_was_silent_while_work_waited_leaves_and_comes_back_with_work(
    world: World,
) -> None:
    await qualified(world, "one", "two")
    assert len((await world.season()).validators) == 2
    # A day without work says nothing about them.
    await world.until((await world.season()).open.closes_at)  # type: ignore[union-attr]
    await world.at(minutes=2)
    await world.work()
    await world.at(hours=30)
    assert len((await world.season()).validators) == 2
    await world.enter("three")
    await world.look()
    done = await world.at(hours=7)
    assert sorted(subjects(done, "validator.left")) == sorted(
        [world.alice.hotkey, world.bob.hotkey]
    )
    await world.work()
    assert len(subjects(await world.at(minutes=2), "validator.joined")) == 1


async def test_who_left_for_its_silence_is_not_back_before_it_is_heard_of(world: World) -> None:
    await qualified(world, "one", "two")
    await world.enter("three")
    await world.look()
    # Less than a day since they were heard of: presence alone would bring them back.
    assert len(subjects(await world.at(hours=7), "validator.left")) == 2
    assert subjects(await world.at(minutes=1), "validator.joined") == []
    await Presence(world.engine).asked(world.bob.hotkey, world.now)
    assert subjects(await world.at(minutes=1), "validator.joined") == [world.bob.hotkey]


async def test_who_asks_for_work_takes_part_although_others_were_quicker(world: World) -> None:
    await world.look()
    await world.enter("one")
    await world.at(minutes=1)
    lease = await world.alice.claim()
    assert lease is not None
    await world.alice.run(lease)
    await Presence(world.engine).asked(world.bob.hotkey, world.now)
    joined = subjects(await world.at(minutes=1), "validator.joined")
    assert sorted(joined) == sorted([world.alice.hotkey, world.bob.hotkey])


async def test_who_goes_on_asking_stays_when_work_waits_for_somebody_else(world: World) -> None:
    await drawn(world, "one", "two")
    while (lease := await world.alice.claim()) is not None:
        await world.alice.run(lease)
    world.now += timedelta(hours=7)
    await Presence(world.engine).asked(world.alice.hotkey, world.now)
    assert subjects(await world.look(), "validator.left") == [world.bob.hotkey]


async def test_a_validator_without_permit_leaves_at_once(world: World) -> None:
    await qualified(world, "one", "two")
    world.chain.peers = [p for p in world.chain.peers if p.hotkey != world.bob.hotkey]
    done = await world.at(minutes=2)
    assert subjects(done, "validator.left") == [world.bob.hotkey]


async def test_a_day_without_a_qualifier_is_void_and_the_next_one_opens(world: World) -> None:
    await world.look()
    await world.enter("hopeless", skill=0.0)
    await world.at(minutes=1)
    await world.work()
    assert "agent.not_qualified" in told(await world.at(minutes=1))
    race = (await world.season()).open
    assert race is not None
    done = await world.until(race.closes_at)
    assert told(done)[0] == "race.voided"
    assert told(done)[-1] == "race.opened"
    season = await world.season()
    assert [void.reason for void in season.voids] == [Void.NO_QUALIFIER]
    assert season.open is not None
    assert season.open.closes_at == race.closes_at + timedelta(days=1)


async def test_a_beacon_that_is_late_is_waited_for_and_then_the_race_is_void(world: World) -> None:
    world.beacon.late = True
    (version,) = await drawn(world, "one")
    season = await world.season()
    assert season.open is not None
    assert season.open.stage is Stage.AWAITING_BEACON
    assert await views(world, version, RACE) == []
    await world.until(season.open.draw_until)
    season = await world.season()
    assert [void.reason for void in season.voids] == [Void.NOT_DRAWN]
    assert list(season.waiting) == [str(version)]
    world.beacon.late = False
    assert season.open is not None
    await world.until(season.open.closes_at)
    assert "race.drawn" in told(await world.at(minutes=2))


async def test_a_beacon_that_comes_in_time_draws(world: World) -> None:
    world.beacon.late = True
    await drawn(world, "one")
    world.beacon.late = False
    assert "race.drawn" in told(await world.at(hours=1))


async def test_without_the_chain_races_go_on_and_roots_are_made_up_for(world: World) -> None:
    await qualified(world, "one", "two")
    world.chain.down = True
    race = (await world.season()).open
    assert race is not None
    await world.until(race.closes_at)
    await world.at(minutes=2)
    await world.work()
    assert "race.closed" in told(await world.at(hours=1))
    done = await world.at(hours=14)
    assert "log.closed" in told(done)
    assert "root.committed" not in told(done)
    world.chain.down = False
    assert "root.committed" in told(await world.at(minutes=5))
    assert world.chain.committed_data


async def test_a_metagraph_that_misses_everybody_puts_nobody_out(world: World) -> None:
    (version,) = await qualified(world, "one")
    whole = list(world.chain.peers)
    world.chain.peers = []
    await world.at(minutes=2)
    await world.at(minutes=2)
    # One that misses a miner once may be wrong, too; one that does again is believed.
    world.chain.peers = [p for p in whole if p.permit]
    await world.at(minutes=2)
    assert (await world.season()).entrants[str(version)].eligible
    world.chain.peers = whole
    await world.at(minutes=2)
    world.chain.peers = [p for p in whole if p.permit]
    assert "hotkey.deregistered" not in told(await world.at(minutes=2))
    assert "hotkey.deregistered" in told(await world.at(minutes=2))


async def test_a_metagraph_that_misses_most_miners_is_believed_after_hours(world: World) -> None:
    await qualified(world, *"abcd")
    world.chain.peers = [p for p in world.chain.peers if p.permit]
    for _ in range(5):
        assert "hotkey.deregistered" not in told(await world.at(hours=1))
    assert len(subjects(await world.at(hours=2), "hotkey.deregistered")) == 4


async def test_an_agent_that_is_out_is_not_run_any_more(world: World) -> None:
    one, _ = await drawn(world, "one", "two")
    loaded = await load_season(world.journal)
    await command(world.journal, loaded, Disqualify(str(one), "it cheats"), world.now)
    done = await world.at(minutes=1)
    assert subjects(done, "evaluation.cancelled") == [str(one)]
    assert await views(world, one, RACE) == ["CANCELLED"]
    assert await world.look() == []  # and is not opened again


async def test_qualifying_that_validators_could_not_finish_is_done_anew(world: World) -> None:
    await qualified(world, "one", "two")
    version = await world.enter("unlucky")
    await world.at(minutes=1)
    for _ in range(2):
        for validator in (world.alice, world.bob):
            lease = await validator.claim()
            assert lease is not None
            await validator.fail(lease)
    assert await world.alice.claim() is None
    done = await world.at(minutes=31)
    assert subjects(done, "evaluation.cancelled") == [str(version)]
    # Never charged: it is scored anew, in the qualifying of the race that is open.
    assert subjects(done, "evaluation.opened") == [str(version)]
    assert await views(world, version, QUALIFYING) == ["CANCELLED", "OPEN"]
    await world.work()
    done = await world.at(minutes=1)
    assert subjects(done, "agent.qualified") == [str(version)]


async def test_a_racer_that_validators_could_not_finish_is_carried(world: World) -> None:
    one, two = await drawn(world, "one", "two")
    for _ in range(20):
        for validator in (world.alice, world.bob):
            lease = await validator.claim()
            if lease is None:
                continue
            if lease.evaluation.version == one:
                await validator.fail(lease)
            else:
                await validator.run(lease)
    done = await world.at(minutes=31)
    assert subjects(done, "evaluation.cancelled") == [str(one)]
    race = (await world.season()).running
    assert race is not None
    await world.until(race.deadline)
    season = await world.season()
    assert season.champion == str(two)
    assert season.entrants[str(one)].carried == 1
    assert str(one) in season.waiting


async def test_outcomes_that_were_whole_before_the_deadline_count_when_looked_at_after_it(
    world: World,
) -> None:
    (version,) = await drawn(world, "one")
    world.now += timedelta(hours=3)
    await world.work()
    race = (await world.season()).running
    assert race is not None
    done = await world.until(race.deadline + timedelta(hours=1))
    assert {"outcomes.reported", "race.closed"} <= set(told(done))
    season = await world.season()
    assert season.results[0].title.decision is Decision.VACANT
    assert season.champion == str(version)


async def test_who_qualified_before_the_closing_races_also_when_nobody_looked(
    world: World,
) -> None:
    await qualified(world, "one")
    late = await world.enter("late")
    await world.at(minutes=1)
    await world.work()
    race = (await world.season()).open
    assert race is not None
    done = await world.until(race.closes_at + timedelta(minutes=30))
    assert subjects(done, "agent.qualified") == [str(late)]
    assert str(late) in (await world.season()).running.racers  # type: ignore[union-attr]


async def test_a_step_that_fails_stops_no_other_and_is_tried_again(world: World) -> None:
    await world.look()
    version = await world.enter("unreadable", stored=False)
    entry = len(await world.journal.read("season"))
    other = await world.enter("readable")
    done = await world.at(minutes=1)
    assert subjects(done, "evaluation.opened") == [str(other)]
    await world.store("unreadable", entry)
    assert subjects(await world.at(minutes=1), "evaluation.opened") == [str(version)]


async def test_rules_are_set_when_the_operators_file_changes(world: World) -> None:
    await world.look()
    assert world.parts.rules is not None
    changed = world.parts.rules.model_copy(update={"qualifying_threshold": 0.9})
    world.reborn(rules=changed)
    assert told(await world.at(minutes=1)) == ["rules.set"]
    world.reborn(rules=None)  # no file: they stay as they are
    assert await world.at(minutes=1) == []
    season = await world.season()
    assert season.rules.qualifying_threshold == 0.9
    assert season.open is not None
    assert season.open.rules.qualifying_threshold == 0.3  # it keeps those that it opened with


async def test_a_seal_of_long_ago_closes_no_days_before_the_arena_began(world: World) -> None:
    await world.look()
    await world.enter("one")
    await world.at(minutes=1)
    validator, now = world.alice, world.now
    lease = await validator.claim()
    assert lease is not None
    world.now = now.replace(year=1970)  # a validator's own word
    sealed = validator.seal(validator.record(lease, lease.evaluation.problems[0]))
    world.now = now
    await RecordStore(world.engine).put([sealed])
    done = await world.until(MORNING + timedelta(days=1))
    assert subjects(done, "log.closed") == ["2026-01-05"]


async def test_every_day_that_was_missed_is_closed_in_order(world: World) -> None:
    await drawn(world, "one")
    await world.work()
    done = await world.until(MORNING + timedelta(days=3))
    assert subjects(done, "log.closed") == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert subjects(done, "root.committed") == ["2026-01-07"]
    await world.at(minutes=5)
    await world.at(minutes=5)
    await world.at(minutes=5)
    await world.at(minutes=5)
    assert [str(day) for day in world.exporter.made] == ["2026-01-05", "2026-01-06", "2026-01-07"]


async def test_a_bank_grows_from_a_catalogue_before_the_first_race_opens(world: World) -> None:
    world.reborn(grower=CatalogGrower(Arrivals(300, 1, 0), KEY))
    assert told(await world.look()) == ["rules.set", "bank.grown", "bank.grown", "race.opened"]
    bank = await world.bank()
    assert {h.bucket for h in bank.live(Pool.HELD_OUT)} == set(Bucket)
    assert {h.bucket for h in bank.live(Pool.OPEN)} == set(Bucket)


async def test_a_race_that_lacks_problems_opens_when_they_come(world: World) -> None:
    world.reborn(grower=None)
    assert told(await world.look()) == ["rules.set"]
    assert (await world.season()).open is None
    world.reborn(grower=Grower())
    assert "race.opened" in told(await world.at(minutes=1))
