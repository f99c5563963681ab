"""An evaluation's directory: what it was begun with, its results and its records.

`evaluation.json` is written once, before the first run. Going on needs the same inputs: a
rate over two models, or two sets of problems, would be a rate of neither.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from arena.races.inputs import content_hash
from arena.runs.agent import AgentFile
from arena.runs.canonical import canonical, ijson
from arena.runs.execution import World
from scoring.types import Bucket, JsonObject, Problem
from training.evaluation.sampled import SampleSettings
from training.exceptions import EvaluationError, OtherRunError
from training.files import partial_of, write_file

MANIFEST = "evaluation.json"
_LOCK = ".lock"
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that decides the results of an evaluation.

    `label` is what tables call it; it decides nothing. `checkpoint` is the hash of a local
    model's files, None for a server's.
    """

    label: str
    model: str
    checkpoint: str | None
    agent: AgentFile
    problems: tuple[Problem, ...]
    settings: SampleSettings
    catalog_hash: str
    catalog_engine: str
    scoring: str

    @classmethod
    def of(
        cls,
        label: str,
        checkpoint: str | None,
        agent: AgentFile,
        problems: Sequence[Problem],
        settings: SampleSettings,
        world: World,
    ) -> Inputs:
        """The inputs of an evaluation in this world."""
        return cls(
            label=label,
            model=world.model,
            checkpoint=checkpoint,
            agent=agent,
            problems=tuple(problems),
            settings=settings,
            catalog_hash=world.catalog.content_hash,
            catalog_engine=world.catalog.engine,
            scoring=world.scoring_version,
        )

    def to_json(self) -> JsonObject:
        """What is written and compared."""
        return {
            "schema": _SCHEMA,
            "label": self.label,
            "model": self.model,
            "checkpoint": self.checkpoint,
            "agent": {"name": self.agent.ref.name, "source": self.agent.ref.source_hash},
            "problems": {
                "content": content_hash(self.problems),
                "ids": [p.problem_id for p in self.problems],
                "buckets": [p.bucket.value for p in self.problems],
            },
            "sampling": self.settings.to_json(),
            "catalogue": {"content": self.catalog_hash, "engine": self.catalog_engine},
            "scoring": self.scoring,
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation that was begun: what a report needs besides the results."""

    label: str
    model: str
    samples: int
    problems: tuple[tuple[str, Bucket], ...]
    """Ids and buckets, in order: the denominator."""
    inputs: JsonObject


def read_evaluation(path: Path) -> Evaluation:
    """What the evaluation in directory `path` was begun with. Raises EvaluationError."""
    try:
        value = json.loads((path / MANIFEST).read_bytes())
        problems = value["problems"]
        return Evaluation(
            label=str(value["label"]),
            model=str(value["model"]),
            samples=int(value["sampling"]["samples"]),
            problems=tuple(
                (str(name), Bucket(bucket))
                for name, bucket in zip(problems["ids"], problems["buckets"], strict=True)
            ),
            inputs=cast("JsonObject", value),
        )
    except OSError as error:
        raise EvaluationError(
            f"{path} holds no evaluation: {error.strerror}",
            remedy="give the --out of an `arena eval`",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path / MANIFEST} cannot be read") from error


def begin_or_go_on(path: Path, inputs: Inputs) -> tuple[Evaluation, IO[bytes]]:
    """Begin an evaluation in `path`, or go on with the one begun there; it and its lock.

    Raises OtherRunError naming what differs, EvaluationError when the directory holds
    something else or another process evaluates in it, and what `write_file` does.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
    except OSError as error:
        raise EvaluationError(f"{path}: {error.strerror}") from error
    try:
        now = inputs.to_json()
        if (path / MANIFEST).exists():
            _refuse_others(path, now)
        else:
            _refuse_strangers(path)
            write_file(path / MANIFEST, canonical(now) + b"\n")
        return read_evaluation(path), lock
    except BaseException:
        lock.close()
        raise


def _refuse_strangers(path: Path) -> None:
    strangers = {entry.name for entry in path.iterdir()} - {_LOCK, partial_of(path / MANIFEST).name}
    if strangers:
        raise EvaluationError(
            f"{path} is no evaluation's directory and is not empty (it has {min(strangers)})",
            remedy="give --out a new directory",
        )


def _refuse_others(path: Path, now: JsonObject) -> None:
    begun, current = dict(read_evaluation(path).inputs), cast("JsonObject", ijson(now))
    begun["label"] = current["label"]
    differing = sorted(name for name in {*begun, *current} if begun.get(name) != current.get(name))
    if differing:
        raise OtherRunError(
            f"{path} was begun with another {', '.join(map(_named, differing))}",
            remedy="give the same inputs, or --out a new directory",
        )


def _named(key: str) -> str:
    return {"problems": "set of problems", "checkpoint": "checkpoint's content"}.get(key, key)


def _lock(path: Path) -> IO[bytes]:
    file = (path / _LOCK).open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise EvaluationError(
            f"another process evaluates in {path}", remedy="wait for it, or give another --out"
        ) from None
    return file
