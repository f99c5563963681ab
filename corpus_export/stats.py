"""Statistics of an export: the funnel, and what tells kept trajectories from rejected ones.

Made from the files alone. A rejected record counts in a distribution when it came so far
that it was normalised: of the others there is nothing to measure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from corpus_export.manifest import REJECTS
from corpus_export.rejects import read_lines
from corpus_export.rows import AXES, SPLITS
from scoring.types import Json, JsonObject

UNREADABLE: Final = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    pa.ArrowException,
    zstandard.ZstdError,
)
"""What files that are no export raise."""
_COLUMNS = ["bucket", "coefficient", "features"]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured of a trajectory, and the lower ends of its bins."""

    name: str
    title: str
    bins: tuple[float, ...]


MEASURES: Final = (
    Measure("tool_call_rate", "Tool calls a turn", (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3)),
    Measure("turns", "Turns", (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24)),
    Measure("tokens", "Tokens", (0, 1000, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_337, 20_000)),
    Measure("queries", "Distinct searches", (0, 1, 2, 3, 4, 5, 6, 8, 12)),
    Measure("coefficient", "Reasoning coefficient", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
)


@dataclass(slots=True)
class _Population:
    """The kept trajectories, or the rejected ones."""

    trajectories: int = 0
    buckets: Counter[str] = field(default_factory=Counter)
    values: dict[str, Counter[float]] = field(
        default_factory=lambda: {measure.name: Counter() for measure in MEASURES}
    )
    shapes: set[bytes] = field(default_factory=set)
    verified: int = 0

    def add(self, one: Mapping[str, Json]) -> None:
        """Count a row, or a line of the rejects with features."""
        features = cast("JsonObject", one["features"])
        turns, calls = cast("int", features["turns"]), cast("int", features["calls"])
        self.trajectories += 1
        self.buckets[str(one["bucket"])] += 1
        self.verified += bool(features["verified"])
        shape = "\0".join(cast("list[str]", features["shape"]))
        self.shapes.add(hashlib.blake2b(shape.encode(), digest_size=8).digest())
        self.values["tool_call_rate"][round(calls / turns, 2) if turns else 0.0] += 1
        for name in ("turns", "tokens", "queries"):
            self.values[name][cast("int", features[name])] += 1
        if one["coefficient"] is not None:
            self.values["coefficient"][cast("float", one["coefficient"])] += 1

    def to_json(self) -> JsonObject:
        """Counts and quantiles."""
        return {
            "trajectories": self.trajectories,
            "buckets": dict(sorted(self.buckets.items())),
            "verified": self.verified,
            "distinct_shapes": len(self.shapes),
            "measures": {
                measure.name: _summary(self.values[measure.name], measure.bins)
                for measure in MEASURES
            },
        }


def statistics(directory: Path, manifest: JsonObject) -> JsonObject:
    """The statistics of an export in `directory`.

    Raises OSError, ValueError, pyarrow's or zstandard's errors on files that cannot be read.
    """
    kept, rejected = _Population(), _Population()
    for row in _rows(directory):
        kept.add(row)
    for line in read_lines(directory / REJECTS):
        if line["features"] is not None:
            rejected.add(line)
    return {
        "funnel": manifest["funnel"],
        "by_bucket": cast("JsonObject", manifest["by"])["bucket"],
        "rows": manifest["rows"],
        "removed": manifest["removed"],
        "kept": kept.to_json(),
        "rejected": rejected.to_json(),
    }


def bin_labels(bins: Sequence[float]) -> list[str]:
    """A bin's label: its lower end, or the only value in it."""
    labels = []
    for low, high in zip(bins, (*bins[1:], None), strict=True):
        whole = isinstance(low, int) and all(isinstance(b, int) for b in bins)
        single = whole and high is not None and high - low == 1
        labels.append(f"{low:g}" if single else f"{low:g}+" if high is None else f"{low:g}–")
    return labels


def _rows(directory: Path) -> Iterator[Mapping[str, Json]]:
    for split in SPLITS.values():
        for name in AXES.values():
            with pq.ParquetFile(directory / split / f"{name}.parquet") as file:
                for batch in file.iter_batches(batch_size=1024, columns=_COLUMNS):
                    yield from batch.to_pylist()


def _summary(values: Counter[float], bins: Sequence[float]) -> JsonObject:
    counts = [0] * len(bins)
    for value, n in values.items():
        place = max((i for i, low in enumerate(bins) if value >= low), default=0)
        counts[place] += n
    total = values.total()
    mean = sum(value * n for value, n in values.items()) / total if total else None
    return {
        "bins": list(bins),
        "counts": cast("list[Json]", counts),
        "mean": None if mean is None else round(mean, 4),
        "p10": _quantile(values, 0.1),
        "p50": _quantile(values, 0.5),
        "p90": _quantile(values, 0.9),
    }


def _quantile(values: Counter[float], share: float) -> float | None:
    """The least value that at least this share of all does not exceed."""
    total, seen = values.total(), 0
    for value in sorted(values):
        seen += values[value]
        if seen >= share * total:
            return value
    return None
