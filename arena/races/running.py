"""A race from its options to its report: open the world, go on with the race, close.

What `arena race run` does, as a function: the demonstration runs the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from arena.db.engine import open_database
from arena.exceptions import OtherInputsError, RaceError
from arena.problems.suite import check_against, load_suite
from arena.races.directory import RaceDirectory, fresh_name, open_directory
from arena.races.inputs import RaceInputs, draw, judge_differences
from arena.races.judging import judge_backlog
from arena.races.logs import log_to
from arena.races.progress import show_progress
from arena.races.race import Race, RaceSink
from arena.races.report import AgentReport, report
from arena.races.schedule import Board
from arena.races.sealing import check_chain, no_block, open_ledger
from arena.records.upload import Uploader
from arena.runs.agent import AgentFile, read_agents
from arena.runs.attempts import RetryPolicy
from arena.runs.judging import RunJudge
from arena.runs.opening import OpenWorld, WorldOptions, open_world
from arena.runs.seal import BlockRef
from arena.runs.spool import SpoolSink
from arena.settings import ArenaSettings
from sandbox.isolation import workers_that_fit
from scoring.types import Json, JsonObject, Problem

DRAIN_S = 30.0
"""How long a race that is over waits for the database to take the last results."""
_DRAIN_INTERRUPTED_S = 3.0


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """What a person asked for. `limit` takes the first so many problems of each suite."""

    agents: Sequence[str]
    suites: Sequence[Path]
    world: WorldOptions
    shipped: Mapping[str, Path] = field(default_factory=dict)
    workers: int | None = None
    limit: int | None = None
    out: Path | None = None
    block: Callable[[], BlockRef | None] = no_block
    """The last block of the chain that is known; seals name it."""


@dataclass(frozen=True, slots=True)
class RaceResult:
    """What came of a race, or of as much of it as was run."""

    race_id: str
    out: Path
    agents: tuple[AgentReport, ...]
    problems: int
    waiting: int
    """Records that are on disk and not in the database."""
    model: str
    model_server: str
    scoring: str
    wall_s: float
    stopped: RaceError | None = None
    """Why it was given up, if it was."""
    judge: JsonObject | None = None
    """What decided the verdicts besides the traces; None when nobody judged."""
    standin_judge: bool = False

    @property
    def unjudged(self) -> int:
        """Closed runs without a verdict, over all agents."""
        return sum(agent.unjudged for agent in self.agents)

    @property
    def open(self) -> int:
        """Runs without an outcome, over all agents."""
        return sum(agent.open for agent in self.agents)

    @property
    def complete(self) -> bool:
        """Every problem of every agent has an outcome."""
        return self.open == 0

    def to_json(self) -> JsonObject:
        """The object of `--json`. Rates are 0 to 1, None while they are incomplete."""
        agents: list[Json] = [agent.to_json() for agent in self.agents]
        return {
            "agents": agents,
            "race_id": self.race_id,
            "out": str(self.out),
            "complete": self.complete,
            "problems": self.problems,
            "model": self.model,
            "model_server": self.model_server,
            "scoring": self.scoring,
            "judge": self.judge,
            "standin_judge": self.standin_judge,
            "not_in_database": self.waiting,
            "wall_s": round(self.wall_s, 3),
        }


async def run_race(options: RaceOptions, settings: ArenaSettings, console: Console) -> RaceResult:
    """Run a race, or go on with the one in `options.out`, and report.

    Cancelled, it kills and removes what runs, keeps what is finished, and says how to
    go on. Raises ArenaError for whatever keeps it from starting.
    """
    started = time.monotonic()

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=not console.is_terminal)

    async with AsyncExitStack() as stack:
        agents = read_agents(options.agents, options.shipped)
        problems = draw([load_suite(path) for path in options.suites], options.limit)
        opened = await stack.enter_async_context(open_world(options.world, tell))
        check_against(problems, opened.world.catalog)
        inputs = _inputs(options, agents, problems, opened)
        directory = _directory(options, settings, inputs)
        stack.callback(directory.close)
        stack.callback(log_to(directory.path))
        board = Board(
            [agent.ref.label for agent in agents], [problem.problem_id for problem in problems]
        )
        ledger = await asyncio.to_thread(open_ledger, settings, tell, options.block)
        spool = SpoolSink(directory.path, ledger)
        stack.callback(spool.close)
        uploader = await stack.enter_async_context(uploading(directory, spool, settings, tell))
        sink = RaceSink(spool, board, uploader)
        await sink.load()
        check_judge(directory, sink, inputs.judge)
        await uploader.connect()
        await check_chain(ledger, uploader, tell)
        workers = options.workers or workers_that_fit(options.world.sandbox_limits)
        _announce(tell, directory, spool, board, workers, opened)
        race = Race(
            world=opened.world,
            inputs=inputs,
            race_id=directory.race_id,
            board=board,
            sink=sink,
            policy=RetryPolicy(settings.attempts, settings.retry_seconds),
            workers=workers,
        )
        if opened.world.judge is not None:
            await judge_what_waits(opened.world.judge, directory, board, sink, tell)
        stopped = await _go(race, directory, uploader, console, tell)
        return RaceResult(
            race_id=directory.race_id,
            out=directory.path,
            agents=report(board, [problem.bucket for problem in problems]),
            problems=len(problems),
            waiting=uploader.pending,
            model=opened.world.model,
            model_server=opened.model_server,
            scoring=opened.world.scoring_version,
            wall_s=time.monotonic() - started,
            stopped=stopped,
            judge=inputs.judge or sink.judge,
            standin_judge=bool(opened.world.judge and opened.world.judge.is_standin),
        )


async def judge_what_waits(
    judge: RunJudge,
    directory: RaceDirectory,
    board: Board,
    sink: RaceSink,
    tell: Callable[[str], None],
) -> None:
    """Judge the closed runs that have no verdict, and tell how it went."""
    waiting = len(board.unjudged())
    if waiting:
        tell(f"{_runs(waiting)} unjudged: {judge.name} is asked now")
        done = await judge_backlog(judge, board, sink, directory.queries)
        tell(f"{_runs(done)} judged now, {waiting - done} still unjudged")


def _runs(number: int) -> str:
    return f"{number} run is" if number == 1 else f"{number} runs are"


def check_judge(directory: RaceDirectory, sink: RaceSink, judge: JsonObject | None) -> None:
    """Verdicts of two judges cannot stand in one table. Raises OtherInputsError."""
    if judge is None or sink.judge is None:
        return
    if found := judge_differences(sink.judge, judge):
        raise OtherInputsError(
            f"{directory.path} was judged by another judge: {'; '.join(found)}",
            remedy="give the same judge",
        )


async def _go(
    race: Race,
    directory: RaceDirectory,
    uploader: Uploader,
    console: Console,
    tell: Callable[[str], None],
) -> RaceError | None:
    """Race, then give the database time to take the rest. Returns why it was given up."""
    stopped: RaceError | None = None
    try:
        with show_progress(race.board, console) as progress:
            await race.run(progress)
    except RaceError as error:
        stopped = error
    except asyncio.CancelledError:
        await uploader.drain(_DRAIN_INTERRUPTED_S)
        tell(
            f"interrupted: {race.board.closed} of {len(race.board)} runs are finished and kept;"
            f" go on with the same command and --out {directory.path}"
        )
        raise
    await uploader.drain(DRAIN_S)
    return stopped


@asynccontextmanager
async def uploading(
    directory: RaceDirectory,
    spool: SpoolSink,
    settings: ArenaSettings,
    tell: Callable[[str], None],
) -> AsyncIterator[Uploader]:
    """An uploader that carries records over while the context lasts."""
    async with open_database(settings) as database:
        uploader = Uploader(database, spool, directory.entry(), tell)
        task = asyncio.create_task(uploader.run())
        try:
            yield uploader
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _inputs(
    options: RaceOptions,
    agents: tuple[AgentFile, ...],
    problems: tuple[Problem, ...],
    opened: OpenWorld,
) -> RaceInputs:
    world = opened.world
    return RaceInputs(
        agents=agents,
        suites=tuple(path.name for path in options.suites),
        problems=problems,
        catalog_hash=world.catalog.content_hash,
        catalog_engine=world.catalog.engine,
        scoring_version=world.scoring_version,
        model_server=opened.model_server,
        model=world.model,
        sandbox_limits=world.sandbox_limits,
        gateway_limits=world.gateway_limits,
        judge=world.judge.conditions if world.judge else None,
    )


def _directory(options: RaceOptions, settings: ArenaSettings, inputs: RaceInputs) -> RaceDirectory:
    if options.out is not None:
        return open_directory(options.out, inputs)
    name = fresh_name(datetime.now(UTC))
    return open_directory(settings.data_dir / "races" / name, inputs, race_id=name)


def _announce(
    tell: Callable[[str], None],
    directory: RaceDirectory,
    spool: SpoolSink,
    board: Board,
    workers: int,
    opened: OpenWorld,
) -> None:
    if spool.torn is not None:
        tell(
            f"a killed process left a half-written result; it is in {spool.torn} and its run"
            " is made again"
        )
    if directory.resumed:
        tell(
            f"going on with race {directory.race_id}: {board.closed} of {len(board)} runs are done"
        )
    tell(
        f"race {directory.race_id}: {_count(board.agents, 'agent')},"
        f" {_count(board.problems, 'problem')},"
        f" {workers} at once under {opened.world.isolation.name}; results in {directory.path}"
    )


def _count(things: Sequence[str], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
