"""Rates with their uncertainty, and whether two runs differ. Pure, seeded, without torch.

The unit is the problem, not the sample: samples of one problem are alike, and problems are
what a held-out set is drawn from. All resampling is therefore over problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
EXACT_UP_TO = 16
"""Differing problems up to which all sign flips are gone through: 65,536 of them."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bootstrap interval at `level`."""

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def to_json(self) -> dict[str, float | int | str | bool | list[object] | None]:
        """The object of `--json`."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high, "level": self.level}


@dataclass(frozen=True, slots=True)
class Paired:
    """How much better the second of two runs is on the same problems.

    `difference` is second minus first, with its bootstrap interval over problems; `p_value`
    is that of a two-sided paired permutation test. `better` and `worse` count the problems on
    which the second did better or worse.
    """

    difference: Interval
    p_value: float
    problems: int
    better: int
    worse: int

    @property
    def separated(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.difference.low > 0 or self.difference.high < 0


def pass_at_k(samples: int, successes: int, k: int) -> float:
    """Chance that at least one of `k` samples of a problem succeeds, without bias.

    M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021): of `samples`
    drawn with `successes` among them, `1 - C(n-c, k) / C(n, k)`. Raises ValueError when fewer
    than `k` samples were drawn.
    """
    if not 0 <= successes <= samples:
        raise ValueError(f"{successes} successes among {samples} samples")
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} needs at least {k} samples a problem, there are {samples}")
    return 1.0 - comb(samples - successes, k) / comb(samples, k)


def bootstrap(
    values: Sequence[float],
    *,
    strata: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Interval:
    """The mean of a value per problem, with its percentile interval over resampled problems.

    With `strata` (a bucket for each problem) the number of each stays as it was drawn. Raises
    ValueError when there is no problem.
    """
    data = _array(values)
    means = _resampled_means(data, _groups(strata, len(data)), seed, resamples)
    low, high = _percentiles(means, level)
    return Interval(float(data.mean()), low, high, level)


def share(
    values: Sequence[float], *, strata: Sequence[str] | None = None, level: float = 0.95
) -> Interval:
    """`bootstrap` for values from 0 to 1; honest also where all of them are 0, or all 1.

    Resampling such values gives an interval without width. There the bound of C. Clopper and
    E. Pearson (1934) stands instead: after n failures in n problems the rate may still be up
    to `1 - ((1 - level) / 2)^(1/n)`.
    """
    found = bootstrap(values, strata=strata, level=level)
    if found.low != found.high or found.estimate not in (0.0, 1.0):
        return found
    far = 1.0 - ((1.0 - level) / 2.0) ** (1.0 / len(values))
    low, high = (0.0, far) if found.estimate == 0 else (1.0 - far, 1.0)
    return Interval(found.estimate, low, high, level)


def compare(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    strata: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Paired:
    """Compare two runs by a value per problem id. Only the same problems can be paired.

    Raises ValueError when the runs are not on the same problems.
    """
    if set(first) != set(second):
        odd = sorted(set(first) ^ set(second))
        raise ValueError(f"{len(odd)} problems are not in both runs, such as {odd[0]}")
    ids = sorted(first)
    differences = _array([second[name] - first[name] for name in ids])
    groups = [strata[name] for name in ids] if strata else None
    interval = bootstrap(
        list(differences), strata=groups, seed=seed, resamples=resamples, level=level
    )
    return Paired(
        difference=interval,
        p_value=permutation_p(differences, seed=seed, resamples=resamples),
        problems=len(ids),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def permutation_p(
    differences: Sequence[float] | Values, *, seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """Two-sided p-value of paired differences: how often chance signs give as large a mean.

    Exact over all sign flips while few problems differ, else over random ones, of which the
    observed one counts as one: so it is never 0.
    """
    data = np.asarray(differences, dtype=np.float64)
    data = data[data != 0]
    if not len(data):
        return 1.0
    observed = abs(data.sum()) * (1 - 1e-12)
    if len(data) <= EXACT_UP_TO:
        flips = np.arange(2 ** len(data))[:, None] >> np.arange(len(data)) & 1
        return float((abs((1.0 - 2.0 * flips) @ data) >= observed).mean())
    generator = np.random.default_rng(seed)
    as_large = 0
    for size in _blocks(resamples, len(data)):
        signs = generator.integers(0, 2, (size, len(data))) * 2.0 - 1.0
        as_large += int((abs(signs @ data) >= observed).sum())
    return (as_large + 1) / (resamples + 1)


def _array(values: Sequence[float]) -> Values:
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        raise ValueError("there is no problem to make a rate of")
    return data


def _groups(strata: Sequence[str] | None, count: int) -> list[NDArray[np.intp]]:
    if strata is None:
        return [np.arange(count)]
    names = np.asarray(strata)
    return [np.flatnonzero(names == name) for name in sorted(set(strata))]


def _resampled_means(
    data: Values, groups: Sequence[NDArray[np.intp]], seed: int, resamples: int
) -> Values:
    generator = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    for group in groups:
        done = 0
        for size in _blocks(resamples, len(group)):
            drawn = generator.integers(0, len(group), (size, len(group)))
            sums[done : done + size] += data[group][drawn].sum(1)
            done += size
    return sums / len(data)


def _blocks(total: int, width: int) -> list[int]:
    """`total` cut so that a block of this width takes some 16 MB."""
    most = max(1, (1 << 21) // max(1, width))
    return [min(most, total - at) for at in range(0, total, most)]


def _percentiles(means: Values, level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)
