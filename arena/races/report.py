"""What came of a race: per agent, as data. Shares are over all problems drawn.

A problem that is still open (the host, the model provider or the arena failed) is
neither a success nor a failure. While an agent has one, its rates are *incomplete*:
None, never a number over fewer problems. The same holds for the score while a run is
unjudged: it is neither a zero nor left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from arena.races.schedule import Board
from arena.runs.record import RunSummary
from judge.judging import infrastructure_failure
from judge.verdict import Unjudged
from scoring.asr import SuccessRate, rates
from scoring.coefficient import coefficient
from scoring.exceptions import Fault
from scoring.outcome import Outcome
from scoring.types import Bucket, JsonObject


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One bucket's problems; `asr` is None while one of them is open, `score` and
    `coefficient` also while one is unjudged."""

    problems: int
    asr: float | None
    score: float | None = None
    coefficient: float | None = None

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "problems": self.problems,
            "asr": self.asr,
            "score": self.score,
            "coefficient": self.coefficient,
        }


@dataclass(frozen=True, slots=True)
class AgentReport:
    """One agent's race.

    `asr` is strict, `asr_upstream` by the upstream rule. `by_axis` holds, for each rule
    axis that a problem states, the mean share of its constraints that were met, over the
    problems that state it; a run that recommended nothing met none. `failures` counts
    problems: those lost by the agent's fault, and those open by the validator's or the
    platform's. `wall_s` adds up the time of the runs, `median_wall_s` is that of one.

    `score` is the race score: the mean over all problems of strict success times
    coefficient; `coefficient` is the mean of that. `unjudged` counts closed runs without
    a verdict. `score_sn15` is the public network's figure, reported and never ranked by:
    success by its rule times the coefficient of the mean quality, where a run whose
    judging was tried in vain counts as quality 0. `judging_failed` says that by its rule
    the judging was an infrastructure failure.
    """

    name: str
    problems: int
    open: int
    asr: float | None
    asr_upstream: float | None
    by_bucket: dict[Bucket, BucketReport]
    by_axis: dict[str, float | None]
    axis_a_share: float | None
    failures: dict[Fault, int]
    wall_s: float
    median_wall_s: float
    score: float | None = None
    coefficient: float | None = None
    score_sn15: float | None = None
    unjudged: int = 0
    judging_failed: bool = False
    results: tuple[RunSummary | None, ...] = ()
    """Of each problem, in their order; None is not yet run."""

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "name": self.name,
            "problems": self.problems,
            "open": self.open,
            "unjudged": self.unjudged,
            "score": self.score,
            "coefficient": self.coefficient,
            "score_sn15": self.score_sn15,
            "judging_failed": self.judging_failed,
            "asr": self.asr,
            "asr_upstream": self.asr_upstream,
            "by_bucket": {
                bucket.value: report.to_json() for bucket, report in self.by_bucket.items()
            },
            "by_axis": cast("JsonObject", dict(self.by_axis)),
            "axis_a_share": self.axis_a_share,
            "failures": {fault.value: count for fault, count in self.failures.items()},
            "wall_s": round(self.wall_s, 3),
            "median_wall_s": round(self.median_wall_s, 3),
            "results": [_result(run) for run in self.results if run is not None],
        }


def report(board: Board, buckets: Sequence[Bucket]) -> tuple[AgentReport, ...]:
    """Rank the agents of a race; `buckets` are those of its problems, in order.

    By score, then strict ASR, then upstream's, then name; those whose score or ASR is
    incomplete come after those that have one. Nobody has a score when nobody judges.
    """
    reports = [
        _agent(name, board.results(position), buckets) for position, name in enumerate(board.agents)
    ]
    return tuple(sorted(reports, key=_rank))


def _rank(agent: AgentReport) -> tuple[bool, float, bool, float, float, str]:
    rates = (agent.asr is None, -(agent.asr or 0.0), -(agent.asr_upstream or 0.0))
    return (agent.score is None, -(agent.score or 0.0), *rates, agent.name)


def _result(run: RunSummary) -> JsonObject:
    judgement = run.judgement
    return {
        "problem_id": run.problem_id,
        "bucket": run.bucket,
        "run_id": run.run_id,
        "closed": run.closed,
        "success": run.success if run.closed else None,
        "axis": run.axis,
        "quality": run.quality,
        "coefficient": run.coefficient,
        "final_score": run.final_score,
        "unjudged": judgement.reason.code if isinstance(judgement, Unjudged) else None,
    }


Results = Sequence[RunSummary | None]


def _mean(values: Sequence[float | None]) -> float | None:
    """None when one of them is not known: it is no zero, and no smaller denominator."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _score(results: Results) -> float | None:
    return _mean([r.final_score if r and r.closed else None for r in results])


def _coefficient(results: Results) -> float | None:
    return _mean([r.coefficient if r and r.closed else None for r in results])


def _score_sn15(results: Results, success_rate: float | None) -> float | None:
    """The public validator's figure; None while a run is open or was never before a judge."""
    qualities = [
        (r.quality or 0.0) if r and r.closed and r.judgement is not None else None for r in results
    ]
    quality = _mean(qualities)
    return None if quality is None or success_rate is None else success_rate * coefficient(quality)


def _agent(
    name: str, results: Sequence[RunSummary | None], buckets: Sequence[Bucket]
) -> AgentReport:
    present = [r for r in results if r is not None]
    found = rates(
        (bucket, Outcome.from_json(r.outcome) if r and r.closed and r.outcome else None)
        for bucket, r in zip(buckets, results, strict=True)
    )
    complete = found.overall.state == "complete"
    walls = [r.wall_s for r in present]
    return AgentReport(
        name=name,
        problems=found.overall.problems,
        open=found.overall.open,
        asr=found.overall.asr,
        asr_upstream=found.overall.asr_upstream,
        by_bucket={
            b: _bucket(r, [x for x, of in zip(results, buckets, strict=True) if of is b])
            for b, r in found.by_bucket.items()
        },
        # Which axes a problem states is known from its outcome: an open one hides them all.
        by_axis={
            axis: rate.share if complete else None
            for axis, rate in found.by_axis.items()
            if rate.problems
        },
        axis_a_share=sum(r.axis == "A" for r in present) / len(results) if complete else None,
        failures={
            fault: sum(r.failure is not None and r.failure.fault is fault for r in present)
            for fault in (Fault.AGENT, Fault.VALIDATOR, Fault.PLATFORM)
        },
        wall_s=sum(walls),
        median_wall_s=median(walls) if walls else 0.0,
        score=_score(results),
        coefficient=_coefficient(results),
        score_sn15=_score_sn15(results, found.overall.asr_upstream),
        unjudged=sum(r.closed and not r.judged for r in present),
        judging_failed=infrastructure_failure(r.judgement for r in present if r.judgement),
        results=tuple(results),
    )


def _bucket(rate: SuccessRate, results: Results) -> BucketReport:
    return BucketReport(rate.problems, rate.asr, _score(results), _coefficient(results))
