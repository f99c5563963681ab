"""One rollout as a whole: its session, its outcome, its record, its trajectory.

The outcome and the axis are decided from the record's own bytes, by the functions that a
race and a check of its records use.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from arena.runs.problems import problem_ref
from arena.runs.record import AgentRef, Conditions, RunRecord, Timing
from arena.runs.rescoring import as_stored, rejudge_axis, rescore
from sandbox.catalog.interface import Catalog
from sandbox.gateway.interface import GatewayLimits
from sandbox.gateway.session import Session
from sandbox.models import ModelClient
from sandbox.trace import Trace
from scoring.outcome import Outcome, scoring_pipeline_version
from scoring.titles import LexicalTitles, TitleSimilarity
from scoring.types import Json, JsonObject, Problem
from training.evaluation.observing import observe
from training.rollouts.episode import Ended, Episode, play
from training.rollouts.models import PolicyModels
from training.rollouts.segments import segments_of
from training.types import Trajectory

PHASE: Final = "rollout"
_NO_DOOR: Final = Path("/nonexistent")
"""No socket is opened: the session is asked in this process."""
UNPACED: Final = GatewayLimits(requests_per_second=1e6, burst=1_000_000)
"""The limits of a race without its pace: nobody else waits for this gateway."""


@dataclass(frozen=True, slots=True)
class RolloutWorld:
    """What rollouts need besides a model: the world of a race without its sandbox.

    `executor` runs searches and scoring.
    """

    catalog: Catalog
    titles: TitleSimilarity
    executor: Executor
    limits: GatewayLimits = field(default=UNPACED)


@dataclass(frozen=True, slots=True)
class Task:
    """One rollout to make: the `sample`-th of a problem, counted from 0."""

    problem: Problem
    sample: int
    cluster: str

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others of one collection."""
        return self.problem.problem_id, self.sample


@dataclass(frozen=True, slots=True)
class Rollout:
    """A finished rollout. Its record is that of a race's run, and can be spooled as one.

    `trajectory` has turns and segments where a policy of this process made it, and none where
    a server did, which tells no tokens.
    """

    task: Task
    trajectory: Trajectory
    record: RunRecord
    ended: Ended

    @property
    def success(self) -> bool:
        """Strict success."""
        outcome = self.trajectory.outcome
        return outcome is not None and outcome.success


async def roll_out(
    world: RolloutWorld,
    task: Task,
    models: ModelClient,
    model: str,
    agent: AgentRef,
    *,
    max_turns: int,
    params: JsonObject | None = None,
) -> Rollout:
    """Make one rollout. Raises nothing on what a model says or a server does: see `error`."""
    started_at, started = datetime.now(UTC), time.monotonic()
    session = Session(_NO_DOOR, world.catalog, models, world.limits, executor=world.executor)
    episode = await play(session, task.problem.query, model, max_turns=max_turns, params=params)
    trace = session.trace()
    record = RunRecord(
        run_id=uuid.uuid4().hex,
        race_id=None,
        phase=PHASE,
        attempt=task.sample + 1,
        agent=agent,
        problem=replace(problem_ref(task.problem), cluster=task.cluster),
        conditions=_conditions(world, trace, model),
        timing=Timing(
            started_at=started_at.isoformat(),
            finished_at=datetime.now(UTC).isoformat(),
            wall_s=time.monotonic() - started,
            excused_s=session.excused_s(),
        ),
        trace=trace.to_json(),
        dialogue=episode.dialogue,
        outcome=None,
        axis=None,
        failure=episode.failure,
    )
    if episode.failure is not None:
        return _rollout(task, record, episode, models, trace, None)
    record, outcome = await asyncio.get_running_loop().run_in_executor(
        world.executor, _scored, world, task.problem, record
    )
    return _rollout(task, record, episode, models, trace, outcome)


def _scored(world: RolloutWorld, problem: Problem, record: RunRecord) -> tuple[RunRecord, Outcome]:
    """The record with outcome and axis, decided as whoever checks it would."""
    told: Json = None if record.dialogue is None else [*record.dialogue]
    dialogue = cast("list[Json] | None", as_stored(told))
    trace = Trace.from_json(cast("JsonObject", as_stored(record.trace)))
    outcome = rescore(problem, trace, dialogue, world.catalog, world.titles, completed=True)
    axis = rejudge_axis(problem, trace, dialogue, b"")
    return replace(record, outcome=outcome.to_json(), axis=axis.to_json()), outcome


def _rollout(
    task: Task,
    record: RunRecord,
    episode: Episode,
    models: ModelClient,
    trace: Trace,
    outcome: Outcome | None,
) -> Rollout:
    turns = tuple(models.turns) if isinstance(models, PolicyModels) else ()
    segments = segments_of(turns)
    facts: JsonObject = {
        "ended": episode.ended.value,
        "sample": task.sample,
        "malformed_calls": models.malformed if isinstance(models, PolicyModels) else None,
        "segments": len(segments),
        **observe(trace).to_json(),
    }
    trajectory = Trajectory(
        problem_id=task.problem.problem_id,
        bucket=task.problem.bucket,
        cluster=task.cluster,
        turns=turns,
        segments=segments,
        messages=episode.messages,
        outcome=outcome,
        reward=None if outcome is None else float(outcome.success),
        error=episode.failure,
        facts=facts,
    )
    return Rollout(task, trajectory, record, episode.ended)


def _conditions(world: RolloutWorld, trace: Trace, model: str) -> Conditions:
    standins = {f"model:{event.model}" for event in trace.llm() if event.standin}
    if isinstance(world.titles, LexicalTitles):
        standins.add(f"title:{world.titles.name}")
    return Conditions(
        catalog_hash=world.catalog.content_hash,
        catalog_engine=world.catalog.engine,
        scoring_version=scoring_pipeline_version(world.titles),
        model=model,
        standins=tuple(sorted(standins)),
        environment={"harness": "training.rollouts"},
    )
