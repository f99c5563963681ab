"""What is remembered of every record until all were seen: numbers in packed arrays.

Enough to find a run that stands twice, and the run that a later verdict is about: 26 bytes
a record.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.work import SeenRecord, short_hash
from arena.runs.record import Kind

_IS_VERDICT = 1
_IS_JUDGED = 2


@dataclass(frozen=True, slots=True)
class LaterVerdict:
    """A verdict record, and what it says that it is about."""

    place: str
    ref: int
    source: int
    run: int
    record_hash: str


class RecordIndex:
    """All records of all sources, by run and by hash."""

    def __init__(self) -> None:
        self._runs = array("Q")
        self._hashes = array("Q")
        self._refs = array("Q")
        self._sources = array("B")
        self._flags = array("B")
        self.verdicts: list[LaterVerdict] = []

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, seen: SeenRecord, source: int) -> None:
        """Take in a record that could be read."""
        if seen.run is None:
            return
        verdict = seen.kind is Kind.VERDICT
        self._runs.append(seen.run)
        self._hashes.append(seen.record)
        self._refs.append(seen.ref)
        self._sources.append(source)
        self._flags.append(_IS_VERDICT * verdict | _IS_JUDGED * seen.judged)
        if verdict:
            record_hash = seen.verdict_on or ""
            self.verdicts.append(LaterVerdict(seen.place, seen.ref, source, seen.run, record_hash))

    def check_twice(self, names: list[str], report: Report) -> None:
        """Records of one run that stand twice; `names` are the sources'."""
        of_runs = np.flatnonzero((_view(self._flags, np.uint8) & _IS_VERDICT) == 0)
        again = list(_repeated(_view(self._runs, np.uint64)[of_runs]))
        for first, other in again:
            one, two = self._where(of_runs[first], names), self._where(of_runs[other], names)
            detail = f"the same run stands in {one}"
            report.found(Code.RECORD_DUPLICATE_RUN, Check.RUN_IDS, two, detail)
        report.passed(Check.RUN_IDS, len(of_runs) - len(again))

    def freeze(self) -> Lookup:
        """The index for looking up, once all records are in."""
        return Lookup(self)

    def _where(self, at: int, names: list[str]) -> str:
        return f"{names[self._sources[at]]}, record {self._refs[at]}"


class Lookup:
    """Finds runs by their record's hash and by their id."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index
        self._runs = _Column(index._runs)
        self._hashes = _Column(index._hashes)

    def run_of(self, verdict: LaterVerdict) -> tuple[int, int, bool] | None:
        """Source and ref of the record that a verdict names, and whether it was judged then."""
        index = self._index
        for at in self._hashes.find(short_hash(verdict.record_hash)):
            if not index._flags[at] & _IS_VERDICT:
                return index._sources[at], index._refs[at], bool(index._flags[at] & _IS_JUDGED)
        return None

    def has_run(self, run: int) -> bool:
        """Whether a record of this run is here."""
        return any(not self._index._flags[at] & _IS_VERDICT for at in self._runs.find(run))


class _Column:
    """A column in order, for looking values up."""

    def __init__(self, column: Any) -> None:
        values = _view(column, np.uint64)
        self._order = np.argsort(values, kind="stable")
        self._held = values[self._order]

    def find(self, value: int) -> list[int]:
        """Where the value stands."""
        wanted = np.uint64(value)
        left = np.searchsorted(self._held, wanted, "left")
        right = np.searchsorted(self._held, wanted, "right")
        return [int(at) for at in self._order[left:right]]


def _view(column: Any, kind: Any) -> Any:
    """A packed column as numbers; an empty one has no buffer to look at."""
    return np.frombuffer(column, kind) if len(column) else np.empty(0, kind)


def repeated(column: Any) -> Iterator[tuple[int, int]]:
    """Places of a packed column of 64-bit numbers that hold what an earlier place holds."""
    return _repeated(_view(column, np.uint64))


def _repeated(values: Any) -> Iterator[tuple[int, int]]:
    """Pairs of places that hold the same value: each later one with the first."""
    order = np.argsort(values, kind="stable")
    held = values[order]
    same = np.flatnonzero(held[1:] == held[:-1])
    first = -1
    for at in map(int, same):
        if first < 0 or held[first] != held[at]:
            first = at
        yield int(order[first]), int(order[at + 1])
