"""From what a person chose to a job that is ready: records, problems, partition, catalogues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from arena.problems.clusters import Clusters
from arena.problems.partition import Partition, read_partition, write_partition
from arena.problems.placement import decide
from arena.problems.pools import Pool
from arena.problems.suite import load_suites
from corpus_export.exceptions import CorpusError
from corpus_export.pipeline import ExportJob
from corpus_export.rows import Place
from corpus_export.settings import ExportOptions
from corpus_export.sources import FileSource, RecordSource
from corpus_export.tokens import open_tokens
from corpus_export.work import Setup
from sandbox.catalog import open_catalog
from scoring.types import Problem


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files that an export is made of. Without `races` and `records`, the database."""

    catalogs: tuple[Path, ...]
    races: tuple[Path, ...] = ()
    records: tuple[Path, ...] = ()
    suites: tuple[Path, ...] = ()
    partition: Path | None = None
    """Read, brought up to date with the suites' problems, and written back; without it the
    evaluation problems are drawn for this export alone."""
    tokenizer: Path | None = None
    seed: str = "0"
    """Evaluation is drawn with it, once."""


def open_files(inputs: Inputs, options: ExportOptions) -> ExportJob:
    """A job over race directories and files of records.

    Raises CorpusError, ProblemError, PartitionError or CatalogError for what cannot be used.
    """
    if not inputs.suites:
        raise CorpusError(
            "the problems of these records are not known",
            remedy="give the suites that were raced with --suite",
        )
    problems = load_suites(inputs.suites)
    base = Partition()
    if inputs.partition is not None and inputs.partition.exists():
        base = read_partition(inputs.partition)
    partition = placed(base, problems, inputs.seed)
    if inputs.partition is not None:
        # Before the export: evaluation may be frozen and unused, never used and not frozen.
        write_partition(partition, inputs.partition)
    source = FileSource(inputs.races, inputs.records)
    retired = frozenset(p.problem_id for p in problems if p.pool == Pool.RETIRED)
    return job_of(inputs, options, source, partition, problems, retired, frozenset())


def placed(base: Partition, problems: Sequence[Problem], seed: str) -> Partition:
    """The partition with these problems in it; raises PartitionError. `base` is changed."""
    events = decide(
        base,
        problems,
        Clusters.of(problems),
        seed=base.seed if base.seed is not None else seed,
        at=datetime(1970, 1, 1, tzinfo=UTC),
    )
    for event in events:
        base.apply(event)
    return base


def job_of(
    inputs: Inputs,
    options: ExportOptions,
    source: RecordSource,
    partition: Partition,
    problems: Iterable[Problem],
    retired: frozenset[str],
    open_sources: frozenset[str],
) -> ExportJob:
    """A job over any source. `retired` problems and `open_sources` are what is released."""
    queries = {p.problem_id: p.query for p in problems} | dict(source.queries())
    tokens = open_tokens(inputs.tokenizer)
    setup = Setup(
        catalogs=inputs.catalogs,
        tokenizer=inputs.tokenizer,
        places=places_of(queries, partition, retired),
        open_sources=open_sources,
        day=options.day,
        min_coefficient=options.min_coefficient,
        max_tokens=options.max_tokens,
        public=options.public,
    )
    return ExportJob(
        options=options,
        source=source,
        partition=partition,
        setup=setup,
        tokenizer={"name": tokens.name, "exact": tokens.exact},
        catalogs=tuple(open_catalog(path).content_hash for path in inputs.catalogs),
    )


def places_of(
    queries: Mapping[str, str], partition: Partition, retired: frozenset[str]
) -> dict[str, Place]:
    """Where each problem stands whose query and side are known."""
    places: dict[str, Place] = {}
    for problem_id, query in sorted(queries.items()):
        standing = partition.standing_of(problem_id)
        if standing is not None:
            retires = problem_id in retired
            places[problem_id] = Place(query, standing.cluster, standing.side, retires)
    return places
