"""From the samples of an evaluation to its rates, each with its interval over problems.

The denominator is every sample of every problem. While one is open, because a host or a
model server failed, the rates are incomplete and no numbers at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import cast

from scoring.outcome import Axes, Outcome
from scoring.types import Bucket, Json, JsonObject
from training.evaluation.directory import Evaluation
from training.evaluation.results import SampleResult
from training.evaluation.statistics import Interval, Paired, compare, pass_at_k, share
from training.exceptions import EvaluationError


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates over a set of problems; None where they are incomplete, or nothing states them.

    `pass_at` maps k to pass@k; k = 1 is the mean success. `axes` are the mean shares over the
    problems that state the axis. `invented_per_step` is ids that nothing had shown, named in
    calls, over all steps. `truncated` is the share of samples with a completion that ended
    for want of room, `failed` those whose agent crashed or ran out of time.
    """

    problems: int
    samples: int
    open: int
    pass_at: dict[int, Interval] = field(default_factory=dict)
    upstream: Interval | None = None
    recommended: Interval | None = None
    truncated: Interval | None = None
    failed: Interval | None = None
    invented_per_step: float | None = None
    steps: float | None = None
    axes: dict[str, Interval] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the rates are numbers."""
        return not self.open and bool(self.samples)

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "problems": self.problems,
            "samples": self.samples,
            "open": self.open,
            "state": "complete" if self.complete else "incomplete",
            "pass_at": {str(k): _interval(rate) for k, rate in self.pass_at.items()},
            "asr_upstream": _interval(self.upstream),
            "recommended": _interval(self.recommended),
            "truncated": _interval(self.truncated),
            "failed": _interval(self.failed),
            "invented_ids_per_step": self.invented_per_step,
            "steps": self.steps,
            "axes": {name: _interval(rate) for name, rate in self.axes.items()},
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation found. `errors` counts the open samples by what failed."""

    label: str
    model: str
    samples: int
    overall: Rates
    by_bucket: dict[Bucket, Rates]
    errors: dict[str, int]
    per_problem: dict[str, float]
    """Mean success of each problem; empty while the report is incomplete."""
    buckets: dict[str, str]

    @property
    def complete(self) -> bool:
        """Whether every sample of every problem has an outcome."""
        return self.overall.complete

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "label": self.label,
            "model": self.model,
            "harness": "ours",
            "samples": self.samples,
            "overall": self.overall.to_json(),
            "by_bucket": {bucket.value: r.to_json() for bucket, r in self.by_bucket.items()},
            "errors": dict(self.errors),
            "per_problem": dict(self.per_problem),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run against an earlier one on the same problems."""

    first: str
    second: str
    paired: Paired

    def to_json(self) -> JsonObject:
        """The object of `--json`."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": _interval(self.paired.difference),
            "p_value": self.paired.p_value,
            "problems": self.paired.problems,
            "better": self.paired.better,
            "worse": self.paired.worse,
            "separated": self.paired.separated,
        }


def report(evaluation: Evaluation, results: Iterable[SampleResult]) -> Report:
    """The report of an evaluation; `results` hold the last of each sample."""
    by_problem: dict[str, list[SampleResult]] = {name: [] for name, _ in evaluation.problems}
    for result in results:
        if result.problem_id in by_problem and result.sample < evaluation.samples:
            by_problem[result.problem_id].append(result)
    groups = {name: _Group(bucket, by_problem[name]) for name, bucket in evaluation.problems}
    overall = _rates(list(groups.values()), evaluation.samples)
    found: dict[str, int] = {}
    for result in (r for group in groups.values() for r in group.results if r.outcome is None):
        code = result.failure.code if result.failure else "unknown"
        found[code] = found.get(code, 0) + 1
    return Report(
        label=evaluation.label,
        model=evaluation.model,
        samples=evaluation.samples,
        overall=overall,
        by_bucket={
            bucket: _rates([g for g in groups.values() if g.bucket is bucket], evaluation.samples)
            for bucket in Bucket
            if any(g.bucket is bucket for g in groups.values())
        },
        errors=found,
        per_problem=(
            {name: group.mean(lambda r: r.success) for name, group in groups.items()}
            if overall.complete
            else {}
        ),
        buckets={name: group.bucket.value for name, group in groups.items()},
    )


def against(earlier: Report, now: Report) -> Comparison:
    """How much better `now` is than `earlier`. Raises EvaluationError when it cannot be said."""
    for one in (earlier, now):
        if not one.complete:
            raise EvaluationError(
                f"{one.label} is incomplete: {one.overall.open} samples have no outcome",
                code="evaluation.incomplete",
                remedy="run it again with its --out",
            )
    try:
        paired = compare(earlier.per_problem, now.per_problem, strata=now.buckets)
    except ValueError as error:
        raise EvaluationError(
            f"{earlier.label} and {now.label} cannot be compared: {error}",
            remedy="compare evaluations of the same problems",
        ) from error
    return Comparison(earlier.label, now.label, paired)


@dataclass(frozen=True, slots=True)
class _Group:
    """The samples of one problem."""

    bucket: Bucket
    results: Sequence[SampleResult]

    def mean(self, of: Callable[[SampleResult], float]) -> float:
        return sum(of(result) for result in self.results) / len(self.results)

    def closed(self) -> int:
        return sum(result.outcome is not None for result in self.results)


def _rates(groups: Sequence[_Group], samples: int) -> Rates:
    asked = len(groups) * samples
    unknown = asked - sum(group.closed() for group in groups)
    if unknown or not asked:
        return Rates(len(groups), asked, unknown)
    strata = [group.bucket.value for group in groups]

    def rate(of: Callable[[SampleResult], float]) -> Interval:
        return share([group.mean(of) for group in groups], strata=strata)

    wins = [sum(result.success for result in group.results) for group in groups]
    seen = [result.observed for group in groups for result in group.results]
    steps = sum(one.steps for one in seen)
    return Rates(
        problems=len(groups),
        samples=asked,
        open=0,
        pass_at={
            k: share([pass_at_k(samples, won, k) for won in wins], strata=strata)
            for k in _ks(samples)
        },
        upstream=rate(lambda r: _outcome(r).upstream_success),
        recommended=rate(lambda r: r.recommended),
        truncated=rate(lambda r: r.observed.truncated > 0),
        failed=rate(lambda r: r.failure is not None),
        invented_per_step=sum(one.invented_ids for one in seen) / steps if steps else None,
        steps=steps / asked,
        axes=_axes(groups),
    )


def _axes(groups: Sequence[_Group]) -> dict[str, Interval]:
    found: dict[str, Interval] = {}
    for name in (f.name for f in fields(Axes)):
        shares: list[float] = []
        strata: list[str] = []
        for group in groups:
            stated = [getattr(_outcome(result).axes, name) for result in group.results]
            known = [share for share in stated if share is not None]
            if known:
                shares.append(sum(known) / len(known))
                strata.append(group.bucket.value)
        if shares:
            found[name] = share(shares, strata=strata)
    return found


def _outcome(result: SampleResult) -> Outcome:
    assert result.outcome is not None
    return result.outcome


def _ks(samples: int) -> list[int]:
    """1, 2, 4, … and the number of samples itself."""
    powers = [1 << n for n in range(samples.bit_length()) if 1 << n <= samples]
    return sorted({*powers, samples})


def _interval(value: Interval | None) -> Json:
    return None if value is None else cast("Json", value.to_json())
