"""From what a person chose to a job that is ready: records, problems, partition, catalogues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from arena.problems.clusters import Clusters
from arena.problems.partition import Partition, read_partition, write_partition
from arena.problems.placement import decide
from arena.problems.pools import Side
from arena.problems.suite import load_suite, load_suites, problem_to_json, write_suite
from arena.season.release import NOTHING, Release
from arena.settings import ArenaSettings
from corpus_export.exceptions import CorpusError
from corpus_export.pipeline import ExportJob
from corpus_export.rows import Place
from corpus_export.settings import ExportOptions
from corpus_export.sources import FileSource, RecordSource
from corpus_export.tokens import open_tokens
from corpus_export.work import Setup
from sandbox.catalog import open_catalog
from sandbox.catalog.manifest import read_manifest
from scoring.types import Problem


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files that an export is made of. Without `races` and `records`, the database.

    `suites` are problems that neither race directories nor the database hold.
    """

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


@contextmanager
def open_job(inputs: Inputs, options: ExportOptions) -> Iterator[ExportJob]:
    """A job over the files that are given, or else over the database of the settings."""
    if inputs.races or inputs.records:
        yield open_files(inputs, options)
        return
    # Here: files need no database.
    from arena.settings import load_settings

    with open_day(inputs, options, load_settings()) as job:
        yield job


def open_files(inputs: Inputs, options: ExportOptions) -> ExportJob:
    """A job over race directories and records exports.

    Raises CorpusError, ProblemError, PartitionError or CatalogError for what cannot be used.
    """
    source = FileSource((*inputs.races, *inputs.records))
    # A cluster is named after its first problem: the order of files shall not matter.
    problems = sorted(_all_problems(source, inputs.suites), key=lambda p: p.problem_id)
    if not problems:
        raise CorpusError(
            "the problems of these records are not known",
            remedy="give the suites that were raced with --suite",
        )
    if inputs.partition is None:
        partition = placed(Partition(), problems, inputs.seed)
    else:
        # Before the export: evaluation may be frozen and unused, never used and not frozen.
        partition = extend_file(inputs.partition, problems, inputs.seed)
    release = Release(everything=True) if source.released else NOTHING
    return job_of(inputs, options, source, partition, problems, release)


@contextmanager
def open_day(
    inputs: Inputs, options: ExportOptions, settings: ArenaSettings
) -> Iterator[ExportJob]:
    """A job over the records of a day in the database.

    The problems that they name are brought into the journal's partition first. Raises what
    the database, the journals and `open_files` raise.
    """
    # Here: an export of files needs no database.
    from corpus_export.database import current_partition, open_source, release_now

    if options.day is None:
        raise CorpusError("which day?", remedy="give --day, or records with --race")
    with open_source(settings, options.day) as source:
        problems = _all_problems(source, inputs.suites)
        partition = source.ask(lambda e: current_partition(e, problems, inputs.seed))
        release = source.ask(lambda e: release_now(e, datetime.now(UTC)))
        yield job_of(inputs, options, source, partition, problems, release)


def extend_file(path: Path, problems: Sequence[Problem], seed: str) -> Partition:
    """The partition of a file with these problems in it, written back.

    Beside the file lie all problems that it places, `PATH.problems.jsonl.gz`: a variant of one
    joins its cluster only when that one is known, too. Raises CorpusError when they are not
    at hand, or when an id stands for two problems.
    """
    beside = path.with_name(path.name + ".problems.jsonl.gz")
    base = read_partition(path) if path.exists() else Partition()
    known = {p.problem_id: p for p in load_suite(beside).problems} if beside.exists() else {}
    for problem in problems:
        earlier = known.setdefault(problem.problem_id, problem)
        if problem_to_json(earlier) != problem_to_json(problem):
            raise CorpusError(f"problem {problem.problem_id[:80]} is another one than in {beside}")
    placed_ids = {name for side in Side for name in base.problems(side)}
    if missing := sorted(placed_ids.difference(known)):
        raise CorpusError(
            f"{len(missing)} problems that {path} places are not at hand, {missing[0][:80]} first:"
            " a variant of one could not be told from a new problem",
            remedy="give the suites that hold them with --suite",
        )
    partition = placed(base, list(known.values()), seed)
    # Problems first: those that no partition places yet do no harm.
    write_suite(known.values(), beside)
    beside.chmod(0o600)
    write_partition(partition, path)
    return partition


def placed(base: Partition, problems: Sequence[Problem], seed: str) -> Partition:
    """The partition with these problems in it; raises PartitionError. `base` is changed."""
    events = decide(
        base,
        problems,
        Clusters.of(problems),
        seed=base.seed if base.seed is not None else seed,
        at=datetime.now(UTC),
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
    release: Release,
) -> ExportJob:
    """A job over any source."""
    tokens = open_tokens(inputs.tokenizer)
    setup = Setup(
        catalogs=inputs.catalogs,
        tokenizer=inputs.tokenizer,
        places=places_of(problems, partition),
        release=release,
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
        catalogs=tuple(content_hash_of(path) for path in inputs.catalogs),
    )


def content_hash_of(catalog: Path) -> str:
    """The content hash of a catalogue; a file is built into an index if it has to be.

    An index says it itself: this process searches nothing and needs no engine.
    """
    if catalog.is_dir():
        return read_manifest(catalog).content_hash
    return open_catalog(catalog).content_hash


def places_of(problems: Iterable[Problem], partition: Partition) -> dict[str, Place]:
    """Where each problem stands that the partition knows."""
    places: dict[str, Place] = {}
    for problem in problems:
        name = problem.problem_id
        standing = partition.standing_of(name)
        if standing is not None:
            places[name] = Place(problem.query, standing.cluster, standing.side)
    return places


def _all_problems(source: RecordSource, suites: Sequence[Path]) -> list[Problem]:
    """The source's own problems and those of the suites; what a record names comes first."""
    found = {problem.problem_id: problem for problem in source.problems()}
    for problem in load_suites(suites) if suites else ():
        found.setdefault(problem.problem_id, problem)
    return list(found.values())
