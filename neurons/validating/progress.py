"""How far a run is, told to the arena now and then, for pages."""

from __future__ import annotations

import asyncio
from uuid import UUID

import structlog
from oro_sdk.models import ProblemProgressUpdate, ProblemStatus

from arena.client.exceptions import ArenaApiError
from arena.client.validator import ValidatorClient, update
from arena.races.schedule import Board
from arena.runs.record import RunSummary
from neurons.validating.metrics import Metrics
from sandbox.isolation.interface import AGENT_TIMEOUT
from scoring.types import JsonObject

_log = structlog.get_logger(__name__)


class Reporter:
    """Hears of finished problems and tells the arena, many at once. Implements RaceProgress."""

    def __init__(
        self,
        client: ValidatorClient,
        run: UUID,
        metrics: Metrics,
        every_s: float,
    ) -> None:
        self._client = client
        self._run = run
        self._metrics = metrics
        self._every_s = every_s
        self._news: dict[str, ProblemProgressUpdate] = {}

    def done(self, summary: RunSummary) -> None:
        """A problem is closed, or left open."""
        self._metrics.problems.labels(_outcome(summary)).inc()
        self._metrics.seconds.observe(summary.wall_s)
        score = summary.final_score
        self._news[summary.problem_id] = update(summary.problem_id, _status(summary), score)
        _log.info(
            "problem done",
            run=str(self._run),
            problem=summary.problem_id,
            outcome=_outcome(summary),
            score=score,
            seconds=round(summary.wall_s, 1),
        )

    async def run(self) -> None:
        """Tell the arena again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.report()

    async def report(self) -> None:
        """Tell it now; what is not heard is told the next time. Raises nothing."""
        if not self._news:
            return
        told, self._news = self._news, {}
        try:
            await self._client.progress(self._run, list(told.values()))
        except ArenaApiError as error:
            _log.debug("progress is not heard", run=str(self._run), code=error.code)
            self._news = told | self._news


def score_of(board: Board) -> tuple[float, JsonObject]:
    """The mean of success times coefficient over all problems of the board's one agent, and
    what it is made of."""
    results = [one for one in board.results(0) if one is not None]
    count = len(board.problems)
    score = sum(one.final_score or 0.0 for one in results) / count
    components: JsonObject = {
        "problems": count,
        "successes": sum(one.success for one in results),
        "successes_upstream": sum(one.success_upstream for one in results),
        "quality": sum(one.quality or 0.0 for one in results) / count,
    }
    return min(max(score, 0.0), 1.0), components


def _outcome(summary: RunSummary) -> str:
    if not summary.closed:
        return "open"
    if summary.failure is not None:
        return "agent_failed"
    return "success" if summary.success else "missed"


def _status(summary: RunSummary) -> ProblemStatus:
    if not summary.closed:
        return ProblemStatus.RUNNING
    if summary.failure is not None:
        late = summary.failure.code == AGENT_TIMEOUT
        return ProblemStatus.TIMED_OUT if late else ProblemStatus.FAILED
    return ProblemStatus.SUCCESS
