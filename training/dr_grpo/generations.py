"""Generations of rollouts, each made once and kept: what an update learnt from can be read.

A run that was killed finds the rollouts that its next update needs on disk, and goes on with
the very same ones. A generation that was not finished is made again, from the same weights
and the same seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import orjson
import zstandard

from scoring.exceptions import ErrorInfo
from scoring.outcome import Outcome
from scoring.types import Bucket, Json, JsonObject
from training.dr_grpo.recipe import RolloutSettings
from training.exceptions import CheckpointError
from training.files import write_file
from training.on_policy import Ground, OnPolicy, drawn
from training.rollouts import collecting
from training.rollouts.models import TurnSampling
from training.rollouts.rollout import Task
from training.rollouts.segments import segments_of
from training.types import Stop, Trajectory, Turn

AT_ONCE = 16
_SCHEMA = 1


class Generations:
    """The rollouts of a run, by the number of their generation."""

    def __init__(
        self,
        policy: OnPolicy,
        ground: Ground,
        settings: RolloutSettings,
        seed: int,
        directory: Path,
    ) -> None:
        self._policy = policy
        self._ground = ground
        self._settings = settings
        self._seed = seed
        self._directory = directory

    def __call__(self, number: int) -> list[list[Trajectory]]:
        """The groups of a generation, in the order of the updates that it serves."""
        path = self._directory / f"generation-{number:06d}.jsonl.zst"
        tasks = self.tasks(number)
        if path.exists():
            found = read_generation(path)
        else:
            settings = collecting.RolloutSettings(
                max_turns=self._settings.max_turns,
                sampling=TurnSampling(
                    self._settings.temperature, self._settings.top_p, self._settings.turn_tokens
                ),
                at_once=AT_ONCE,
                seed=self._seed,
            )
            settings = collecting.with_seed(settings, "generation", number)
            found, _ = self._policy.rollouts(self._ground, tasks, settings)
            write_generation(path, found)
        self._check(path, tasks, found)
        size = self._settings.group
        return [found[at : at + size] for at in range(0, len(found), size)]

    def tasks(self, number: int) -> list[Task]:
        """What a generation is made of: a group for each of its problems."""
        settings, problems = self._settings, self._ground.problems
        count = settings.problems * settings.refresh_every
        asked: Counter[str] = Counter()
        tasks = []
        for index in drawn(len(problems), number * count, count, self._seed):
            problem = problems[index]
            first = asked[problem.problem_id] * settings.group
            asked[problem.problem_id] += 1
            tasks += [self._ground.task(problem, first + k) for k in range(settings.group)]
        return tasks

    def _check(self, path: Path, tasks: Sequence[Task], found: Sequence[Trajectory]) -> None:
        if [t.problem.problem_id for t in tasks] != [one.problem_id for one in found]:
            raise CheckpointError(
                f"{path} holds rollouts of other problems than this run asks for",
                remedy=f"remove {path}: it is made again",
            )


def write_generation(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write rollouts, a line each, whole or not at all. Raises DiskFullError."""
    content = b"".join(orjson.dumps(trajectory_json(one)) + b"\n" for one in trajectories)
    packed = zstandard.ZstdCompressor(level=6, write_checksum=True).compress(content)
    write_file(path, packed)


def read_generation(path: Path) -> list[Trajectory]:
    """Read what `write_generation` wrote. Raises CheckpointError."""
    try:
        lines = zstandard.decompress(path.read_bytes()).splitlines()
        return [trajectory_of(orjson.loads(line)) for line in lines]
    except (OSError, zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} cannot be read: {' '.join(str(error).split())[:200]}",
            remedy=f"remove {path}: it is made again",
        ) from error


def trajectory_json(one: Trajectory) -> JsonObject:
    """A rollout as a line. Its segments follow from its turns and are left out."""
    turns: list[Json] = [
        {
            "prompt_ids": list(turn.prompt_ids),
            "completion_ids": list(turn.completion_ids),
            "logprobs": list(turn.logprobs),
            "stop": turn.stop.value,
        }
        for turn in one.turns
    ]
    return {
        "schema": _SCHEMA,
        "problem_id": one.problem_id,
        "bucket": one.bucket.value,
        "cluster": one.cluster,
        "turns": turns,
        "messages": list(one.messages),
        "outcome": one.outcome.to_json() if one.outcome else None,
        "reward": one.reward,
        "error": cast("JsonObject", one.error.to_json()) if one.error else None,
        "facts": one.facts,
    }


def trajectory_of(value: JsonObject) -> Trajectory:
    """Read what `trajectory_json` wrote. Raises ValueError, KeyError or TypeError."""
    if value["schema"] != _SCHEMA:
        raise ValueError(f"schema {value['schema']!r}, expected {_SCHEMA}")
    turns = tuple(_turn(turn) for turn in cast("list[JsonObject]", value["turns"]))
    outcome = cast("JsonObject | None", value["outcome"])
    error = cast("dict[str, str] | None", value["error"])
    return Trajectory(
        problem_id=cast("str", value["problem_id"]),
        bucket=Bucket(cast("str", value["bucket"])),
        cluster=cast("str", value["cluster"]),
        turns=turns,
        segments=segments_of(turns),
        messages=tuple(cast("list[JsonObject]", value["messages"])),
        outcome=Outcome.from_json(outcome) if outcome else None,
        reward=cast("float | None", value["reward"]),
        error=ErrorInfo.from_json(error) if error else None,
        facts=cast("JsonObject", value["facts"]),
    )


def _turn(value: JsonObject) -> Turn:
    return Turn(
        tuple(cast("list[int]", value["prompt_ids"])),
        tuple(cast("list[int]", value["completion_ids"])),
        tuple(cast("list[float]", value["logprobs"])),
        Stop(cast("str", value["stop"])),
    )
