"""Runs an evaluation: every problem `samples` times, through the race's sandbox and scorer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from arena.races.race import HostHealth, first_of
from arena.runs.agent import AgentFile
from arena.runs.attempts import RetryPolicy, run_until_closed
from arena.runs.execution import World
from arena.runs.opening import OpenWorld
from arena.runs.record import EncodedRecord
from arena.runs.spool import SpoolSink
from sandbox.gateway import HttpGateway
from sandbox.models import ModelRoute
from scoring.types import Problem
from training.evaluation.directory import Inputs, begin_or_go_on
from training.evaluation.report import Report, report
from training.evaluation.results import RESULTS, ResultFile, SampleResult, latest
from training.evaluation.sampled import SampledModels, SampleSettings

PHASE = "evaluation"


@dataclass(frozen=True, slots=True)
class Job:
    """An evaluation to run. `policy` is how often a run is tried when the host fails."""

    out: Path
    label: str
    agent: AgentFile
    problems: Sequence[Problem]
    settings: SampleSettings
    policy: RetryPolicy
    workers: int
    checkpoint: str | None = None


async def evaluate(
    job: Job,
    opened: OpenWorld,
    routes: Sequence[ModelRoute],
    tell: Callable[[str], None],
    done: Callable[[SampleResult], None] = lambda _: None,
) -> Report:
    """Run what is open of the evaluation in `job.out` and report on all of it.

    `done` hears of each sample. Killed, it goes on where it stopped when called again. Raises
    OtherRunError for other inputs than those it was begun with, RaceError when the host keeps
    failing.
    """
    inputs = Inputs.of(
        job.label, job.checkpoint, job.agent, job.problems, job.settings, opened.world
    )
    evaluation, lock = begin_or_go_on(job.out, inputs)
    with lock:
        file = ResultFile(job.out / RESULTS)
        try:
            kept = latest(file.loaded)
            tasks = _open_tasks(job, kept)
            total = len(job.problems) * job.settings.samples
            if kept:
                tell(f"going on: {total - len(tasks)} of {total} samples are done")
            async with _worlds(opened.world, routes, job.settings) as worlds:
                await _run_all(job, worlds, tasks, file, done)
        finally:
            file.close()
        return report(evaluation, file_results(job.out))


def file_results(out: Path) -> tuple[SampleResult, ...]:
    """The last result of each sample in an evaluation's directory."""
    from training.evaluation.results import read_results

    return tuple(latest(read_results(out / RESULTS)).values())


Task = tuple[Problem, int]


def _open_tasks(job: Job, kept: dict[tuple[str, int], SampleResult]) -> list[Task]:
    """What has no outcome yet: all problems once, then all of them again."""
    return [
        (problem, sample)
        for sample in range(job.settings.samples)
        for problem in job.problems
        if (found := kept.get((problem.problem_id, sample))) is None or found.outcome is None
    ]


@asynccontextmanager
async def _worlds(
    world: World, routes: Sequence[ModelRoute], settings: SampleSettings
) -> AsyncIterator[list[World]]:
    """A world for each sample number; they differ in how their models sample."""
    gateways: list[HttpGateway] = []
    clients: list[SampledModels] = []
    try:
        for sample in range(settings.samples):
            clients.append(SampledModels(routes, settings, sample))
            gateways.append(
                HttpGateway(
                    world.catalog, clients[-1], limits=world.gateway_limits, search_threads=2
                )
            )
        yield [replace(world, gateway=gateway, judge=None) for gateway in gateways]
    finally:
        for gateway in gateways:
            await gateway.close()
        for client in clients:
            await client.close()


async def _run_all(
    job: Job,
    worlds: Sequence[World],
    tasks: Sequence[Task],
    file: ResultFile,
    done: Callable[[SampleResult], None],
) -> None:
    spool = SpoolSink(job.out)
    try:
        await asyncio.to_thread(lambda: sum(1 for _ in spool.load()))
        queue, health = iter(tasks), HostHealth()
        try:
            async with asyncio.TaskGroup() as pool:
                for _ in range(min(job.workers, len(tasks))):
                    pool.create_task(_work(job, worlds, queue, spool, file, health, done))
        except ExceptionGroup as group:
            raise first_of(group) from None
    finally:
        spool.close()


async def _work(
    job: Job,
    worlds: Sequence[World],
    queue: Iterator[Task],
    spool: SpoolSink,
    file: ResultFile,
    health: HostHealth,
    done: Callable[[SampleResult], None],
) -> None:
    for problem, sample in queue:
        record = await run_until_closed(
            worlds[sample],
            job.agent,
            problem,
            _Kept(spool),
            policy=job.policy,
            phase=PHASE,
        )
        result = await asyncio.to_thread(SampleResult.of, record, sample)
        # After the record: a result always has one. Killed between, the sample is run again.
        await asyncio.to_thread(file.add, result)
        done(result)
        health.watch(record)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where records go: the evaluation's own spool, which is no race's and is not sealed."""

    spool: SpoolSink

    async def put(self, record: EncodedRecord) -> None:
        """Safe on disk when this returns."""
        await self.spool.put(record)
