"""What sealed records cost: bytes stored, seals a second, records verified a second.

    python -m benchmarks.records [--problems 12] [--records 2000] [--json FILE]

Agents of the demonstration race on a generated world of its size. *Naive* is the JSON of
their records with every call's whole prompt in it, as providers log them, uncompressed;
*stored* is what the database holds of the same records and their seals.

Sealing and verifying take records of 30 KB cut from the same race. Sealing is all that a
race does with a record: number, signature, frame, and three waits for the disk (the frame,
the head, the head's directory); it is timed by the wall clock, and beside it what the disk
alone takes for three such waits. Verifying is timed by the CPU time of one process: from the
bytes of a seal line and a record, it reads the seal, checks that it is canonical and in its
bounds, links it to the one before, hashes the record and checks the signature.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from sqlalchemy import text

from arena.db.engine import open_database
from arena.problems.suite import write_suite
from arena.problems.synthesise import split_evenly, synthesise
from arena.races.running import RaceOptions, run_race
from arena.runs.canonical import canonical
from arena.runs.frames import encode_frame, read_spool
from arena.runs.ledger import Head, Ledger, seal_after
from arena.runs.opening import WorldOptions
from arena.runs.record import EncodedRecord
from arena.runs.seal import Sealed, SealedRecord, signing_message
from arena.runs.signing import KeypairSigner, verify_signature
from arena.runs.spool import FILE_NAME, SpoolSink
from arena.settings import ArenaSettings
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from sandbox.trace import Trace
from scoring.types import Json, JsonObject

_SHIPPED = Path(__file__).parents[1] / "neurons" / "agents"
AGENTS = [_SHIPPED / "react.py", _SHIPPED / "pipeline.py", _SHIPPED / "dishonest" / "narrator.py"]
PRODUCTS, SEED = 3000, 15
RECORD_BYTES = 30_000
TARGET_SHARE = 0.15
"""Stored bytes over naive ones, at most."""
TARGET_RATE = 1_000
"""Records of 30 KB verified a second on one core, at least."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def race(directory: Path, problems: int) -> Path:
    """Race the agents; where the records lie."""
    world, suite = directory / "world.jsonl.gz", directory / "suite.jsonl"
    write_world(PRODUCTS, SEED, world)
    write_suite(synthesise(open_catalog(world), split_evenly(problems), seed=SEED), suite)
    options = RaceOptions(
        agents=[str(agent) for agent in AGENTS],
        suites=[suite],
        world=WorldOptions(world),
        out=directory / "race",
    )
    settings = ArenaSettings(data_dir=directory)
    asyncio.run(run_race(options, settings, Console(stderr=True)))
    return directory / "race" / FILE_NAME


def naive_bytes(record: EncodedRecord) -> int:
    """The length of a run's JSON with every prompt written out."""
    value = record.value
    trace = Trace.from_json(value["trace"])  # type: ignore[arg-type]
    prompts = iter([trace.prompt(event) for event in trace.llm()])
    written = trace.to_json()
    events: list[Json] = []
    for event in written.pop("events"):  # type: ignore[union-attr]
        whole = isinstance(event, dict) and "prompt" in event
        events.append({**event, "prompt": list(next(prompts))} if whole else event)  # type: ignore[dict-item]
    del written["messages"]
    whole_record = {**value, "trace": {**written, "events": events}}
    return len(json.dumps(whole_record, ensure_ascii=False).encode())


async def stored_bytes(directory: Path) -> JsonObject:
    """What the database holds: contents, seals, and the two tables with their indices."""
    query = text(
        "SELECT (SELECT sum(length(content)) FROM records),"
        " (SELECT sum(length(content) + length(signature)) FROM seals),"
        " pg_total_relation_size('records') + pg_total_relation_size('seals')"
    )
    async with open_database(ArenaSettings(data_dir=directory)) as database:
        await database.ready()
        async with database.engine.connect() as connection:
            records, seals, tables = (await connection.execute(query)).one()
    return {"records": int(records), "seals": int(seals), "tables": int(tables)}


def measure_size(directory: Path, spool: Path) -> JsonObject:
    """Stored against naive, over all records of the race."""
    records = [frame.content.record for frame in read_spool(spool)]
    naive = sum(naive_bytes(record) for record in records)
    stored = asyncio.run(stored_bytes(directory))
    kept = int(stored["records"]) + int(stored["seals"])  # type: ignore[arg-type]
    return {
        "count": len(records),
        "naive": naive,
        "canonical": sum(len(record.content) for record in records),
        "spool": spool.stat().st_size,
        **stored,
        "share": kept / naive,
    }


def thirty_kilobytes(spool: Path, count: int) -> list[EncodedRecord]:
    """Records of 30 KB, each with text of its own from the race's traces."""
    texts = b"".join(frame.content.record.content for frame in read_spool(spool)).decode()
    step = max(1, (len(texts) - RECORD_BYTES) // count)
    return [
        EncodedRecord(
            canonical(
                {
                    "schema": 1,
                    "kind": "run",
                    "n": n,
                    "text": texts[n * step :][: RECORD_BYTES - 3000],
                }
            )
        )
        for n in range(count)
    ]


def measure_sealing(directory: Path, records: list[EncodedRecord]) -> JsonObject:
    """Records sealed a second, and how much of it is waiting for the disk."""
    spool = SpoolSink(directory, Ledger(directory / "ledger", KeypairSigner("//Alice")))
    assert not list(spool.load())
    started, cpu = time.perf_counter(), time.process_time()
    for record in records:
        spool._append(record)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    spool.close()
    return {
        "a_second": len(records) / wall,
        "cpu_ms": 1000 * cpu / len(records),
        "disk_ms": 1000 * three_syncs(directory / "probe", len(records)),
    }


def three_syncs(path: Path, rounds: int) -> float:
    """Seconds that the disk alone takes for what it is asked a record."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    started = time.perf_counter()
    for _ in range(rounds):
        for size in (6000, 400, 1):
            os.write(fd, b"x" * size)
            os.fsync(fd)
    os.close(fd)
    return (time.perf_counter() - started) / rounds


def measure_verifying(records: list[EncodedRecord]) -> JsonObject:
    """Records verified a second on one core, from their bytes."""
    head, signer = Head(), KeypairSigner("//Alice")
    chain: list[SealedRecord] = []
    for record in records:
        chain.append(seal_after(head, record, signer, now=NOW, block=None))
        head = Head.of(chain[-1].sealed)
    raw = [(one.record.content, one.sealed.to_line()) for one in chain]
    cpu = time.process_time()
    previous = None
    for content, line in raw:
        sealed, record = Sealed.from_line(line), EncodedRecord(content)
        seal = sealed.seal
        message = signing_message(sealed.content)
        assert seal.previous == previous
        assert seal.record == record.hash
        assert verify_signature(seal.validator, message, sealed.signature)
        previous = sealed.hash
    seconds = time.process_time() - cpu
    frames = b"".join(encode_frame(one.record, one.sealed) for one in chain)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE_NAME).write_bytes(frames)
        cpu = time.process_time()
        assert sum(1 for _ in read_spool(Path(folder) / FILE_NAME)) == len(chain)
        reading = time.process_time() - cpu
    return {
        "a_second": len(raw) / seconds,
        "a_second_from_a_spool": len(raw) / (seconds + reading),
        "record_bytes": sum(len(content) for content, _ in raw) / len(raw),
    }


def main() -> None:
    """Measure and print; with --json also for machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--problems", type=int, default=12)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        directory = Path(folder)
        spool = race(directory, options.problems)
        size = measure_size(directory, spool)
        records = thirty_kilobytes(spool, options.records)
        sealing = measure_sealing(directory, records)
        verifying = measure_verifying(records)
    found: JsonObject = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "load": os.getloadavg()[0],
        "size": size,
        "sealing": sealing,
        "verifying": verifying,
        "targets": {"share": TARGET_SHARE, "verified_a_second": TARGET_RATE},
    }
    print(json.dumps(found, indent=2))
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
