"""Judge a race that is over, with nothing but its directory: what `arena race judge` does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from rich.console import Console

from arena.exceptions import OtherInputsError, RaceError
from arena.races.directory import RaceDirectory, reopen_directory
from arena.races.inputs import judge_differences
from arena.races.logs import log_to
from arena.races.race import RaceSink
from arena.races.report import report
from arena.races.running import (
    DRAIN_S,
    RaceResult,
    check_judge,
    judge_what_waits,
    uploading,
)
from arena.races.schedule import Board
from arena.races.sealing import check_chain, no_block, open_ledger
from arena.runs.judging import RunJudge
from arena.runs.opening import WorldOptions, open_judge
from arena.runs.seal import BlockRef
from arena.runs.spool import SpoolSink
from arena.settings import ArenaSettings
from scoring.types import Bucket, JsonObject


async def judge_race(
    path: Path,
    options: WorldOptions,
    settings: ArenaSettings,
    console: Console,
    block: Callable[[], BlockRef | None] = no_block,
) -> RaceResult:
    """Judge the closed runs of the race in `path` that have no verdict, and report.

    Each verdict is sealed; `block` tells the last block of the chain that is known.

    Raises OtherInputsError for another judge than the race's, and ArenaError for whatever
    keeps it from starting.
    """
    started = time.monotonic()

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    async with AsyncExitStack() as stack:
        directory = await asyncio.to_thread(reopen_directory, path)
        stack.callback(directory.close)
        stack.callback(log_to(directory.path))
        judge = await stack.enter_async_context(open_judge(options, tell))
        if judge is None:
            raise RaceError("there is no judge", remedy="name one with --judge-model")
        _check(directory, judge)
        ledger = await asyncio.to_thread(open_ledger, settings, tell, block)
        spool = SpoolSink(directory.path, ledger)
        stack.callback(spool.close)
        board = Board(
            [agent.ref.label for agent in directory.agents],
            [problem.problem_id for problem in directory.problems],
        )
        uploader = await stack.enter_async_context(uploading(directory, spool, settings, tell))
        sink = RaceSink(spool, board, uploader)
        await sink.load()
        check_judge(directory, sink, judge.conditions)
        await uploader.connect()
        await check_chain(ledger, uploader, tell)
        await judge_what_waits(judge, directory, board, sink, tell)
        await uploader.drain(DRAIN_S)
        model = cast("JsonObject", directory.inputs["model"])
        return RaceResult(
            race_id=directory.race_id,
            out=directory.path,
            agents=report(board, [Bucket(problem.bucket) for problem in directory.problems]),
            problems=len(directory.problems),
            waiting=uploader.pending,
            model=str(model["name"]),
            model_server=str(model["server"]),
            scoring=str(directory.inputs["scoring"]),
            wall_s=time.monotonic() - started,
            judge=judge.conditions,
            standin_judge=judge.is_standin,
        )


def _check(directory: RaceDirectory, judge: RunJudge) -> None:
    begun = cast("JsonObject | None", directory.inputs.get("judge"))
    if begun is not None and (found := judge_differences(begun, judge.conditions)):
        raise OtherInputsError(
            f"{directory.path} was begun with another judge: {'; '.join(found)}",
            remedy="give the same judge",
        )
