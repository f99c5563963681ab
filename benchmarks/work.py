"""What the queue costs: 200 validators that poll, claims a second, records counted a second.

    python -m benchmarks.work [--validators 200] [--claims 400] [--json FILE]

Polling is measured in CPU time, that of this process (the API's side of it: SQLAlchemy and
asyncpg) and of the database's backends that serve it, from /proc; a validator polls every 30
seconds, so 200 of them make 6.7 claims a second, and the share is what those take of one core.
*Empty* is a queue with nothing open; *full* one with 300 open evaluations, every seat of
which is held by others; *seen* one with 300 that have free seats, all of which the polling
validator has finished or failed at a moment ago.

Claims a second are those of four engines with eight claimers each, all at once, over
evaluations with three seats; every claim gets a run. Records are counted one after the other
by one claimer, each in a transaction of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pydantic import SecretStr
from rich.console import Console
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from arena.db import schema
from arena.db.engine import Database, open_database
from arena.exceptions import Fault
from arena.settings import ArenaSettings
from arena.work.queue import WorkQueue
from arena.work.types import Ended, EvaluationKind, Lease, RunState
from scoring.exceptions import ErrorInfo
from scoring.types import Json

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(minutes=2)
POLL_S = 30
"""How often a validator asks for work, in seconds."""
OPEN = 300
POLLS = 600
TARGET_SHARE = 0.10
"""Of one core, at most, for 200 polling validators."""
PROBLEMS = [str(uuid4()) for _ in range(75)]
FAILED = Ended(RunState.FAILED, ErrorInfo("model.unreachable", Fault.VALIDATOR, "it is away"))


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time and wall time of calls, in seconds a call."""

    here: float
    database: float
    wall: float

    def share(self, validators: int) -> float:
        """Of one core, for so many validators that poll."""
        return (self.here + self.database) * validators / POLL_S


async def measure(engine: AsyncEngine, times: int, call: Callable[[], Awaitable[object]]) -> Cost:
    """What a call costs, `times` of them one after the other, on one connection."""
    async with engine.connect() as connection:
        pid = await connection.scalar(text("SELECT pg_backend_pid()"))
    await call()
    database, here, wall = _backend_s(pid), time.process_time(), time.perf_counter()
    for _ in range(times):
        await call()
    return Cost(
        (time.process_time() - here) / times,
        (_backend_s(pid) - database) / times,
        (time.perf_counter() - wall) / times,
    )


def _backend_s(pid: int) -> float:
    """CPU time of a database's backend, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def open_some(queue: WorkQueue, number: int, needed: int) -> None:
    """Open evaluations."""
    for _ in range(number):
        await queue.open_evaluation(uuid4(), EvaluationKind.QUALIFYING, None, PROBLEMS, needed, NOW)


async def clear(queue: WorkQueue) -> None:
    """Leave nothing open."""
    for view in await queue.open_evaluations():
        await queue.cancel(view.evaluation.version, "measured", NOW)


async def claim(queue: WorkQueue, validator: str) -> Lease | None:
    """A claim of one that works on nothing else."""
    return await queue.claim(validator, capacity=1_000, now=NOW, lease=LEASE)


async def polling(engine: AsyncEngine) -> dict[str, Cost]:
    """A poll that finds nothing, of the three kinds."""
    queue = WorkQueue(engine)
    costs = {"empty": await measure(engine, POLLS, lambda: claim(queue, "val"))}
    await open_some(queue, OPEN, 1)
    for i in range(OPEN):
        await claim(queue, f"other-{i}")
    costs["full"] = await measure(engine, POLLS, lambda: claim(queue, "val"))
    await clear(queue)
    await open_some(queue, OPEN, 2)
    for _ in range(OPEN):
        lease = await claim(queue, "val")
        assert lease is not None
        await queue.complete(lease.run_id, "val", FAILED, NOW)
    costs["seen"] = await measure(engine, POLLS, lambda: claim(queue, "val"))
    await clear(queue)
    return costs


async def claims(engines: list[AsyncEngine], number: int) -> float:
    """Claims a second, by the clock, of many claimers at once."""
    queue = WorkQueue(engines[0])
    await open_some(queue, number // 3 + 1, 3)
    left = iter(range(number))

    async def claimer(engine: AsyncEngine) -> int:
        own, given = WorkQueue(engine), 0
        for i in left:
            given += await claim(own, f"claimer-{i}") is not None
        return given

    start = time.perf_counter()
    given = await asyncio.gather(*(claimer(engine) for engine in engines for _ in range(8)))
    wall = time.perf_counter() - start
    await clear(queue)
    return sum(given) / wall


async def counting(engine: AsyncEngine) -> Cost:
    """One record more that counts."""
    queue = WorkQueue(engine)
    evaluations = 8
    await open_some(queue, evaluations, 1)
    leases = [await claim(queue, f"val-{i}") for i in range(evaluations)]
    wanted = [(lease, problem) for lease in leases if lease for problem in PROBLEMS]
    hashes = [hashlib.sha256(str(i).encode()).digest() for i in range(len(wanted))]
    async with engine.begin() as connection:
        await connection.execute(
            insert(schema.records),
            [{"record_hash": h, "schema_version": 1, "size": 1, "content": b""} for h in hashes],
        )
    work = iter(zip(wanted, hashes, strict=True))

    async def count() -> None:
        (lease, problem), digest = next(work)
        await queue.count_record(lease.run_id, lease.validator, problem, digest.hex(), NOW)

    cost = await measure(engine, len(wanted) - 1, count)
    await clear(queue)
    return cost


def engines_of(database: Database, number: int) -> list[AsyncEngine]:
    """Engines as the API's processes have them."""
    url = database.engine.url
    return [create_async_engine(url, pool_size=8, pool_pre_ping=True) for _ in range(number)]


async def run(arguments: argparse.Namespace) -> dict[str, Json]:
    """All figures."""
    given = os.environ.get("ARENA_DATABASE_URL")
    url = SecretStr(given) if given else None
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as directory:
        settings = ArenaSettings(data_dir=Path(directory), database_url=url)
        async with open_database(settings) as database:
            await database.ready()
            single, *many = engines_of(database, 5)
            polls = await polling(single)
            figures: dict[str, Json] = {
                "machine": f"{platform.machine()}, Python {platform.python_version()}",
                "load": round(os.getloadavg()[0], 1),
                "validators": arguments.validators,
                "polls": {
                    name: {
                        "here_ms": round(cost.here * 1000, 2),
                        "database_ms": round(cost.database * 1000, 2),
                        "wall_ms": round(cost.wall * 1000, 2),
                        "share": round(cost.share(arguments.validators), 4),
                    }
                    for name, cost in polls.items()
                },
                "claims_per_s": round(await claims(many, arguments.claims), 1),
            }
            cost = await counting(single)
            figures["counted_here_ms"] = round(cost.here * 1000, 2)
            figures["counted_database_ms"] = round(cost.database * 1000, 2)
            figures["counted_wall_ms"] = round(cost.wall * 1000, 2)
            for engine in (single, *many):
                await engine.dispose()
    worst = max(cost.share(arguments.validators) for cost in polls.values())
    figures["within_target"] = worst <= TARGET_SHARE
    return figures


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validators", type=int, default=200)
    parser.add_argument("--claims", type=int, default=400)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments))
    Console().print_json(json.dumps(figures))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
