"""One claimed run from its claim to its end.

What is done is on disk before anybody hears of it, so the run may be lost, stopped or killed
at any point: claimed again, it goes on behind its last record. An agent's failures are
records; what ends a run otherwise is this validator's fault or the platform's, and is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import structlog

from arena.client.backoff import Backoff
from arena.client.exceptions import RefusedError
from arena.client.validator import Claim, TakenRecord, ValidatorClient
from arena.problems.suite import check_against
from arena.races.directory import RaceDirectory, open_directory
from arena.races.inputs import RaceInputs
from arena.races.judging import judge_backlog
from arena.races.race import Race, RaceSink
from arena.races.schedule import Board
from arena.runs.agent import AgentFile
from arena.runs.attempts import RetryPolicy
from arena.runs.ledger import Ledger
from arena.runs.opening import OpenWorld
from arena.runs.record import AgentRef, EncodedRecord
from arena.runs.spool import SpoolSink
from neurons.exceptions import ArenaError
from neurons.validating.exceptions import ChainForkedError, RunGivenUpError
from neurons.validating.fetching import fetch
from neurons.validating.heartbeat import COMPLETE, LOST, Heart
from neurons.validating.metrics import Metrics
from neurons.validating.progress import Reporter, score_of
from neurons.validating.run_logs import leave_logs
from neurons.validating.run_world import RunWorld, world_for
from neurons.validating.sending import Sender, Sent, write_sent
from neurons.validating.spending import Spending, cost_usd
from scoring.types import Problem

_log = structlog.get_logger(__name__)

JUDGE_ROUNDS: Final = 3
"""How often runs without a verdict are judged again before the run is given up."""
_GOODBYE_S: Final = 60.0
"""How long giving a run up may take; its lease then does it."""
_LAST_TRIES: Final = Backoff(first_s=2.0, longest_s=20.0, tries=4)


class Ending(StrEnum):
    """How a run in hand ended for this validator."""

    SUCCESS = "success"
    FAILED = "failed"
    LOST = "lost"
    """The arena gave it to others, or took it back; what is recorded is sent all the same."""
    RETURNED = "returned"
    KEPT = "kept"
    """Stopped, and still ours for as long as its lease lasts."""


class Stop(StrEnum):
    """How a run in hand is to be stopped."""

    RETURN = "return"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all runs of a validator share. `root` holds a directory for each evaluation."""

    client: ValidatorClient
    opened: OpenWorld
    ledger: Ledger
    heart: Heart
    spending: Spending
    metrics: Metrics
    root: Path
    policy: RetryPolicy
    workers: int
    progress_s: float = 10.0
    backoff: Backoff = field(default_factory=Backoff)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Evaluation:
    """A run in hand. `run` does it; `stop` and the arena may end it early."""

    def __init__(self, shop: Workshop, claim: Claim) -> None:
        self._shop = shop
        self.claim = claim
        self._stopped: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        self._lost: asyncio.Future[RefusedError] = asyncio.get_running_loop().create_future()
        self._completing = False
        self._log = _log.bind(
            run=str(claim.run_id), evaluation=str(claim.evaluation_id), phase=claim.phase
        )

    def stop(self, how: Stop) -> None:
        """End it soon, in this way."""
        if not self._stopped.done():
            self._stopped.set_result(how)

    async def run(self) -> Ending:
        """Do the run; how it ended.

        Raises ChainForkedError, which ends the validator. Cancelled, it kills its sandboxes
        and says nothing to anybody: what is recorded stays.
        """
        loop = asyncio.get_running_loop()
        run = self.claim.run_id

        def lost(error: RefusedError) -> None:  # from the heartbeat's thread
            loop.call_soon_threadsafe(self._lose, error)

        self._shop.heart.hold(run, lost)
        work = asyncio.create_task(self._work(), name=f"run {run}")
        try:
            ways: set[asyncio.Future[object]] = {work, self._stopped, self._lost}  # type: ignore[arg-type]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            ending = await self._ended(work)
        finally:
            await _cancelled(work)
            self._shop.heart.release(run)
        self._shop.metrics.runs.labels(ending.value).inc()
        self._log.info("run ended", ending=ending.value)
        return ending

    def _lose(self, error: RefusedError) -> None:
        if self._completing and error.error_code == COMPLETE:
            return  # a heartbeat overtook the answer to our own completion, which decides
        if not self._lost.done():
            self._lost.set_result(error)

    async def _ended(self, work: asyncio.Task[None]) -> Ending:
        if work.done():
            try:
                work.result()
            except ChainForkedError as error:
                await self._give_up(str(error))
                raise
            except RefusedError as error:
                if error.error_code in LOST:
                    return self._say_lost(error)
                return await self._give_up(str(error))
            except Exception as error:  # noqa: BLE001 - one run's failure never ends a validator
                return await self._give_up(self._reason(error))
            return Ending.SUCCESS
        await _cancelled(work)
        if self._lost.done():
            return self._say_lost(self._lost.result())
        if self._stopped.result() is Stop.KEEP:
            return Ending.KEPT
        await self._give_up("the validator goes away")
        return Ending.RETURNED

    def _say_lost(self, error: RefusedError) -> Ending:
        self._log.warning("run lost", code=error.code, error=error.message)
        return Ending.LOST

    def _reason(self, error: Exception) -> str:
        if isinstance(error, ArenaError):
            return f"{error.code}: {error.message}"
        self._log.error("a run failed unexpectedly", exc_info=error)
        return f"platform.unexpected: {type(error).__name__}"

    async def _give_up(self, reason: str) -> Ending:
        """Send what is there, and tell the arena why. What cannot be told, the lease tells."""
        self._log.error("run given up", reason=reason)
        directory = self._path
        try:
            async with asyncio.timeout(_GOODBYE_S):
                with suppress(ArenaError):
                    await Sender(self._shop.client, directory, backoff=_LAST_TRIES).send_all()
                await self._shop.client.fail(self.claim.run_id, reason, backoff=_LAST_TRIES)
        except (ArenaError, TimeoutError) as error:
            self._log.warning("giving the run up was not heard", error=str(error))
        return Ending.FAILED

    @property
    def _path(self) -> Path:
        return self._shop.root / str(self.claim.evaluation_id)

    async def _work(self) -> None:
        """All of it. Returns when the arena has the run as a success."""
        shop, claim = self._shop, self.claim
        self._log.info("run begins", agent=claim.agent_name, resumed=claim.resumed)
        source, problems = await fetch(shop.client, claim)
        async with world_for(
            shop.opened, claim, session=shop.client.session, data_dir=shop.root.parent
        ) as world:
            await asyncio.to_thread(check_against, problems, world.world.catalog)
            inputs = self._inputs(world, source, problems)
            directory = await asyncio.to_thread(
                open_directory, self._path, inputs, race_id=str(claim.evaluation_id)
            )
            spool = SpoolSink(directory.path, shop.ledger)
            try:
                await self._race(world, inputs, directory, spool)
            finally:
                await asyncio.to_thread(spool.close)
                directory.close()

    def _inputs(self, world: RunWorld, source: bytes, problems: tuple[Problem, ...]) -> RaceInputs:
        claim, version = self.claim, str(self.claim.version)
        given = world.world
        return RaceInputs(
            agents=(
                AgentFile(AgentRef(version, claim.agent_name, claim.source_hash, version), source),
            ),
            suites=(str(claim.suite),),
            problems=problems,
            catalog_hash=given.catalog.content_hash,
            catalog_engine=given.catalog.engine,
            scoring_version=given.scoring_version,
            model_server=world.model_server,
            model=given.model,
            sandbox_limits=given.sandbox_limits,
            gateway_limits=given.gateway_limits,
            judge=given.judge.conditions if given.judge else None,
        )

    async def _race(
        self, world: RunWorld, inputs: RaceInputs, directory: RaceDirectory, spool: SpoolSink
    ) -> None:
        shop, claim = self._shop, self.claim
        board = Board([str(claim.version)], [problem.problem_id for problem in inputs.problems])
        sender = Sender(
            shop.client,
            directory.path,
            claimed=str(claim.run_id),
            backoff=shop.backoff,
            told=self._taken,
            sleep=shop.sleep,
        )
        sink = _PaidSink(spool, board, sender, self._pays(world))
        await sink.load()
        if spool.torn is not None:
            self._log.warning("a killed process left a half-written record", file=str(spool.torn))
        reporter = Reporter(shop.client, claim.run_id, shop.metrics, shop.progress_s)
        race = Race(
            world=world.world,
            inputs=inputs,
            race_id=str(claim.evaluation_id),
            board=board,
            sink=sink,
            policy=shop.policy,
            workers=shop.workers,
            phase=claim.phase,
        )
        async with _beside(sender.run(), reporter.run()):
            await race.run(reporter)
            self._check_closed(board)
            await self._judge(world, board, sink, directory)
            await sender.wait_sent()
            if sender.refusal is not None:
                raise sender.refusal
            await reporter.report()
            await leave_logs(
                shop.client, claim.run_id, sink, [one for one in board.results(0) if one]
            )
        await self._complete(board, directory.path)

    def _check_closed(self, board: Board) -> None:
        left = [one for one in board.results(0) if one is None or not one.closed]
        if not left:
            return
        failures = [one.failure for one in left if one is not None and one.failure]
        why = f": {failures[0].code}, {failures[0].message}" if failures else ""
        raise RunGivenUpError(f"{len(left)} of {len(board)} problems have no outcome{why}")

    async def _judge(
        self, world: RunWorld, board: Board, sink: RaceSink, directory: RaceDirectory
    ) -> None:
        """A verdict for every run that has none yet."""
        judge = world.world.judge
        for attempt in range(1, JUDGE_ROUNDS + 1):
            waiting = board.unjudged()
            if not waiting:
                return
            if judge is None:
                raise RunGivenUpError(f"{len(waiting)} runs are unjudged: there is no judge")
            if attempt > 1:
                await self._shop.sleep(self._shop.policy.pause_after(attempt))
            self._log.info("judging again", runs=len(waiting), round=attempt)
            await judge_backlog(judge.renewed(), board, sink, directory.queries)
        if left := len(board.unjudged()):
            raise RunGivenUpError(f"{left} runs are unjudged: the judge gives no verdict")

    async def _complete(self, board: Board, path: Path) -> None:
        shop, run = self._shop, self.claim.run_id
        score, components = score_of(board)
        self._completing = True
        try:
            await shop.client.complete(run, score, components)
        except RefusedError as error:
            if error.error_code != "MISSING_SCORE":
                raise
            # What counted may have been lost with a lease: all of it once more, and again.
            self._log.warning("records are missing at the arena", detail=error.message)
            await asyncio.to_thread(write_sent, path, Sent())
            await Sender(shop.client, path, claimed=str(run)).send_all()
            await shop.client.complete(run, score, components)
        self._log.info("run completed", score=score)

    def _taken(self, taken: TakenRecord) -> None:
        self._shop.metrics.records.labels("yes" if taken.counted else taken.reason or "no").inc()

    def _pays(self, world: RunWorld) -> Callable[[EncodedRecord], None]:
        def pays(record: EncodedRecord) -> None:
            self._shop.spending.note(cost_usd(record.value, models=not world.lent))

        return pays


class _PaidSink(RaceSink):
    """A race's sink that also counts what every record has cost."""

    def __init__(
        self, spool: SpoolSink, board: Board, sender: Sender, pays: Callable[[EncodedRecord], None]
    ) -> None:
        super().__init__(spool, board, sender)
        self._pays = pays

    async def put(self, record: EncodedRecord) -> None:
        await super().put(record)
        _log.info("record kept", kind=record.kind.value, record=record.hash[:16])
        await asyncio.to_thread(self._pays, record)


@asynccontextmanager
async def _beside(*others: Awaitable[None]) -> AsyncIterator[None]:
    """Run tasks beside the body; the first that fails ends the body with its exception."""
    body = asyncio.current_task()
    assert body is not None
    failed: list[BaseException] = []

    def done(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not over:
            failed.append(task.exception())  # type: ignore[arg-type]
            body.cancel()

    over = False
    tasks = [asyncio.ensure_future(other) for other in others]
    for task in tasks:
        task.add_done_callback(done)
    try:
        yield
    except asyncio.CancelledError:
        if failed:
            body.uncancel()
            raise failed[0] from None
        raise
    finally:
        over = True
        for task in tasks:
            await _cancelled(task)


async def _cancelled(task: asyncio.Task[None]) -> None:
    """End a task and wait for it, whatever it ends with."""
    if not task.done():
        task.cancel()
    await asyncio.wait({task})
