"""A conductor that is killed between any two writes is followed by one that goes on as if it
had not been."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from arena.db.engine import Database
from tests.unit.arena.conducting.killing import MortalWorld
from tests.unit.arena.conducting.scenario import three_days
from tests.unit.arena.conducting.world import World

pytestmark = pytest.mark.database

_SAME = {
    "journal": "SELECT stream, sequence, kind, at, convert_from(data, 'UTF8') FROM journal"
    " ORDER BY stream, sequence",
    "evaluations": "SELECT evaluation_id, version, kind, season_race, problems, needed, state,"
    " taken, finished, opened_at, ended_at FROM evaluations ORDER BY evaluation_id",
    "inputs": "SELECT race_id, phase, created_at, fingerprint, inputs FROM races ORDER BY race_id",
    "secrets": "SELECT race_id FROM race_secrets ORDER BY race_id",
    "heads": "SELECT day, size FROM log_heads ORDER BY day",
    "roots": "SELECT count(*) FROM head_commitments",
    "tick": "SELECT process, at FROM process_ticks",
}
"""Everything that the calendar writes, but for signatures and seals, which are never twice the
same."""


def _constant(count: int) -> bytes:
    return b"\7" * count


async def _written(world: World) -> dict[str, list[tuple[object, ...]]]:
    async with world.engine.connect() as connection:
        return {
            name: [tuple(row) for row in await connection.execute(text(query))]
            for name, query in _SAME.items()
        }


async def test_killed_after_each_of_its_writes_it_leaves_the_same_season(
    database: Database, other_database: Database
) -> None:
    calm, mortal = World(database.engine), MortalWorld(other_database.engine)
    for world in (calm, mortal):
        world.reborn(random=_constant)
        await three_days(world)
    assert len((await calm.season()).results) == 3
    assert mortal.mortal.deaths > 60
    expected, found = await _written(calm), await _written(mortal)
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert mortal.exporter.made == calm.exporter.made
