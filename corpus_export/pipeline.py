"""An export from records to a directory: two passes, resumable, the same bytes each time.

Pass one examines records page by page and remembers what came of each in the work file.
Pass two ranks what is left of each problem, takes secrets out of what is kept, and writes.
What decides the bytes stands in `inputs`: an export with the same inputs is recognised and
left as it is, an unfinished one goes on, and other inputs are refused by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, cast

from arena.problems.partition import Partition
from arena.problems.pools import Side
from corpus_export import manifest as manifests
from corpus_export.card import card_of, figures_of
from corpus_export.exceptions import (
    CorpusError,
    EmptyDayError,
    OtherExportError,
    SourceChangedError,
    TwoSidesError,
)
from corpus_export.ranking import Candidate, rank_problem
from corpus_export.rejects import reject_line
from corpus_export.rows import AXES, ROW_SCHEMA, SPLITS
from corpus_export.settings import ExportOptions
from corpus_export.sources import RecordSource
from corpus_export.stats import statistics
from corpus_export.work import Setup
from corpus_export.workers import Workers, open_workers
from corpus_export.workfile import WorkFile
from corpus_export.writing import LinesWriter, TableWriter, Workplace, WrittenFile, write_file
from scoring.types import Json, JsonObject

WORK_FILE = "work.sqlite"
_INPUTS = "inputs"


class Watcher(Protocol):
    """Who is told how far an export is."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` records or rows, when that is known."""
        ...

    def advance(self, count: int) -> None:
        """So many more are done."""
        ...


@dataclass(frozen=True, slots=True)
class ExportJob:
    """Everything that an export is made of. `tokenizer` and `catalogs` name what `setup`
    opens, for the manifest."""

    options: ExportOptions
    source: RecordSource
    partition: Partition
    setup: Setup
    tokenizer: JsonObject
    catalogs: tuple[str, ...]

    def inputs(self) -> JsonObject:
        """What decides the bytes."""
        return {
            "options": self.options.to_json(),
            "source": self.source.describe(),
            "partition": self.partition.hash,
            "catalogs": cast("list[Json]", sorted(self.catalogs)),
            "tokenizer": self.tokenizer,
            "log_head": self.source.head(),
            "released": self.setup.release.digest,
            "program": {"sn15-arena": version("sn15-arena"), "rows": ROW_SCHEMA},
        }


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What came of an export. `made` is False when the same one was there already."""

    out: Path
    manifest: JsonObject
    made: bool


def export(job: ExportJob, watch: Watcher, tell: Callable[[str], None]) -> ExportResult:
    """Make the export, go on with it, or find it made.

    Raises OtherExportError when the directory holds another export, EmptyDayError when there
    is no record, TwoSidesError, DiskError, and what the source raises.
    """
    inputs = job.inputs()
    with Workplace(job.options.out) as place:
        if (made := _finished(job.options.out, inputs)) is not None:
            place.clear()
            return ExportResult(job.options.out, made, made=False)
        job.partition.check()
        work = _open_work(place.work / WORK_FILE, inputs, tell)
        try:
            with open_workers(job.setup, job.options.workers) as workers:
                _examine(job, work, workers, watch)
                _select(job, work, watch)
                _refuse_two_sides(work)
                directory = place.fresh_partial()
                manifest = _write(job, work, workers, directory, inputs, watch)
        finally:
            work.close()
        place.publish()
        place.clear()
    return ExportResult(job.options.out, manifest, made=True)


def _finished(out: Path, inputs: JsonObject) -> JsonObject | None:
    """The manifest of the same export, when it is there. Raises OtherExportError."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    if not out.is_dir():
        raise CorpusError(f"{out} is a file", remedy="give --out a directory")
    if not (out / manifests.FILE_NAME).is_file():
        raise CorpusError(
            f"{out} is no export and is not empty", remedy="give --out a new directory"
        )
    made = manifests.read_manifest(out)
    if found := manifests.differences(made["inputs"], inputs):
        raise OtherExportError(
            f"{out} holds an export with other inputs: {'; '.join(found)}",
            remedy="give the same inputs, or --out a new directory",
        )
    return made


def _open_work(path: Path, inputs: JsonObject, tell: Callable[[str], None]) -> WorkFile:
    """The work file, as an interrupted export left it or new."""
    work = WorkFile(path)
    begun = work.state(_INPUTS)
    if begun is not None:
        found = manifests.differences(json.loads(begun), inputs)
        if not found:
            tell("going on with the export that was interrupted")
            return work
        tell(f"an interrupted export had other inputs and begins again: {'; '.join(found)}")
        work.close()
        for old in path.parent.glob(path.name + "*"):
            old.unlink()
        work = WorkFile(path)
    work.set_state(_INPUTS, json.dumps(inputs))
    return work


def _examine(job: ExportJob, work: WorkFile, workers: Workers, watch: Watcher) -> None:
    """Pass one: every record that was not examined yet."""
    runs = job.source.describe()["runs"]
    assert isinstance(runs, int)
    watch.stage("Examining records", runs)
    read, other_days = (int(work.state(name) or 0) for name in ("read", "other_days"))
    watch.advance(read)
    for examined in workers.examine(job.source.pages(work.cursor)):
        page = len(examined.found) + examined.other_day
        read, other_days = read + page, other_days + examined.other_day
        counts = {"read": read, "other_days": other_days}
        work.add(examined.found, examined.cursor, counts)
        watch.advance(page)
    if read != runs:
        raise SourceChangedError(
            f"{runs} records were announced and {read} came",
            remedy="start the same command again",
        )
    if read == other_days:
        day = f"on {job.options.day}" if job.options.day else "in what was given"
        raise EmptyDayError(f"no run finished {day}", remedy="days are in UTC")


def _select(job: ExportJob, work: WorkFile, watch: Watcher) -> None:
    """Pass two: rank within each problem."""
    watch.stage("Ranking")
    with work.transaction():
        work.begin_selection()
        for candidates in work.problems():
            numbers = {one.record_hash: one.number for one in candidates}
            for placed in rank_problem(
                [Candidate(one.record_hash, one.axis, one.features) for one in candidates],
                candidates[0].bucket,
                job.options.ranking,
            ):
                number = numbers[placed.candidate.key]
                if placed.reject is None:
                    work.keep(number, placed.place)
                else:
                    work.refuse(number, placed.reject)


def _refuse_two_sides(work: WorkFile) -> None:
    """The last look before anything is written: sides of what was kept, by cluster."""
    clusters = Counter(cluster for cluster, _ in work.sides())
    both = [cluster for cluster, sides in clusters.items() if sides > 1]
    if both:
        raise TwoSidesError(
            f"cluster {both[0][:80]} would stand in training and in evaluation; nothing is written",
            remedy="rebuild the clusters from all problems (arena problems cluster)",
        )


def _write(
    job: ExportJob,
    work: WorkFile,
    workers: Workers,
    directory: Path,
    inputs: JsonObject,
    watch: Watcher,
) -> JsonObject:
    """All files, in an order in which the manifest comes last."""
    watch.stage("Writing")
    files: list[WrittenFile] = []
    removed: Counter[str] = Counter()
    for side, split in SPLITS.items():
        for axis, name in AXES.items():
            files += _write_table(
                work, workers, directory, f"{split}/{name}", (side, axis), removed, watch
            )
    files.append(_write_rejects(work, directory))
    state = manifests.encode(job.partition.to_json())
    files.append(write_file(directory, manifests.PARTITION, state))
    partition: JsonObject = {
        "hash": job.partition.hash,
        "evaluation": job.partition.evaluation_hash,
    }
    manifest = manifests.make_manifest(work, inputs, removed, partition, job.source.head())
    found = statistics(directory, manifest)
    for name, content in {**figures_of(found), **card_of(manifest, found)}.items():
        files.append(write_file(directory, name, content))
    manifest = manifests.with_files(manifest, files)
    write_file(directory, manifests.FILE_NAME, manifests.encode(manifest))
    return manifest


def _write_table(
    work: WorkFile,
    workers: Workers,
    directory: Path,
    name: str,
    part: tuple[Side, str],
    removed: Counter[str],
    watch: Watcher,
) -> list[WrittenFile]:
    table = TableWriter(directory, name)
    try:
        for finished in workers.finish(work.selected(part[0].value, part[1])):
            if finished.reject is not None:
                work.refuse(finished.number, finished.reject)
                continue
            removed.update(finished.removed)
            table.write(finished.row)
            watch.advance(1)
        return table.close()
    except BaseException:
        table.abandon()
        raise


def _write_rejects(work: WorkFile, directory: Path) -> WrittenFile:
    lines = LinesWriter(directory, manifests.REJECTS)
    try:
        for found in work.rejects():
            lines.write(reject_line(found))
        return lines.close()
    except BaseException:
        lines.abandon()
        raise
