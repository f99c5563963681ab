"""A directory of rollouts that survives kill -9: what is done is kept, the rest is made.

Records lie in a spool, as a race's do; `run.json` says what was begun, and going on needs
the same. Failed rollouts are kept as well, and made again.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from arena.runs.record import AgentRef, EncodedRecord
from arena.runs.spool import SpoolSink
from scoring.types import Json, JsonObject
from training.exceptions import OtherRunError
from training.files import disk, read_json_file, write_json_file
from training.rollouts.collecting import (
    Asking,
    RolloutCounts,
    RolloutSettings,
    collect,
)
from training.rollouts.rollout import Rollout, RolloutWorld, Task

IDENTITY = "run.json"
_SCHEMA = "rollouts-1"


@dataclass(frozen=True, slots=True)
class Collection:
    """What is to be collected, into which directory. `facts` tell it from any other."""

    out: Path
    tasks: Sequence[Task]
    model: str
    agent: AgentRef
    settings: RolloutSettings
    facts: JsonObject


async def keep_rollouts(
    collection: Collection,
    world: RolloutWorld,
    asking: Asking,
    done: Callable[[Rollout], None] = lambda _: None,
) -> tuple[list[EncodedRecord], RolloutCounts]:
    """Make what is missing; the closed records of all tasks, in their order.

    The counts are of what this call made. Raises OtherRunError for a directory of other
    rollouts, RolloutError when the model cannot go on.
    """
    with _locked(collection.out):
        _claim(collection)
        spool = SpoolSink(collection.out)
        try:
            found = await asyncio.to_thread(_loaded, spool)

            async def keep(rollout: Rollout) -> None:
                record = await asyncio.to_thread(rollout.record.encode)
                await spool.put(record)
                if rollout.record.closed:
                    found[rollout.task.key] = record
                done(rollout)

            missing = [task for task in collection.tasks if task.key not in found]
            counts = await collect(
                world, missing, asking, collection.model, collection.agent,
                collection.settings, keep,
            )  # fmt: skip
        finally:
            spool.close()
    return [found[task.key] for task in collection.tasks if task.key in found], counts


def _loaded(spool: SpoolSink) -> dict[tuple[str, int], EncodedRecord]:
    """The closed records in a spool, by problem and sample."""
    found: dict[tuple[str, int], EncodedRecord] = {}
    for _, spooled in spool.load():
        record = spooled.record
        value = record.value
        if value["closed"]:
            problem = cast("JsonObject", value["problem"])
            key = (cast("str", problem["problem_id"]), cast("int", value["attempt"]) - 1)
            found[key] = record
    return found


def _claim(collection: Collection) -> None:
    told: list[Json] = [
        [task.problem.problem_id, task.sample, task.cluster] for task in collection.tasks
    ]
    said: JsonObject = {"schema": _SCHEMA, "tasks": told, **collection.facts}
    path = collection.out / IDENTITY
    if not path.exists():
        write_json_file(path, said)
        return
    there = read_json_file(path)
    for key in sorted({*there, *said}):
        if there.get(key) != said.get(key):
            raise OtherRunError(
                f"{collection.out} holds rollouts with another {key}",
                remedy="choose another --out",
            )


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One process at a time. Raises OtherRunError while another one is at it."""
    with disk(directory):
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("ab")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OtherRunError(
                f"another process collects into {directory}", remedy="wait for it"
            ) from None
        yield
