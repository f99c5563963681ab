"""A day of the calendar."""

from __future__ import annotations

import pytest

from tests.unit.arena.conducting.world import World, told

pytestmark = pytest.mark.database


async def test_a_day_goes_from_an_empty_database_to_a_champion(world: World) -> None:
    done = await world.look()
    assert told(done) == ["rules.set", "bank.grown", "bank.grown", "race.opened"]
    assert await world.look() == []
    version = await world.enter("first")
    print(told(await world.at(minutes=1)))
    print(await world.work())
    print(told(await world.at(minutes=1)))
    season = await world.season()
    assert season.open
    print(told(await world.until(season.open.closes_at)))
    print(told(await world.at(minutes=2)))
    print(await world.work())
    print(told(await world.at(hours=1)))
    print(told(await world.at(hours=12)))
    print(told(await world.at(hours=12)))
    assert (await world.season()).champion == str(version)
