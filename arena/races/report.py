"""What came of a race: per agent, as data. Shares are over all problems drawn.

A problem that is still open (the host, the model provider or the arena failed) is
neither a success nor a failure. While an agent has one, its rates are *incomplete*:
None, never a number over fewer problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from arena.races.schedule import Board
from arena.runs.record import RunSummary
from scoring.asr import rates
from scoring.exceptions import Fault
from scoring.outcome import Outcome
from scoring.types import Bucket, JsonObject


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One bucket's problems; `asr` is None while one of them is open."""

    problems: int
    asr: float | None


@dataclass(frozen=True, slots=True)
class AgentReport:
    """One agent's race.

    `asr` is strict, `asr_upstream` by the upstream rule. `by_axis` holds, for each rule
    axis that a problem states, the mean share of its constraints that were met, over the
    problems that state it; a run that recommended nothing met none. `failures` counts
    problems: those lost by the agent's fault, and those open by the validator's or the
    platform's. `wall_s` adds up the time of the runs, `median_wall_s` is that of one.
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

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "name": self.name,
            "problems": self.problems,
            "open": self.open,
            "asr": self.asr,
            "asr_upstream": self.asr_upstream,
            "by_bucket": {
                bucket.value: {"problems": report.problems, "asr": report.asr}
                for bucket, report in self.by_bucket.items()
            },
            "by_axis": cast("JsonObject", dict(self.by_axis)),
            "axis_a_share": self.axis_a_share,
            "failures": {fault.value: count for fault, count in self.failures.items()},
            "wall_s": round(self.wall_s, 3),
            "median_wall_s": round(self.median_wall_s, 3),
        }


def report(board: Board, buckets: Sequence[Bucket]) -> tuple[AgentReport, ...]:
    """Rank the agents of a race; `buckets` are those of its problems, in order.

    By strict ASR, then upstream's, then name; those whose ASR is incomplete come last.
    """
    reports = [
        _agent(name, board.results(position), buckets) for position, name in enumerate(board.agents)
    ]
    return tuple(sorted(reports, key=_rank))


def _rank(agent: AgentReport) -> tuple[bool, float, float, str]:
    return (agent.asr is None, -(agent.asr or 0.0), -(agent.asr_upstream or 0.0), agent.name)


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
        by_bucket={b: BucketReport(r.problems, r.asr) for b, r in found.by_bucket.items()},
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
    )
