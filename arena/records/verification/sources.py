"""Where records to be verified come from: a race's directory, an export, or a database."""

from __future__ import annotations

import io
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import orjson
import zstandard

from arena.chain import Commitment
from arena.exceptions import LogHeadError, ProofError, SpoolError
from arena.records.heads import SignedHead, hashes
from arena.records.layout import (
    ANCHORS,
    COMMITMENTS,
    HEADS,
    MANIFEST,
    PROBLEMS,
    RECORDS,
    SEALS,
    SOURCES,
    file_hash,
)
from arena.records.merkle import CompactRange
from arena.records.proofs import InclusionProof
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.heads import PlacedHead
from arena.records.verification.materials import Materials
from arena.records.verification.work import LeafLine, RecordLine
from arena.runs.frames import DamagedFrameError, read_frame, read_spool
from scoring.types import JsonObject

BATCH_RECORDS = 64
BATCH_BYTES = 4 << 20
BATCH_LEAVES = 1_000
MAX_LINE_BYTES = 1 << 20
MAX_PROBLEM_BYTES = 16 << 20


class Source(Protocol):
    """A set of records with what belongs to it. Reading it trusts nothing of it."""

    name: str
    whole: bool
    """Whether a chain here begins with its first seal, or behind one that is anchored."""
    has_log: bool
    """Whether seals come as leaves of the log, apart from their records."""
    may_be_unlogged: bool
    """Whether there may be records of days that are not closed."""
    ordered: bool
    """Whether the seals of a validator stand in the order of their numbers."""

    def check_files(self, report: Report) -> None:
        """Whether the files are there and unchanged."""
        ...

    async def materials(self) -> Materials:
        """What it holds for recomputing."""
        ...

    async def heads(self, report: Report) -> list[PlacedHead]:
        """The log's heads."""
        ...

    async def commitments(self, report: Report) -> list[tuple[str, Commitment]]:
        """What is said to stand on chain, each with where it says so."""
        ...

    async def anchors(self, report: Report) -> list[tuple[str, InclusionProof]]:
        """Proven seals of earlier days that chains here go on from."""
        ...

    def start(self, report: Report) -> CompactRange:
        """The log before the first leaf that is given."""
        ...

    def leaves(self, report: Report) -> AsyncIterator[list[LeafLine]]:
        """The leaves of the log, in order, in batches."""
        ...

    def records(self, report: Report) -> AsyncIterator[list[RecordLine]]:
        """The records, in batches."""
        ...

    async def read(self, ref: int, record_hash: str) -> bytes | None:
        """A record that was given before."""
        ...


class RaceSource:
    """A race's directory: its spool, its agents' files and its problems."""

    has_log = False
    may_be_unlogged = False
    whole = False
    ordered = True

    def __init__(self, directory: Path, name: str | None = None) -> None:
        self._directory = directory
        self.name = name or directory.name
        self._spool = Spool(directory / RECORDS, f"{self.name}/{RECORDS}")

    def check_files(self, report: Report) -> None:
        """Whether there is a spool."""
        if not (self._directory / RECORDS).is_file():
            report.found(Code.FILE_MISSING, Check.FILES, self.name, f"there is no {RECORDS}")

    async def materials(self) -> Materials:
        """Its problems and its agents' files."""
        return _materials(self._directory)

    async def heads(self, report: Report) -> list[PlacedHead]:
        """None: a race knows no log."""
        return []

    async def commitments(self, report: Report) -> list[tuple[str, Commitment]]:
        """None."""
        return []

    async def anchors(self, report: Report) -> list[tuple[str, InclusionProof]]:
        """None."""
        return []

    def start(self, report: Report) -> CompactRange:
        """Nothing."""
        return CompactRange()

    async def leaves(self, report: Report) -> AsyncIterator[list[LeafLine]]:
        """None."""
        nothing: tuple[list[LeafLine], ...] = ()
        for batch in nothing:
            yield batch

    async def records(self, report: Report) -> AsyncIterator[list[RecordLine]]:
        """The records of the spool, in order."""
        for batch in self._spool.batches(report):
            yield batch

    async def read(self, ref: int, record_hash: str) -> bytes | None:
        """A record of the spool by its number."""
        return self._spool.read(ref)


class ExportSource:
    """A directory that `arena records export` wrote."""

    has_log = True
    may_be_unlogged = False
    whole = True
    ordered = False

    def __init__(self, directory: Path, name: str | None = None) -> None:
        """Raises ProofError when the directory holds no export."""
        self._directory = directory
        self.name = name or directory.name
        self._spool = Spool(directory / RECORDS, f"{self.name}/{RECORDS}")
        try:
            manifest = orjson.loads((directory / MANIFEST).read_bytes())
            self._files = {str(k): str(v["sha256"]) for k, v in manifest["files"].items()}
            self.day = str(manifest["day"])
            self.first = int(manifest["log"]["first"])
            self._subtrees = hashes(manifest["log"]["subtrees"])
            self._records = int(manifest["counts"]["records"])
        except OSError as error:
            raise ProofError(
                f"{directory} is no export: it has no {MANIFEST}",
                code="export.not_one",
                remedy="give a directory that `arena records export` wrote, or a race's",
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProofError(f"{directory / MANIFEST} cannot be read", code="export.bad") from error

    def check_files(self, report: Report) -> None:
        """Compare every file with the manifest."""
        for name, said in sorted(self._files.items()):
            place = f"{self.name}/{name}"
            path = self._directory / name
            if path.resolve().parent not in (
                self._directory.resolve(),
                (self._directory / SOURCES).resolve(),
            ):
                report.found(Code.FILE_CHANGED, Check.FILES, place, "a path that leads elsewhere")
            elif not path.is_file():
                detail = "the manifest names it, and it is not there"
                report.found(Code.FILE_MISSING, Check.FILES, place, detail)
            elif (digest := file_hash(path)) != said:
                detail = f"its SHA-256 is {digest}; the manifest says {said[:80]}"
                report.found(Code.FILE_CHANGED, Check.FILES, place, detail)
            else:
                report.passed(Check.FILES)

    async def materials(self) -> Materials:
        """The problems and sources that are released."""
        return _materials(self._directory)

    async def heads(self, report: Report) -> list[PlacedHead]:
        """Every line of the file of heads that is one."""
        found = []
        for place, line in self._lines(HEADS, report):
            try:
                signed = SignedHead.from_line(line)
                _ = signed.head
            except LogHeadError as error:
                report.found(Code.HEAD_BROKEN, Check.HEADS, place, error.message)
            else:
                found.append(PlacedHead(place, signed))
        if not found:
            report.found(Code.HEAD_MISSING, Check.HEADS, f"{self.name}/{HEADS}", "no head")
        return found

    async def commitments(self, report: Report) -> list[tuple[str, Commitment]]:
        """Every line of the file of commitments that is one."""
        found = []
        for place, line in self._lines(COMMITMENTS, report):
            try:
                value = orjson.loads(line)
                data = bytes.fromhex(value["data"])
                found.append((place, Commitment(str(value["address"]), data, int(value["block"]))))
            except (ValueError, KeyError, TypeError):
                detail = "a line that is no commitment"
                report.found(Code.COMMITMENT_BROKEN, Check.COMMITMENT, place, detail)
        return found

    async def anchors(self, report: Report) -> list[tuple[str, InclusionProof]]:
        """Every line of the file of anchors that is a proof."""
        found = []
        for place, line in self._lines(ANCHORS, report):
            try:
                found.append((place, InclusionProof.from_bytes(line)))
            except ProofError as error:
                report.found(Code.CHAIN_ANCHOR, Check.CHAIN, place, error.message)
        return found

    def start(self, report: Report) -> CompactRange:
        """The subtrees that the manifest names."""
        try:
            return CompactRange(self.first, self._subtrees)
        except ValueError as error:
            report.found(Code.LOG_ROOT, Check.LOG, f"{self.name}/{MANIFEST}", str(error))
            return CompactRange()

    async def leaves(self, report: Report) -> AsyncIterator[list[LeafLine]]:
        """The day's seals."""
        batch: list[LeafLine] = []
        for place, line in self._lines(SEALS, report):
            batch.append(LeafLine(place, line))
            if len(batch) >= BATCH_LEAVES:
                yield batch
                batch = []
        if batch:
            yield batch

    async def records(self, report: Report) -> AsyncIterator[list[RecordLine]]:
        """The records that are not withheld."""
        for batch in self._spool.batches(report):
            yield batch
        if self._spool.count != self._records:
            detail = f"it holds {self._spool.count} records; the manifest says {self._records}"
            report.found(Code.FILE_CUT, Check.FILES, f"{self.name}/{RECORDS}", detail)

    async def read(self, ref: int, record_hash: str) -> bytes | None:
        """A record by its number."""
        return self._spool.read(ref)

    def _lines(self, name: str, report: Report) -> Iterator[tuple[str, bytes]]:
        path = self._directory / name
        number = 0
        try:
            for number, line in enumerate(read_lines(path), start=1):
                yield f"{self.name}/{name}, line {number}", line
        except FileNotFoundError:
            detail = "it is not there"
            report.found(Code.FILE_MISSING, Check.FILES, f"{self.name}/{name}", detail)
        except (OSError, zstandard.ZstdError, ValueError) as error:
            detail = f"damaged after line {number}: {error}"
            report.found(Code.FILE_DAMAGED, Check.FILES, f"{self.name}/{name}", detail)


class Spool:
    """A file of frames, read in batches; its records are found again by number."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._offsets = array("Q")

    @property
    def count(self) -> int:
        """How many records were read."""
        return len(self._offsets)

    def batches(self, report: Report) -> Iterator[list[RecordLine]]:
        """Its records; damage and a cut end become findings."""
        batch: list[RecordLine] = []
        size = end = 0
        try:
            for frame in read_spool(self._path):
                self._offsets.append(frame.offset)
                content = frame.content.record.content
                place = f"{self._name}, record {self.count}"
                batch.append(RecordLine(place, content, frame.content.seal_line, self.count))
                size += len(content)
                end = frame.end
                if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            if (rest := self._path.stat().st_size - end) > 0:
                detail = f"after record {self.count} stand {rest} bytes of a record that was cut"
                report.found(Code.FILE_CUT, Check.FILES, self._name, detail)
        except DamagedFrameError as error:
            detail = f"damaged after record {self.count}; the rest was not read: {error.message}"
            report.found(Code.FILE_DAMAGED, Check.FILES, self._name, detail)
        except (SpoolError, OSError) as error:
            report.found(Code.FILE_UNREADABLE, Check.FILES, self._name, str(error))
        if batch:
            yield batch

    def read(self, ref: int) -> bytes | None:
        """The content of a record that was read before."""
        with self._path.open("rb") as file:
            frame = read_frame(file.fileno(), self._offsets[ref - 1])
        return frame.content.record.content if frame else None


def read_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a file, packed with zstandard or not. Raises ValueError for an endless one."""
    with path.open("rb") as raw:
        file: io.BufferedReader = raw
        if path.name.endswith(".zst"):
            unpacked = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            file = io.BufferedReader(unpacked)
        while line := file.readline(limit + 1):
            if len(line) > limit:
                raise ValueError(f"a line of more than {limit} bytes")
            if not line.endswith(b"\n"):
                raise ValueError("the last line is cut")
            yield line[:-1]


def read_problems(path: Path) -> Sequence[bytes]:
    """Problems as canonical JSON, one a line; none without the file."""
    try:
        return list(read_lines(path, MAX_PROBLEM_BYTES))
    except (OSError, ValueError, zstandard.ZstdError):
        return []


def _materials(directory: Path) -> Materials:
    sources: dict[str, bytes | Path] = {
        path.stem: path for path in sorted((directory / SOURCES).glob("*.py"))
    }
    return Materials(sources=sources).with_problems(read_problems(directory / PROBLEMS))


def open_source(path: Path) -> RaceSource | ExportSource:
    """What lies in a directory. Raises ProofError when it is neither."""
    if (path / MANIFEST).is_file():
        return ExportSource(path)
    if (path / RECORDS).is_file():
        return RaceSource(path)
    raise ProofError(
        f"{path} is no export and no race's directory",
        code="export.not_one",
        remedy="give a directory that `arena records export` or a race wrote",
    )


def manifest_of(path: Path) -> JsonObject:
    """The manifest of an export."""
    value: JsonObject = orjson.loads((path / MANIFEST).read_bytes())
    return value
