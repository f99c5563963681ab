"""Corpora from the database, through killed processes and full disks, into `datasets`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr

from arena.db.engine import Database
from arena.records.export import export_day
from arena.records.log import TransparencyLog
from arena.records.store import RecordStore
from arena.runs.frames import read_spool
from arena.runs.signing import KeypairSigner
from arena.season.release import Release
from arena.settings import ArenaSettings
from corpus_export.checking import verify
from corpus_export.opening import Inputs, open_day, open_files
from corpus_export.pipeline import ExportResult, export
from corpus_export.settings import ExportOptions
from tests.postgres import sources
from tests.unit.arena import builders
from tests.unit.corpus_export.days import DAY, Day, Quiet, file_bytes, full_day, lines, rows

END = datetime(2026, 1, 2, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path / "var"))


async def stored(database: Database, day: Day) -> None:
    """The day's records, seals and problems in the database."""
    labels = ("alpha", "beta", "gamma", "coded")
    agents = tuple(builders.agent(label) for label in labels)
    store = RecordStore(database.engine)
    await store.register(builders.race_entry("race", agents, tuple(day.problems)))
    frames = list(read_spool(day.write() / "records.jsonl.zst"))
    await store.put([frame.content.sealed for frame in frames])


def exported(url: str, day: Day, out: Path, **options: Any) -> ExportResult:
    """Export the day from the database; for a thread of its own."""
    settings = ArenaSettings(database_url=SecretStr(url), data_dir=out.parent / "data")
    chosen: dict[str, Any] = {"day": DAY, "workers": 1} | options
    inputs = Inputs(catalogs=(day.catalog,))
    with open_day(inputs, ExportOptions(out=out, **chosen), settings) as job:
        return export(job, Quiet(), lambda text: None)


@pytest.mark.database
async def test_the_database_gives_the_rows_that_the_files_give(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    day = full_day(tmp_path / "day")
    await stored(database, day)
    made = await asyncio.to_thread(exported, database_url, day, tmp_path / "stored")
    day.export(tmp_path / "filed")
    one, other = file_bytes(tmp_path / "stored"), file_bytes(tmp_path / "filed")
    one.pop("manifest.json"), other.pop("manifest.json")
    assert [name for name in other if one.get(name) != other[name]] == []
    assert list(verify(tmp_path / "stored")) == []
    source = cast("dict[str, Any]", made.manifest["inputs"])["source"]
    assert (source["kind"], source["runs"]) == ("database", 20)


@pytest.mark.database
async def test_the_head_of_a_closed_day_is_named_and_a_commitment_traced(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    day = full_day(tmp_path / "day")
    await stored(database, day)
    before = await asyncio.to_thread(exported, database_url, day, tmp_path / "before")
    assert before.manifest["log_head"] is None
    assert {row["chain_commit"] for row in rows(tmp_path / "before")} == {None}
    log = TransparencyLog(database.engine)
    closed = await log.close(DAY, KeypairSigner("//Bob"), now=END)
    await log.commit(_Chain(closed.head.head.log))
    made = await asyncio.to_thread(exported, database_url, day, tmp_path / "after")
    assert cast("dict[str, Any]", made.manifest["log_head"])["hash"] == closed.head.hash
    (commit,) = {row["chain_commit"] for row in rows(tmp_path / "after")}
    assert str(commit).startswith(f"{closed.head.head.log}@7:")
    assert list(verify(tmp_path / "after")) == []
    # The same from a records export, for the operator and for everybody.
    known = {str(row["problem_id"]) for row in rows(tmp_path / "after")} - {"p1"}
    release = Release(frozenset(known), await sources(database))
    for public in (False, True):
        shared = tmp_path / f"records-{public}"
        await export_day(database.engine, DAY, shared, public=public, release=release)
        out = tmp_path / f"corpus-{public}"
        inputs = Inputs(catalogs=(day.catalog,), records=(shared,))
        job = open_files(inputs, ExportOptions(out=out, day=DAY, public=public, workers=1))
        shared_made = export(job, Quiet(), lambda text: None)
        assert shared_made.manifest["log_head"] == made.manifest["log_head"]
        assert {row["chain_commit"] for row in rows(out)} == {commit}
        assert {row["released"] for row in rows(out)} == {public}
        assert ("p1" in {row["problem_id"] for row in rows(out)}) is not public
        assert list(verify(out)) == []
    one, other = file_bytes(tmp_path / "after"), file_bytes(tmp_path / "corpus-False")
    one.pop("manifest.json"), other.pop("manifest.json")
    assert [name for name in other if one.get(name) != other[name]] == []


@pytest.mark.database
async def test_a_day_that_goes_on_in_pages_gives_the_same_bytes(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = full_day(tmp_path / "day")
    await stored(database, day)
    await asyncio.to_thread(exported, database_url, day, tmp_path / "whole")
    monkeypatch.setattr("corpus_export.database.PAGE_RECORDS", 3)
    monkeypatch.setattr("corpus_export.database._KEYS", 7)
    await asyncio.to_thread(exported, database_url, day, tmp_path / "paged")
    assert file_bytes(tmp_path / "paged") == file_bytes(tmp_path / "whole")


SCRIPT = """
import resource, sys
from pathlib import Path
from neurons.cli import main
room, *arguments = sys.argv[1:]
if int(room):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
main(["corpus", "export", *arguments])
"""


def arena(day: Day, out: Path, *, workers: int, room: int = 0) -> subprocess.Popen[str]:
    """An export in a process of its own; `room` limits its files' size in bytes."""
    where = [
        "--race",
        str(day.write()),
        "--catalog",
        str(day.catalog),
        "--out",
        str(out),
        "--day",
        DAY.isoformat(),
    ]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(room), *where, "--workers", str(workers)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_killed_export_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    day, out = Day(tmp_path / "day"), tmp_path / "out"
    day.add(*(day.run(n % 9, label=f"agent{n}") for n in range(400)))
    process = arena(day, out, workers=2)
    work = tmp_path / ".out.work" / "work.sqlite"
    while process.poll() is None and _read_so_far(work) == 0:
        pass
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = _read_so_far(work)
    assert 0 < done < 400
    assert not out.exists()
    told: list[str] = []
    export(day.job(out), Quiet(), told.append)
    assert told == ["going on with the export that was interrupted"]
    day.export(tmp_path / "whole")
    assert file_bytes(out) == file_bytes(tmp_path / "whole")


def _read_so_far(work: Path) -> int:
    """How many records a work file knows, while somebody may be writing it."""
    if not work.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{work}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM found").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.parametrize("room", [4_096, 80_000])
def test_a_full_disk_is_one_line_and_leaves_nothing_that_looks_whole(
    tmp_path: Path, room: int
) -> None:
    """A limit on the size of files stands in for the disk: EFBIG instead of ENOSPC. The
    first is met by the work file, the second by what is written in the end."""
    day, out = full_day(tmp_path / "day"), tmp_path / "out"
    day.export(tmp_path / "whole")
    process = arena(day, out, workers=1, room=room)
    _, said = process.communicate()
    assert process.returncode == 1, said
    assert "corpus.disk" in said
    assert "make room on the disk" in said
    assert "Traceback" not in said
    assert not out.exists()
    day.export(out)
    assert file_bytes(out) == file_bytes(tmp_path / "whole")


def test_datasets_loads_an_export_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    day = Day(tmp_path / "day")
    for number in range(9):
        day.add(day.run(number), day.run(number, label="coded", axis="B"))
    day.export(tmp_path / "out")
    script = """
import json, sys
from datasets import load_dataset
out, cache = sys.argv[1:]
found = {}
for name in (None, "axis_a", "axis_b"):
    loaded = load_dataset(out, name, cache_dir=cache)
    found[str(name)] = {split: [r["record_hash"] for r in rows] for split, rows in loaded.items()}
row = load_dataset(out, "axis_a", cache_dir=cache)["train"][0]
lines = load_dataset("json", data_files={"train": out + "/train/axis_a.jsonl.zst"}, cache_dir=cache)
found["json"] = [r["record_hash"] for r in lines["train"]]
found["same"] = {**lines["train"][0]} == row
found["row"] = row
print(json.dumps(found))
"""
    # In a process of its own: it starts threads and warns about much.
    made = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "out"), str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    expected = {
        split: {
            name: [r["record_hash"] for r in lines(tmp_path / f"out/{split}/{name}.jsonl.zst")]
            for name in ("axis_a", "axis_b")
        }
        for split in ("train", "eval")
    }
    for name in ("axis_a", "axis_b"):
        assert found[name] == {split: hashes[name] for split, hashes in expected.items()}
    assert found["None"] == found["axis_a"]
    assert found["json"] == expected["train"]["axis_a"]
    (first, *_) = lines(tmp_path / "out/train/axis_a.jsonl.zst")
    assert found["row"] == first


class _Chain:
    """A chain that takes one commitment."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._commitment: Any = None

    async def commit(self, data: bytes) -> Any:
        from arena.chain import Commitment

        self._commitment = Commitment(self._address, data, 7)
        return self._commitment

    async def committed(self, address: str) -> Any:
        return self._commitment

    async def block(self) -> Any:
        raise NotImplementedError

    async def block_hash(self, number: int) -> str | None:
        raise NotImplementedError
