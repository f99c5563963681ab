"""Standings, disqualification and appeal by command, on a real database."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arena.db.engine import Database
from arena.db.journal import PostgresJournal
from arena.season.state import STREAM
from neurons.cli import app
from tests.unit.arena.season.driving import Driver

pytestmark = pytest.mark.database


def arena(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["race", *arguments])


async def test_a_champion_is_disqualified_and_comes_back_on_appeal(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver()
    driver.open()
    driver.enter("v1")
    driver.enter("v2")
    driver.race({"v1": 3, "v2": 1})
    await PostgresJournal(database.engine).append(STREAM, driver.events, after=0)
    monkeypatch.setenv("ARENA_DATABASE_URL", database_url)
    out = tmp_path / "s.json"

    def shown() -> Any:
        result = arena("standings", "--json", str(out))
        assert result.exit_code == 0, result.output
        return json.loads(out.read_text())

    def check() -> None:
        assert shown()["champion"] == "v1"
        assert arena("disqualify", "v1", "--reason", "a copy").exit_code == 0
        assert shown()["champion"] != "v1"
        assert [row["version"] for row in shown()["last_race"]["standings"]]
        again = arena("disqualify", "nobody", "--reason", "x")
        assert again.exit_code == 1
        assert arena("appeal", "v1", "--reason", "its own file").exit_code == 0
        assert shown()["champion"] == "v1"

    await asyncio.to_thread(check)
