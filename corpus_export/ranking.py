"""Which trajectories of one problem are kept: the best, and a second that differs from it.

The order is the paper's signals one after another, each before the next: think-and-call
depth, distinct queries, a verification step, step-shape regularity. Depth and queries
count up to a cap, so that padding a run wins nothing. Of equals, the one whose sequence of
tools differs most from what is kept already; then the smaller record hash. That is a total
order: the input's order decides nothing. Axis A and axis B are ranked apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Levenshtein

from corpus_export.types import Features, Reason, Reject

MAX_SHAPE = 200
"""Tools of a sequence that are compared."""


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """How much is kept.

    `keep` trajectories per problem and axis, unless `keep_in_bucket` says otherwise for its
    bucket. A further one is kept only where its tool shape lies at least `min_distance`
    (0 to 1) from each that is kept. `max_depth` and `max_queries` are the caps.
    """

    keep: int = 2
    keep_in_bucket: Mapping[str, int] = field(default_factory=dict)
    min_distance: float = 0.25
    max_depth: int = 8
    max_queries: int = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One trajectory that passed the gates. `key` is its record's hash."""

    key: str
    axis: str
    features: Features


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate with its place, from 1, among those of its problem and axis, and the reject
    of one that is not kept. `distance` is to the nearest one kept before; None for the first."""

    candidate: Candidate
    place: int
    distance: float | None
    reject: Reject | None

    @property
    def kept(self) -> bool:
        """Whether it stays."""
        return self.reject is None


def rank_problem(
    candidates: Iterable[Candidate], bucket: str, settings: RankingSettings | None = None
) -> list[Placed]:
    """Place the candidates of one problem: axis A, then axis B, the kept ones first."""
    chosen = settings or RankingSettings()
    keep = chosen.keep_in_bucket.get(bucket, chosen.keep)
    by_axis: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_axis.setdefault(candidate.axis, []).append(candidate)
    return [placed for axis in sorted(by_axis) for placed in _rank(by_axis[axis], keep, chosen)]


def quality_key(features: Features, settings: RankingSettings) -> tuple[int, int, int, float]:
    """The signals of a trajectory as they are compared; larger is better."""
    return (
        min(features.depth, settings.max_depth),
        min(features.queries, settings.max_queries),
        int(features.verified),
        round(features.regularity, 2),
    )


def shape_distance(one: Sequence[str], other: Sequence[str]) -> float:
    """How much two sequences of tools differ: edit distance over the longer one, 0 to 1."""
    return Levenshtein.normalized_distance(one[:MAX_SHAPE], other[:MAX_SHAPE])


def _rank(candidates: list[Candidate], keep: int, settings: RankingSettings) -> list[Placed]:
    left = sorted(candidates, key=lambda c: c.key)
    kept: list[Candidate] = []
    placed: list[Placed] = []
    while left and len(kept) < keep:
        distances = {c.key: _nearest(c, kept) for c in left}
        able = [c for c in left if not kept or distances[c.key] >= settings.min_distance]
        if not able:
            break
        # Of equals max() takes the first, which has the smallest hash.
        best = max(able, key=lambda c: (quality_key(c.features, settings), distances[c.key]))
        placed.append(Placed(best, len(placed) + 1, distances[best.key] if kept else None, None))
        kept.append(best)
        left = [c for c in left if c is not best]
    rest = sorted(left, key=lambda c: quality_key(c.features, settings), reverse=True)
    for candidate in rest:
        distance = _nearest(candidate, kept)
        alike = len(kept) < keep
        why = "tools too like those of a kept one" if alike else f"{keep} better ones kept"
        reject = Reject(Reason.RANKED_OUT, why)
        placed.append(Placed(candidate, len(placed) + 1, distance if kept else None, reject))
    return placed


def _nearest(candidate: Candidate, kept: Sequence[Candidate]) -> float:
    return min(
        (shape_distance(candidate.features.shape, k.features.shape) for k in kept), default=0.0
    )
