"""Where an export's records come from: streamed, in pages, from where a killed one stopped.

A page is small whatever the source holds, so that memory stays flat. Files are read here,
the database in `corpus_export/database.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import zstandard

from arena.exceptions import SpoolError
from arena.records.layout import COMMITMENTS, HEADS, MANIFEST, PROBLEMS, RECORDS
from arena.runs.frames import Frame, read_spool
from arena.runs.seal import Sealed
from arena.runs.verdicts import VerdictSummary
from corpus_export.exceptions import BrokenSourceError
from corpus_export.rejects import read_lines
from corpus_export.rows import Verdict
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import JsonObject, Problem

PAGE_RECORDS = 64
PAGE_BYTES = 8 << 20
"""A page ends when it has so many records, or so many bytes of them."""
_VERDICT = b'"kind":"verdict"'
_OF_RUN = b'{"agent":'
"""How the canonical JSON of a run's record begins; a later verdict's has no agent."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A run's record as it is stored. `seal` is a line of a file, not read yet, or a seal.

    `commit` names the commitment on chain that vouches for it: address, block and data.
    """

    content: bytes
    seal: Sealed | bytes | None = None
    verdict: Verdict | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some records in the order of the source. `cursor` says where the next page begins."""

    records: tuple[RawRecord, ...]
    cursor: str


class RecordSource(Protocol):
    """Run records with their later verdicts, in one order that never changes."""

    def describe(self) -> JsonObject:
        """What tells this source's content from another's; two with the same are the same."""
        ...

    def problems(self) -> Sequence[Problem]:
        """The problems of these records, as far as the source has them; in a fixed order."""
        ...

    def head(self) -> JsonObject | None:
        """The signed head of the day's transparency log, when there is one."""
        ...

    def pages(self, after: str | None = None) -> Iterator[Page]:
        """All pages, or those behind a cursor. Raises BrokenSourceError or a store's error."""
        ...


@dataclass(frozen=True, slots=True)
class _Exported:
    """What a records export says of its day: the log's head and the commitment that vouches
    for it, if there is one; `public` exports hold only what is released."""

    public: bool
    head: JsonObject | None
    commit: str | None


class FileSource:
    """Directories with a spool: of races, and records exports (`arena records export`)."""

    def __init__(self, directories: Sequence[Path]) -> None:
        for directory in directories:
            if not (directory / RECORDS).is_file():
                raise BrokenSourceError(
                    f"{directory} is no race's directory and no records export:"
                    f" it has no {RECORDS}",
                    remedy="give the --out of a race, or of arena records export",
                )
        self._spools = [directory / RECORDS for directory in directories]
        self._exported = [_exported(directory) for directory in directories]
        self._problems = _one_each(p for where in directories for p in _problems_of(where))
        self._verdicts: dict[str, Verdict] = {}
        self._ends: list[int] = []
        self._described = self._scan()

    @property
    def released(self) -> bool:
        """Whether all of it is public: records exports for everybody, and nothing else."""
        return all(one is not None and one.public for one in self._exported)

    def describe(self) -> JsonObject:
        """Hashes of the whole frames of each file: a half-written end does not count."""
        return self._described

    def problems(self) -> Sequence[Problem]:
        """Those that the directories hold; races of older versions hold none."""
        return self._problems

    def head(self) -> JsonObject | None:
        """Of the one records export that is read; races have none."""
        (only, *more) = self._exported
        return None if more or only is None else only.head

    def pages(self, after: str | None = None) -> Iterator[Page]:
        """As `RecordSource.pages`."""
        first, offset = (0, 0) if after is None else cast("list[int]", json.loads(after))
        for number in range(first, len(self._spools)):
            start = offset if number == first else 0
            yield from self._pages_of(number, start)

    def _pages_of(self, number: int, offset: int) -> Iterator[Page]:
        records: list[RawRecord] = []
        size = 0
        exported = self._exported[number]
        commit = exported.commit if exported else None
        for frame in _frames(self._spools[number], offset):
            if frame.offset >= self._ends[number]:
                break  # it came after the scan
            offset = frame.end
            content = frame.content.record.content
            if _is_verdict(content):
                continue
            verdict = self._verdicts.get(frame.content.record.hash)
            records.append(RawRecord(content, frame.content.seal_line, verdict, commit))
            size += len(content)
            if len(records) == PAGE_RECORDS or size >= PAGE_BYTES:
                yield Page(tuple(records), json.dumps([number, offset]))
                records, size = [], 0
        if records:
            yield Page(tuple(records), json.dumps([number, offset]))

    def _scan(self) -> JsonObject:
        """Read everything once: later verdicts stand anywhere behind their runs."""
        digest = hashlib.sha256()
        runs = verdicts = 0
        for spool in self._spools:
            end = 0
            for frame in _frames(spool):
                end = frame.end
                record = frame.content.record
                digest.update(bytes.fromhex(record.hash))
                digest.update(hashlib.sha256(frame.content.seal_line or b"").digest())
                if not _is_verdict(record.content):
                    runs += 1
                    continue
                verdicts += 1
                # The first verdict on a run stays.
                try:
                    run, verdict = read_later(record.content, record.hash)
                except (ValueError, KeyError, TypeError) as error:
                    raise BrokenSourceError(
                        f"{spool}: a verdict cannot be read: {error!r:.200}"
                    ) from error
                self._verdicts.setdefault(run, verdict)
            self._ends.append(end)
        return {"kind": "files", "files": len(self._spools), "runs": runs,
                "verdicts": verdicts, "content": digest.hexdigest()}  # fmt: skip


def _frames(spool: Path, offset: int = 0) -> Iterator[Frame]:
    try:
        yield from read_spool(spool, offset)
    except SpoolError as error:
        raise BrokenSourceError(error.message, remedy=error.remedy) from error


def _is_verdict(content: bytes) -> bool:
    return not content.startswith(_OF_RUN) and _VERDICT in content


def read_later(content: bytes, record_hash: str) -> tuple[str, Verdict]:
    """The hash of the run's record that a later verdict is on, and the verdict.

    Raises ValueError, KeyError or TypeError when it cannot be read.
    """
    value = cast("JsonObject", json.loads(content))
    found = VerdictSummary.of(value)
    return found.record_hash, Verdict(
        quality=found.verdict.quality,
        gate=found.verdict.gate.value,
        coefficient=found.coefficient,
        final_score=found.final_score,
        record_hash=record_hash,
        standins=tuple(cast("list[str]", value["standins"])),
    )


def _problems_of(directory: Path) -> Iterator[Problem]:
    """The problems that a directory holds. Raises BrokenSourceError."""
    path = directory / PROBLEMS
    try:
        for value in read_lines(path) if path.exists() else ():
            yield read_problem(value, problem_id="")
    except (OSError, ValueError, ProblemError, zstandard.ZstdError) as error:
        raise BrokenSourceError(f"{path} cannot be read: {error!s:.200}") from error


def _one_each(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once. Raises BrokenSourceError for an id that two of them have: what is
    trained on under it would be what another asked, perhaps one of evaluation."""
    found: dict[str, Problem] = {}
    for problem in problems:
        known = found.setdefault(problem.problem_id, problem)
        if (known.query, known.rewards, known.voucher) != (
            problem.query,
            problem.rewards,
            problem.voucher,
        ):
            raise BrokenSourceError(
                f"two different problems are called {problem.problem_id[:80]!r}",
                remedy="export their races each by itself",
            )
    return list(found.values())


def _exported(directory: Path) -> _Exported | None:
    """What a records export says of itself; None for a race's directory."""
    if not (directory / MANIFEST).is_file():
        return None
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        day, hashed = str(manifest["day"]), str(manifest["log"]["head"])
        heads = [json.loads(line) for line in (directory / HEADS).read_bytes().splitlines()]
        commitments = (directory / COMMITMENTS).read_bytes().splitlines()
        named = [json.loads(line) for line in commitments]
        of_day = [f"{c['address']}@{c['block']}:{c['data']}" for c in named if c["day"] == day]
        return _Exported(
            public=bool(manifest["public"]),
            head={"hash": hashed, "signed": heads[-1]},
            commit=of_day[0] if of_day else None,
        )
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BrokenSourceError(
            f"{directory / MANIFEST} cannot be read: {error!r:.200}",
            remedy=f"arena records verify {directory}",
        ) from error
