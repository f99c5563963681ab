"""A season lives in its journal, in a real database: what is folded from it is the season."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.db.engine import Database
from arena.db.journal import PostgresJournal
from arena.exceptions import DrawError, SeasonError
from arena.races.cli import app
from arena.season.commands import Disqualify, Submit
from arena.season.state import STREAM
from arena.season.store import command, load_season
from tests.unit.arena.season.driving import Driver

pytestmark = pytest.mark.database


def raced() -> Driver:
    """Two races, and a third that is open."""
    driver = Driver()
    for day in range(2):
        driver.open()
        driver.enter(f"v{day}")
        driver.race({f"v{i}": 2 + 2 * i for i in range(day + 1)})
    driver.open()
    return driver


async def test_a_season_that_went_through_postgres_is_the_same(database: Database) -> None:
    driver = raced()
    journal = PostgresJournal(database.engine)
    await journal.append(STREAM, driver.events, after=0)
    loaded = await load_season(journal)
    assert loaded.season.results == driver.season.results
    assert loaded.season.titles == driver.season.titles
    assert loaded.season.open == driver.season.open
    assert loaded.season.entrants == driver.season.entrants


async def test_two_operators_decide_one_after_the_other(database: Database) -> None:
    driver = raced()
    journal = PostgresJournal(database.engine)
    await journal.append(STREAM, driver.events, after=0)
    one, two = await load_season(journal), await load_season(journal)
    await command(journal, one, Submit("v8", "hk-v8", "source"), driver.now)
    # The second has not heard of it, is refused by the journal, and decides again.
    await command(journal, two, Submit("v9", "hk-v9", "source"), driver.now)
    await command(journal, two, Disqualify("v8", "a copy"), driver.now)
    assert two.season.entrants["v8"].disqualified == "a copy"
    assert (await load_season(journal)).season.entrants == two.season.entrants
    with pytest.raises(SeasonError) as refused:  # what the first knows now, it is held to
        await command(journal, one, Submit("v9", "hk-v7", "source"), driver.now)
    assert refused.value.code == "season.twice_submitted"
    assert one.season.entrants == two.season.entrants


async def test_the_draw_of_a_race_in_the_journal_is_verified_and_published(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = raced()
    await PostgresJournal(database.engine).append(STREAM, driver.events, after=0)
    monkeypatch.setenv("ARENA_DATABASE_URL", database_url)
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path))
    race_id = driver.season.results[0].race_id
    out = tmp_path / "draw.json"
    asked = ["verify", "--race", race_id, "--out", str(out), "--json", "-"]
    result = await asyncio.to_thread(CliRunner().invoke, app, asked)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["holds"] is True
    again = CliRunner().invoke(
        app, ["verify", str(out), "--commitment", said["commitment_hash"], "--json", "-"]
    )
    assert again.exit_code == 0
    other = CliRunner().invoke(app, ["verify", str(out), "--commitment", "00" * 32])
    assert other.exit_code != 0
    unknown = await asyncio.to_thread(
        CliRunner().invoke, app, ["verify", "--race", "race-1999-01-01"]
    )
    assert isinstance(unknown.exception, DrawError)
