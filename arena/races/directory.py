"""A race's directory: what it was begun with, and its results.

`race.json` is written once, whole, before the first run, and the agents' files before it;
it also holds the queries, which no record does and a judge has to know. So a race can be
judged with nothing but its directory. `problems.jsonl.zst` holds the problems with their
rewards, which the database is given so that outcomes can be recomputed from it: keep the
directory from those who race. The spool beside it grows. A
lock that the kernel drops with its process keeps two processes out of one race.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast

import zstandard

from arena.exceptions import OtherInputsError, RaceError
from arena.races.inputs import RaceInputs, differences, fingerprint
from arena.records.store import RaceEntry
from arena.runs.agent import AgentFile
from arena.runs.canonical import canonical
from arena.runs.problems import problem_content
from arena.runs.record import AgentRef, ProblemRef
from arena.runs.spool import FILE_NAME
from scoring.types import Json, JsonObject, Problem

MANIFEST = "race.json"
LOCK = ".lock"
SOURCES = "agents"
PROBLEMS = "problems.jsonl.zst"


@dataclass(frozen=True, slots=True)
class RaceDirectory:
    """An open race directory. `resumed` says that it was begun before."""

    path: Path
    race_id: str
    created_at: datetime
    inputs: JsonObject
    agents: tuple[AgentFile, ...]
    problems: tuple[ProblemRef, ...]
    queries: dict[str, str]
    """By problem id."""
    resumed: bool
    _lock: IO[bytes]

    def close(self) -> None:
        """Let another process in."""
        self._lock.close()

    def entry(self) -> RaceEntry:
        """The race as the database stores it."""
        return RaceEntry(
            race_id=self.race_id,
            phase="race",
            created_at=self.created_at,
            fingerprint=fingerprint(self.inputs),
            inputs=self.inputs,
            agents=tuple((agent.ref, agent.source) for agent in self.agents),
            problems=self.problems,
            contents=_read_problems(self.path / PROBLEMS),
        )


def fresh_name(now: datetime) -> str:
    """An id for a race: its time, and what tells two of one second apart."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def open_directory(path: Path, inputs: RaceInputs, *, race_id: str | None = None) -> RaceDirectory:
    """Begin a race in `path`, or go on with the one begun there.

    `race_id` names a race that begins; by default a fresh name is made.

    Raises OtherInputsError naming what differs, and RaceError when the directory holds
    something else or another process races in it.
    """
    if path.exists() and not path.is_dir():
        raise RaceError(f"{path} is a file", remedy="give --out a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
        try:
            return _begin_or_go_on(path, inputs, lock, race_id)
        except BaseException:
            lock.close()
            raise
    except OSError as error:
        raise RaceError(f"{path}: {error.strerror}") from error


def _begin_or_go_on(
    path: Path, inputs: RaceInputs, lock: IO[bytes], race_id: str | None
) -> RaceDirectory:
    now = inputs.to_json()
    manifest = path / MANIFEST
    if not manifest.exists():
        strangers = {p.name for p in path.iterdir()} - {LOCK, SOURCES, PROBLEMS, MANIFEST + ".new"}
        if strangers:
            raise RaceError(
                f"{path} is no race's directory and is not empty (it has {min(strangers)})",
                remedy="give --out a new directory",
            )
        created = datetime.now(UTC)
        race_id = race_id or fresh_name(created)
        _write_sources(path / SOURCES, inputs.agents)
        _write_problems(path / PROBLEMS, inputs.problems)
        problems: list[Json] = [
            {**_fields(ref), "query": problem.query}
            for ref, problem in zip(inputs.problem_refs(), inputs.problems, strict=True)
        ]
        stamp: JsonObject = {"race_id": race_id, "created_at": created.isoformat()}
        _write(manifest, {**stamp, "inputs": now, "problems": problems})
        return _read(path, lock, resumed=False)
    directory = _read(path, lock, resumed=True)
    if found := differences(directory.inputs, now):
        raise OtherInputsError(
            f"{path} was begun with other inputs: {'; '.join(found)}",
            remedy="give the same inputs, or --out a new directory",
        )
    return directory


def reopen_directory(path: Path) -> RaceDirectory:
    """The race that was begun in `path`, with the inputs it was begun with.

    Raises RaceError when there is none or another process races in it.
    """
    if not (path / MANIFEST).is_file():
        raise RaceError(f"{path} is no race's directory", remedy="give the --out of a race")
    lock = _lock(path)
    try:
        return _read(path, lock, resumed=True)
    except BaseException:
        lock.close()
        raise


def _lock(path: Path) -> IO[bytes]:
    file = (path / LOCK).open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RaceError(
            f"another process races in {path}", remedy="wait for it, or give another --out"
        ) from None
    return file


def _write(target: Path, value: JsonObject) -> None:
    """Whole or not at all, whenever the process or the machine dies."""
    new = target.with_name(target.name + ".new")
    with new.open("wb") as file:
        file.write(canonical(value) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(target)
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_sources(directory: Path, agents: Sequence[AgentFile]) -> None:
    """Every agent's file by its hash; on disk before anything says that the race began."""
    directory.mkdir(exist_ok=True)
    for agent in agents:
        with (directory / f"{agent.ref.source_hash}.py").open("wb") as file:
            file.write(agent.source)
            file.flush()
            os.fsync(file.fileno())


def _write_problems(target: Path, problems: Sequence[Problem]) -> None:
    """Every problem with its reward, for this validator alone to read."""
    content = b"".join(problem_content(problem) + b"\n" for problem in problems)
    with open(target, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(zstandard.ZstdCompressor(level=9, write_checksum=True).compress(content))
        file.flush()
        os.fsync(file.fileno())


def _read_problems(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Problem id and content of each; none in a race from before they were kept."""
    if not path.exists():
        return ()
    try:
        lines = zstandard.decompress(path.read_bytes()).split(b"\n")[:-1]
        return tuple((str(json.loads(line)["problem_id"]), line) for line in lines)
    except (OSError, zstandard.ZstdError, ValueError, KeyError) as error:
        raise RaceError(f"{path} cannot be read", remedy="give --out a new directory") from error


def _read(path: Path, lock: IO[bytes], *, resumed: bool) -> RaceDirectory:
    try:
        value = json.loads((path / MANIFEST).read_bytes())
        inputs = cast("JsonObject", value["inputs"])
        agents = cast("list[dict[str, str]]", inputs["agents"])
        problems = cast("list[dict[str, str]]", value["problems"])
        return RaceDirectory(
            path=path,
            race_id=str(value["race_id"]),
            created_at=datetime.fromisoformat(value["created_at"]),
            inputs=inputs,
            agents=tuple(
                AgentFile(
                    AgentRef(agent["label"], agent["name"], agent["source"]),
                    (path / SOURCES / f"{agent['source']}.py").read_bytes(),
                )
                for agent in agents
            ),
            problems=tuple(
                ProblemRef(**{name: p[name] for name in _PROBLEM_FIELDS}) for p in problems
            ),
            queries={p["problem_id"]: p["query"] for p in problems},
            resumed=resumed,
            _lock=lock,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RaceError(
            f"{path / MANIFEST} cannot be read; the results are in {FILE_NAME} beside it",
            remedy="give --out a new directory",
        ) from error


_PROBLEM_FIELDS = ("problem_id", "bucket", "cluster", "pool")


def _fields(ref: ProblemRef) -> JsonObject:
    return {name: getattr(ref, name) for name in _PROBLEM_FIELDS}
