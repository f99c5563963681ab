"""How far validators are apart on the same agents. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median, pstdev
from uuid import UUID

from arena.api.public_race_models import (
    RaceValidatorVarianceResponse,
    SpreadBucket,
    ValidatorVarianceEntry,
)
from arena.api.public_scores import ValidatorScore

THRESHOLDS_PP = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Percentage points."""


def spread(
    race_id: UUID, number: int, scores: Sequence[ValidatorScore]
) -> RaceValidatorVarianceResponse:
    """Every pair of validators that scored the same agent, and each one against its peers."""
    by_version: dict[UUID, dict[str, float]] = {}
    for one in scores:
        if one.score is not None:
            by_version.setdefault(one.version, {})[one.validator] = one.score
    spreads: list[float] = []
    deltas: dict[str, list[float]] = {}
    for found in by_version.values():
        for (left, a), (right, b) in combinations(sorted(found.items()), 2):
            spreads.append(abs(a - b))
            deltas.setdefault(left, []).append(a - b)
            deltas.setdefault(right, []).append(b - a)
    return RaceValidatorVarianceResponse(
        race_id=race_id,
        race_number=number,
        n_pairs=len(spreads),
        mean_spread=fmean(spreads) if spreads else None,
        median_spread=median(spreads) if spreads else None,
        max_spread=max(spreads, default=None),
        spread_buckets=[_bucket(spreads, points) for points in THRESHOLDS_PP] if spreads else [],
        validators=[
            ValidatorVarianceEntry(
                validator_hotkey=validator,
                pairs_evaluated=len(found),
                mean_delta_vs_peers=fmean(found),
                std_dev=pstdev(found),
                mean_score=fmean(s[validator] for s in by_version.values() if validator in s),
            )
            for validator, found in sorted(deltas.items())
        ],
    )


def _bucket(spreads: Sequence[float], points: float) -> SpreadBucket:
    count = sum(one > points / 100 for one in spreads)
    return SpreadBucket(threshold_pp=points, count=count, pct=100 * count / len(spreads))
