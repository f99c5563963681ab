"""What came of a race: per agent, as data. Shares are over all problems drawn.

A problem that is still open (the host, the model provider or the arena failed) is
neither a success nor a failure. While an agent has one, its rates are *incomplete*:
None, never a number over fewer problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from arena.races.schedule import Board
from arena.runs.record import RunSummary
from scoring.exceptions import Fault
from scoring.types import Bucket, JsonObject

_AXES = ("title", "price", "service", "sku", "attribute", "sku_and_attribute", "shop", "budget")


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
    settled = [r if r is not None and r.closed else None for r in results]
    present = [r for r in results if r is not None]
    walls = [r.wall_s for r in present]
    return AgentReport(
        name=name,
        problems=len(results),
        open=settled.count(None),
        asr=_rate(r and r.success for r in settled),
        asr_upstream=_rate(r and r.success_upstream for r in settled),
        by_bucket={
            bucket: _bucket([r for r, b in zip(settled, buckets, strict=True) if b is bucket])
            for bucket in Bucket
            if bucket in buckets
        },
        by_axis=_by_axis(settled),
        axis_a_share=_rate(r and r.axis == "A" for r in settled),
        failures={
            fault: sum(r.failure is not None and r.failure.fault is fault for r in present)
            for fault in (Fault.AGENT, Fault.VALIDATOR, Fault.PLATFORM)
        },
        wall_s=sum(walls),
        median_wall_s=median(walls) if walls else 0.0,
    )


def _bucket(settled: Sequence[RunSummary | None]) -> BucketReport:
    return BucketReport(len(settled), _rate(r and r.success for r in settled))


def _rate(successes: Iterable[bool | None]) -> float | None:
    """The share of true ones; None as soon as one is not known."""
    known = list(successes)
    if any(value is None for value in known) or not known:
        return None
    return sum(bool(value) for value in known) / len(known)


def _by_axis(settled: Sequence[RunSummary | None]) -> dict[str, float | None]:
    """Which axes a problem states is known from its outcome, so an open one hides them all."""
    axes = [
        cast("dict[str, float | None]", r.outcome["axes"])
        for r in settled
        if r is not None and r.outcome is not None
    ]
    means: dict[str, float | None] = {}
    for name in _AXES:
        shares = [share for one in axes if (share := one.get(name)) is not None]
        if shares:
            means[name] = sum(shares) / len(shares) if None not in settled else None
    return means
