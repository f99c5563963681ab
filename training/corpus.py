"""An exported corpus, opened for training: proven first, and guarded.

Nothing of it is believed. The schema has to be the one that is trained on, `arena corpus
verify` has to find nothing, and whatever its rows say of themselves, a problem or a cluster
that any partition at hand holds for evaluation, or never to be touched, is refused by name.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

import pyarrow.parquet as pq

from arena.problems.partition import Partition, read_partition
from arena.problems.pools import Side
from corpus_export import manifest as manifests
from corpus_export.checking import verify
from corpus_export.manifest import read_manifest
from corpus_export.rows import AXES
from scoring.exceptions import ArenaError
from scoring.types import Json, JsonObject
from training.exceptions import CorpusRefusedError, GuardError

Axis = Literal["A", "B"]
Row = JsonObject
RowT = TypeVar("RowT", bound=Mapping[str, Json])

_TRAIN: Final = "train"
_EVAL: Final = "eval"


@dataclass(slots=True)
class Guard:
    """Which problems and clusters may never reach a gradient, and which may."""

    forbidden_problems: dict[str, Side] = field(default_factory=dict)
    forbidden_clusters: dict[str, Side] = field(default_factory=dict)
    allowed_problems: dict[str, str] = field(default_factory=dict)
    """Problem to cluster, of the training side."""

    def add(self, partition: Partition) -> None:
        """Take a partition in. What one forbids, no other allows."""
        for side in Side:
            for problem in partition.problems(side):
                standing = partition.standing_of(problem)
                assert standing is not None
                if side is Side.TRAINING:
                    self.allowed_problems.setdefault(problem, standing.cluster)
                else:
                    self.forbidden_problems.setdefault(problem, side)
                    # A problem that left training leaves its cluster's name behind: forbidden.
                    self.forbidden_clusters.setdefault(standing.cluster, side)

    def admit(self, problem_id: str, cluster: str) -> None:
        """Raise GuardError, which names both, unless this may be learnt from."""
        for kind, name, known in (
            ("problem", problem_id, self.forbidden_problems),
            ("cluster", cluster, self.forbidden_clusters),
        ):
            if side := known.get(name):
                raise GuardError(
                    f"{kind} {name[:80]} (problem {problem_id[:80]}, cluster {cluster[:80]}) is"
                    f" {side.value}: it must not reach a gradient",
                    remedy="export the corpus again with the present partition",
                )
        if problem_id not in self.allowed_problems:
            raise GuardError(
                f"problem {problem_id[:80]} stands in no partition at hand",
                remedy="name the partition that placed it",
            )

    def admit_sample(self, cluster: str, row: str) -> None:
        """The same for what knows its cluster alone: a sample, a segment of a rollout."""
        if side := self.forbidden_clusters.get(cluster):
            raise GuardError(
                f"cluster {cluster[:80]} (row {row[:80]}) is {side.value}:"
                " it must not reach a gradient"
            )


@dataclass(slots=True)
class Corpus:
    """An export that was proven. Rows are read from disk each time."""

    directory: Path
    hash: str
    """SHA-256 of the manifest, which holds the hashes of all files."""
    guard: Guard

    def train(self, axis: Axis = "A") -> Iterator[Row]:
        """Training rows, each admitted by the guard. Raises GuardError."""
        for row in _rows(self.directory / _TRAIN / f"{AXES[axis]}.parquet"):
            self.guard.admit(str(row["problem_id"]), str(row["cluster"]))
            yield row

    def evaluation(self, axis: Axis = "A") -> Iterator[Row]:
        """Evaluation rows: to be measured on, never to be learnt from."""
        yield from _rows(self.directory / _EVAL / f"{AXES[axis]}.parquet")


def open_corpora(directories: Sequence[Path], partitions: Sequence[Path] = ()) -> list[Corpus]:
    """Corpora under one guard: what any of them, or a partition beside them, forbids is
    forbidden in all.

    Raises CorpusRefusedError for one of another schema or one that proves to be wrong.
    """
    guard = Guard()
    opened = [open_corpus(directory, guard) for directory in directories]
    for path in partitions:
        with _refused():
            guard.add(read_partition(path))
    return opened


def open_corpus(directory: Path, guard: Guard | None = None) -> Corpus:
    """One corpus. Raises CorpusRefusedError."""
    # Before anything else is read: rows of another schema mean something else.
    with _refused():
        read_manifest(directory)
    for finding in verify(directory):
        raise CorpusRefusedError(
            f"{directory} does not hold what it says: {finding.code.value}"
            f" {finding.where}: {finding.message}",
            remedy=f"arena corpus verify {directory} tells all; export it again",
        )
    used = guard if guard is not None else Guard()
    with _refused():
        used.add(read_partition(directory / manifests.PARTITION))
    content = (directory / manifests.FILE_NAME).read_bytes()
    return Corpus(directory, hashlib.sha256(content).hexdigest(), used)


@contextmanager
def _refused() -> Iterator[None]:
    """What cannot be read of a corpus, as a corpus that is not trained on."""
    try:
        yield
    except ArenaError as error:
        raise CorpusRefusedError(
            error.message, remedy=error.remedy or "export it again with this version"
        ) from error


def _rows(path: Path) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=64):
            yield from cast("list[Row]", batch.to_pylist())


def hold_out(rows: Iterable[Row], share: float, seed: int) -> tuple[list[Row], list[Row]]:
    """Rows to learn from, and rows of other clusters to measure the loss on.

    Whole clusters, chosen by their names and the seed, so that the same ones are held out
    whatever else a corpus holds. Both come from the training side: what an evaluation will be
    made on chooses no learning rate.
    """
    learnt: list[Row] = []
    held: list[Row] = []
    for row in rows:
        (held if _draw(str(row["cluster"]), seed) < share else learnt).append(row)
    return learnt, held


def _draw(cluster: str, seed: int) -> float:
    digest = hashlib.sha256(f"held-out {seed} {cluster}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def in_order(rows: Iterable[RowT]) -> list[RowT]:
    """Rows by problem, and those of one problem by record: for what a seed draws of them.

    Neither the order of files matters nor, as far as problems go, that a race was run again: a
    record's hash holds the times of its run.
    """
    return sorted(rows, key=lambda row: (str(row["problem_id"]), str(row["record_hash"])))


def matched(one: Sequence[Row], other: Sequence[Row], seed: int) -> tuple[list[Row], list[Row]]:
    """As many rows of each bucket from the one as from the other, drawn by the seed.

    For comparing two corpora at the same size: what a bucket lacks in one is left out of both.
    """
    groups = [_by_bucket(rows) for rows in (one, other)]
    chosen: tuple[list[Row], list[Row]] = ([], [])
    for bucket in sorted(groups[0].keys() & groups[1].keys()):
        size = min(len(group[bucket]) for group in groups)
        for into, group in zip(chosen, groups, strict=True):
            into.extend(random.Random(f"{seed} {bucket}").sample(group[bucket], size))  # noqa: S311
    return chosen


def _by_bucket(rows: Sequence[Mapping[str, Json]]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in in_order(rows):
        groups.setdefault(str(row["bucket"]), []).append(dict(row))
    return groups
