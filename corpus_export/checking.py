"""`arena corpus verify`: proofs of an export from its files alone.

Nothing that the manifest says is believed: files are hashed, rows and rejects counted
again, gates asked again, the partition checked, the card made again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import cast

import orjson
import pyarrow.parquet as pq

from arena.exceptions import PartitionError
from arena.problems.partition import Partition, read_partition
from arena.problems.pools import Side
from corpus_export import manifest as manifests
from corpus_export.card import card_of, figures_of
from corpus_export.exceptions import CorpusInvalidError
from corpus_export.findings import Code, Finding
from corpus_export.manifest import Funnel
from corpus_export.rejects import read_lines
from corpus_export.row_checks import RowChecker
from corpus_export.rows import AXES, SCHEMA, SPLITS
from corpus_export.stats import UNREADABLE, statistics
from corpus_export.tokens import EstimatedTokens, TokenCounter
from corpus_export.types import Reason
from sandbox.catalog import Catalog
from scoring.types import Json, JsonObject

_BROKEN = UNREADABLE
_TABLES = tuple((split, axis, name) for split in SPLITS.values() for axis, name in AXES.items())


def verify(
    directory: Path,
    *,
    counter: TokenCounter | None = None,
    catalogs: Mapping[str, Catalog] | None = None,
) -> Iterator[Finding]:
    """Everything that is wrong with an export; nothing when it holds what it says.

    Rows' tokens are counted again when `counter` is what counted them; an estimate always is.
    With `catalogs`, by content hash, recommendations are resolved again.
    """
    try:
        manifest = manifests.read_manifest(directory)
        checker = _Checker(directory, manifest, counter, catalogs or {})
    except CorpusInvalidError as error:
        yield Finding(Code.MANIFEST, manifests.FILE_NAME, error.message)
        return
    except _BROKEN as error:
        yield Finding(Code.MANIFEST, manifests.FILE_NAME, f"it lacks {error!r:.200}")
        return
    yield from checker.findings()


class _Checker:
    """One verification; what was counted so far."""

    def __init__(
        self,
        directory: Path,
        manifest: JsonObject,
        counter: TokenCounter | None,
        catalogs: Mapping[str, Catalog],
    ) -> None:
        self._directory = directory
        self._manifest = manifest
        inputs = cast("JsonObject", manifest["inputs"])
        options = cast("JsonObject", inputs["options"])
        counted_by = cast("JsonObject", inputs["tokenizer"])["name"]
        if counter is None and counted_by == EstimatedTokens.name:
            counter = EstimatedTokens()
        self._rows = RowChecker(
            min_coefficient=cast("float", options["min_coefficient"]),
            max_tokens=cast("int", options["max_tokens"]),
            public=bool(manifest["public"]),
            counter=counter if counter and counter.name == counted_by else None,
            catalogs=catalogs,
        )
        self._ranking = cast("JsonObject", options["ranking"])
        self._files = cast("dict[str, JsonObject]", manifest["files"])
        self._records: dict[str, str] = {}
        self._sides: dict[tuple[str, str], str] = {}
        self._kept: Counter[tuple[str, str, str]] = Counter()
        self._counts: dict[str, Counter[tuple[str, Reason | None]]] = {
            group: Counter() for group in ("", *manifests.GROUPS)
        }
        self._sequences: dict[str, list[int]] = {}

    def findings(self) -> Iterator[Finding]:
        """Everything, in the order of the files."""
        yield from self._check_files()
        partition = None
        try:
            partition = read_partition(self._directory / manifests.PARTITION)
        except PartitionError as error:
            yield Finding(Code.PARTITION, manifests.PARTITION, error.message)
        if partition is not None:
            yield from self._check_partition(partition)
        for split, axis, name in _TABLES:
            yield from self._check_table(split, axis, name, partition)
        yield from self._check_rejects()
        yield from self._check_counts()
        yield from self._check_card()

    # Files ---------------------------------------------------------------------------

    def _check_files(self) -> Iterator[Finding]:
        there = {
            str(path.relative_to(self._directory))
            for path in self._directory.rglob("*")
            if not path.is_dir() or path.is_symlink()
        }
        expected = {*self._files, *_expected_files()}
        for name in sorted(expected - there):
            yield Finding(Code.MISSING, name, "the file is not there")
        for name in sorted(there - {*self._files, manifests.FILE_NAME}):
            yield Finding(Code.UNKNOWN, name, "the manifest names no such file")
        for name in sorted({*self._files} & there):
            path, said = self._directory / name, self._files[name]
            try:
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = path.stat().st_size
            except OSError as error:
                yield Finding(Code.UNREADABLE, name, str(error.strerror))
                continue
            if size != said.get("bytes"):
                yield Finding(Code.SIZE, name, f"{size} bytes, the manifest says {said['bytes']}")
            if digest != said.get("sha256"):
                yield Finding(Code.HASH, name, "its SHA-256 is not the manifest's")

    def _check_partition(self, partition: Partition) -> Iterator[Finding]:
        said = cast("JsonObject", self._manifest["partition"])
        inputs = cast("JsonObject", self._manifest["inputs"])
        if not partition.hash == said["hash"] == inputs["partition"]:
            yield Finding(Code.PARTITION, manifests.PARTITION, "its hash is not the manifest's")
        if partition.evaluation_hash != said["evaluation"]:
            yield Finding(Code.PARTITION, manifests.PARTITION, "its evaluation is another")

    # Rows ----------------------------------------------------------------------------

    def _check_table(
        self, split: str, axis: str, name: str, partition: Partition | None
    ) -> Iterator[Finding]:
        base = f"{split}/{name}"
        count = 0
        try:
            for number, (row, line) in enumerate(zip_longest(*self._both(base))):
                where = f"{base} row {number}"
                if row is None or line is None or row != line:
                    yield Finding(Code.FORMATS, where, "Parquet and JSON Lines differ")
                if row is None:
                    continue
                count += 1
                yield from self._check_row(row, where, split, axis, partition)
        except _Columns:
            yield Finding(Code.COLUMNS, f"{base}.parquet", "its columns are not the schema's")
        except _BROKEN as error:
            yield Finding(Code.UNREADABLE, base, f"{type(error).__name__}: {error!s:.200}")
        rows = cast("dict[str, dict[str, int]]", self._manifest["rows"])
        names = (f"{base}.parquet", f"{base}.jsonl.zst")
        listed = {self._files.get(name, {}).get("rows") for name in names}
        if {count} != {rows[split][name], *listed}:
            yield Finding(Code.ROWS, base, f"{count} rows, the manifest says something else")

    def _both(self, base: str) -> tuple[Iterator[JsonObject], Iterator[JsonObject]]:
        return (
            _parquet_rows(self._directory / f"{base}.parquet"),
            read_lines(self._directory / f"{base}.jsonl.zst"),
        )

    def _check_row(
        self, row: JsonObject, where: str, split: str, axis: str, partition: Partition | None
    ) -> Iterator[Finding]:
        if (row["split"], row["axis"]) != (split, axis):
            yield Finding(Code.PLACE, where, f"it says {row['split']}, axis {row['axis']}")
        for key in ("record_hash", "record_id"):
            first = self._records.setdefault(str(row[key]), where)
            if first != where:
                yield Finding(Code.TWICE, where, f"the record is also {first}")
        for kind in ("problem_id", "cluster"):
            side = self._sides.setdefault((kind, str(row[kind])), split)
            if side != split:
                said = f"{kind} {str(row[kind])[:80]} is also in {side}"
                yield Finding(Code.TWO_SIDES, where, said)
        if partition is not None:
            yield from _check_side(row, where, split, partition)
        kept = (split, axis, str(row["problem_id"]))
        self._kept[kept] += 1
        in_bucket = cast("dict[str, int]", self._ranking["keep_in_bucket"])
        most = in_bucket.get(str(row["bucket"]), cast("int", self._ranking["keep"]))
        if self._kept[kept] > most:
            yield Finding(Code.KEPT, where, f"more than {most} of its problem and axis")
        for code, message in self._rows.check(row):
            yield Finding(code, where, message)
        self._count(row, None)

    # Rejects and counts --------------------------------------------------------------

    def _check_rejects(self) -> Iterator[Finding]:
        try:
            for number, line in enumerate(read_lines(self._directory / manifests.REJECTS)):
                where = f"{manifests.REJECTS} line {number + 1}"
                reason = Reason(cast("str", line["reason"]))
                self._count(line, reason)
                first = self._records.get(str(line["record_hash"]))
                if first is not None and reason is not Reason.DUPLICATE:
                    yield Finding(Code.TWICE, where, f"the record is also {first}")
                if line["stage"] != reason.stage.value:
                    yield Finding(Code.REJECT, where, "its stage is not its reason's")
        except _BROKEN as error:
            said = f"{type(error).__name__}: {error!s:.200}"
            yield Finding(Code.REJECT, manifests.REJECTS, said)

    def _count(self, one: JsonObject, reason: Reason | None) -> None:
        self._counts[""]["", reason] += 1
        for group in manifests.GROUPS:
            self._counts[group][str(one[group] or ""), reason] += 1
        if one["validator"] is not None:
            sequence = cast("int", one["sequence"])
            self._sequences.setdefault(str(one["validator"]), []).append(sequence)

    def _check_counts(self) -> Iterator[Finding]:
        if self._funnels("").get("", Funnel()).to_json() != self._manifest["funnel"]:
            yield Finding(Code.FUNNEL, manifests.FILE_NAME, "rows and rejects give another funnel")
        for group in manifests.GROUPS:
            found = {value: funnel.to_json() for value, funnel in self._funnels(group).items()}
            if found != cast("JsonObject", self._manifest["by"])[group]:
                said = f"rows and rejects give other funnels by {group}"
                yield Finding(Code.FUNNEL, manifests.FILE_NAME, said)
        records = cast("JsonObject", self._manifest["records"])
        ranges: list[Json] = [
            {"validator": who, "first": min(seen), "last": max(seen), "records": len(seen)}
            for who, seen in sorted(self._sequences.items())
        ]
        if records["validators"] != ranges:
            said = "rows and rejects give other ranges of sequence numbers"
            yield Finding(Code.SEQUENCES, manifests.FILE_NAME, said)

    def _funnels(self, group: str) -> dict[str, Funnel]:
        found: dict[str, Counter[Reason | None]] = {}
        for (value, reason), count in self._counts[group].items():
            found.setdefault(value, Counter())[reason] += count
        return {
            value: Funnel(counts.total(), {r: n for r, n in counts.items() if r is not None})
            for value, counts in found.items()
        }

    def _check_card(self) -> Iterator[Finding]:
        try:
            found = statistics(self._directory, self._manifest)
            made = {**figures_of(found), **card_of(self._manifest, found)}
        except _BROKEN:
            return  # what cannot be read is found above
        for name, content in made.items():
            path = self._directory / name
            if path.is_file() and path.read_bytes() != content:
                yield Finding(Code.CARD, name, "it is not what manifest and rows give")


class _Columns(Exception):  # noqa: N818
    """A Parquet file with other columns."""


def _check_side(row: JsonObject, where: str, split: str, partition: Partition) -> Iterator[Finding]:
    standing = partition.standing_of(str(row["problem_id"]))
    if standing is None or SPLITS.get(standing.side) != split:
        side = Side(standing.side).value if standing else "nowhere"
        yield Finding(Code.SIDE, where, f"its problem stands {side} in the partition")
    elif standing.cluster != row["cluster"]:
        yield Finding(Code.SIDE, where, "the partition has its problem in another cluster")


def _parquet_rows(path: Path) -> Iterator[JsonObject]:
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(SCHEMA):
            raise _Columns
        for batch in file.iter_batches(batch_size=64):
            for row in batch.to_pylist():
                # As JSON has it: the two are compared.
                yield orjson.loads(orjson.dumps(row))


def _expected_files() -> list[str]:
    tables = [f"{s}/{n}.{k}" for s, _, n in _TABLES for k in ("parquet", "jsonl.zst")]
    return [*tables, manifests.PARTITION, manifests.REJECTS, manifests.CARD]
