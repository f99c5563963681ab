"""What an evaluation is run on: the agent's file and the problems with their rewards.

An evaluation is a race of the record tables with one agent: its id is the evaluation's, its
agent's label the version id. Whoever opens an evaluation registers it here first; a
validator that holds a lease on it reads its problems from here and nowhere else, and its
records are held against these hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import zstandard
from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db import schema
from arena.exceptions import DatabaseError
from arena.races.inputs import fingerprint
from arena.records.store import RaceEntry, RecordStore
from arena.runs.problems import problem_content, problem_ref
from arena.runs.record import AgentRef
from arena.work.opening import checked
from arena.work.queue import WorkQueue
from arena.work.types import Evaluation, EvaluationKind
from scoring.types import JsonObject, Problem

INPUTS_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class EvaluationInputs:
    """The hashes that records of an evaluation are held against. `suite` is the number that
    the SDK's models want of a set of problems."""

    evaluation_id: UUID
    name: str
    """The agent's, as its miner gave it: hostile text."""
    source_hash: str
    suite: int
    problems: dict[str, str]
    """Problem id → SHA-256 of its content, in the order of the draw."""


class InputStore:
    """Inputs of evaluations. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._records = RecordStore(engine)

    async def register(
        self,
        evaluation: Evaluation,
        *,
        name: str,
        source: bytes,
        source_hash: str,
        problems: Sequence[Problem],
        suite: int,
        at: datetime,
    ) -> None:
        """Store what an evaluation is run on, before it is opened. Again is fine.

        Raises DatabaseError when its id stands for other inputs, ValueError when the problems
        are not the evaluation's.
        """
        if tuple(problem.problem_id for problem in problems) != evaluation.problems:
            raise ValueError("these are not the problems of the evaluation")
        label = str(evaluation.version)
        refs = tuple(problem_ref(problem) for problem in problems)
        inputs: JsonObject = {
            "schema": INPUTS_SCHEMA,
            "kind": "evaluation",
            "agents": [{"label": label, "name": name, "source": source_hash}],
            "suite": suite,
            "problems": [[ref.problem_id, ref.content_hash] for ref in refs],
        }
        await self._records.register(
            RaceEntry(
                race_id=str(evaluation.evaluation_id),
                phase=evaluation.kind.value,
                created_at=at,
                fingerprint=fingerprint(inputs),
                inputs=inputs,
                agents=((AgentRef(label, name, source_hash, version=label), source),),
                problems=refs,
                contents=tuple((p.problem_id, problem_content(p)) for p in problems),
            )
        )

    async def inputs(self, evaluation_id: UUID) -> EvaluationInputs:
        """The inputs of an evaluation. Raises DatabaseError when it was not registered."""
        query = select(schema.races.c.inputs).where(schema.races.c.race_id == str(evaluation_id))
        async with self._engine.connect() as connection:
            found = cast("dict[str, Any] | None", await connection.scalar(query))
        if found is None or found.get("kind") != "evaluation":
            raise DatabaseError(f"evaluation {evaluation_id} has no inputs")
        return EvaluationInputs(
            evaluation_id,
            str(found["agents"][0]["name"]),
            str(found["agents"][0]["source"]),
            int(found["suite"]),
            {str(problem_id): str(content) for problem_id, content in found["problems"]},
        )

    async def source(self, source_hash: str) -> bytes | None:
        """An agent's file; None when it is not stored."""
        table = schema.agent_sources.c
        query = select(table.source).where(table.source_hash == bytes.fromhex(source_hash))
        async with self._engine.connect() as connection:
            packed = await connection.scalar(query)
        return None if packed is None else zstandard.decompress(packed)

    async def problems(self, inputs: EvaluationInputs) -> list[tuple[str, JsonObject]]:
        """The problems with their rewards, in order. Raises DatabaseError when one is not
        stored."""
        table = schema.problem_contents.c
        wanted = [(p, bytes.fromhex(content)) for p, content in inputs.problems.items()]
        query = select(table.problem_id, table.content).where(
            tuple_(table.problem_id, table.content_hash).in_(wanted)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        found = {row.problem_id: row.content for row in rows}
        if missing := [p for p in inputs.problems if p not in found]:
            raise DatabaseError(f"problem {missing[0]} of {inputs.evaluation_id} is not stored")
        return [(p, json.loads(zstandard.decompress(found[p]))) for p in inputs.problems]


async def open_evaluation(
    queue: WorkQueue,
    inputs: InputStore,
    version: UUID,
    kind: EvaluationKind,
    season_race: str | None,
    *,
    name: str,
    source: bytes,
    problems: Sequence[Problem],
    suite: int,
    needed: int,
    at: datetime,
) -> Evaluation:
    """Want `needed` validators for an agent version on these problems; again is fine.

    What it is run on is stored first: whoever claims it finds it. Raises as
    `WorkQueue.open_evaluation` and `InputStore.register`.
    """
    ids = [problem.problem_id for problem in problems]
    wanted = checked(version, kind, season_race, ids, needed)
    await inputs.register(
        wanted,
        name=name,
        source=source,
        source_hash=hashlib.sha256(source).hexdigest(),
        problems=problems,
        suite=suite,
        at=at,
    )
    return await queue.open_evaluation(version, kind, season_race, ids, needed, at)
