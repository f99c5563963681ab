"""Judge what was left unjudged: closed runs of a race, from their stored traces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from arena.races.race import RaceSink, first_of
from arena.races.schedule import Board
from arena.runs.judging import RunJudge
from arena.runs.record import RunSummary


async def judge_backlog(
    judge: RunJudge, board: Board, sink: RaceSink, queries: Mapping[str, str]
) -> int:
    """Ask for a verdict on every closed run without one; how many got one.

    Each verdict is on disk before the next one of its worker is asked for. `queries` by
    problem id. Raises SpoolError when results can no longer be kept.
    """
    before = len(board.unjudged())
    waiting = iter(board.unjudged())
    try:
        async with asyncio.TaskGroup() as pool:
            for _ in range(min(judge.concurrency, before)):
                pool.create_task(_work(judge, sink, queries, waiting))
    except ExceptionGroup as group:
        raise first_of(group) from None
    return before - len(board.unjudged())


async def _work(
    judge: RunJudge, sink: RaceSink, queries: Mapping[str, str], waiting: Iterator[RunSummary]
) -> None:
    for run in waiting:
        record = await sink.read(run.run_id)
        verdict = await judge.judged_later(record, queries[run.problem_id])
        if verdict is not None:
            await sink.put(await asyncio.to_thread(verdict.encode))
