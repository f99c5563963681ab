"""Three days of an arena that nobody touches: two validators, and a few miners."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tests.unit.arena.conducting.world import MORNING, World

DAYS = 3
ENTRIES = (("slow", 0.5), ("quick", 0.8)), (("bright", 0.95),), (("brilliant", 1.0), ("dull", 0.4))
"""Who submits in the morning of each day, and how much of the problems they solve."""


@dataclass
class Story:
    """What was seen while the days passed."""

    listed: list[frozenset[str]] = field(default_factory=list)
    """The held-out problems that could be drawn when each race opened."""
    held: list[frozenset[str]] = field(default_factory=list)
    """Those that were held out when it was drawn, before the draw."""


async def three_days(world: World) -> Story:
    """From an empty database to the morning of the fourth day."""
    story = Story()
    await world.look()
    for day in range(DAYS):
        morning = MORNING + timedelta(days=day)
        await world.until(morning)
        story.listed.append(await _drawable(world))
        for name, skill in ENTRIES[day]:
            await world.at(minutes=1)
            await world.enter(name, skill)
        await world.at(minutes=1)
        await world.work()
        await world.at(minutes=1)
        race = (await world.season()).open
        assert race is not None
        story.held.append(await _drawable(world))
        await world.until(race.closes_at)
        await world.at(minutes=2)
        await world.work()
        await world.at(minutes=5)
        await world.at(hours=5)
    await world.until(MORNING + timedelta(days=DAYS))
    await world.at(minutes=2)
    return story


async def _drawable(world: World) -> frozenset[str]:
    return frozenset(holding.problem_id for holding in (await world.bank()).drawable())
