"""The part of verification that needs no order: done in batches, by as many processes as help.

A batch goes out as bytes and comes back as a report and a few numbers for each record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from arena.records.merkle import leaf_hash
from arena.records.verification.contents import BROKEN, Opened, check_seal, open_record
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.materials import Materials, Workbench
from arena.records.verification.scores import check_run
from arena.runs.record import Kind
from arena.runs.seal import Seal


@dataclass(frozen=True, slots=True)
class LeafLine:
    """A leaf of the log as a source gives it: a seal's line (`Sealed.to_line`)."""

    place: str
    line: bytes


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record as a source gives it. `ref` is its number there, counted from 1."""

    place: str
    content: bytes
    seal_line: bytes | None
    ref: int


@dataclass(frozen=True, slots=True)
class SeenLeaf:
    """A leaf that was checked. None where it could not be read."""

    place: str
    seal: Seal | None = None
    seal_hash: bytes = b""
    leaf_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """What is remembered of a record that was checked."""

    place: str
    ref: int
    seal: Seal | None
    seal_hash: bytes
    record: int
    """The first eight bytes of the record's SHA-256."""
    run: int | None = None
    """The same of its run's id; None when the record could not be read."""
    kind: Kind = Kind.RUN
    judged: bool = False
    verdict_on: str | None = None
    """The hash that a later verdict names."""


@dataclass(frozen=True, slots=True)
class Task:
    """What every process is told once."""

    validators: frozenset[str]
    materials: Materials
    recompute: bool = True


class Worker:
    """Checks batches. One a process."""

    def __init__(self, task: Task) -> None:
        self._validators = task.validators
        self._bench = Workbench(task.materials) if task.recompute else None

    def leaves(self, batch: Sequence[LeafLine]) -> tuple[Report, list[SeenLeaf]]:
        """Check seals without their records."""
        report, seen = Report(), []
        for leaf in batch:
            sealed = check_seal(leaf.place, leaf.line, report, self._validators)
            if sealed is None:
                seen.append(SeenLeaf(leaf.place))
            else:
                digest = bytes.fromhex(sealed.hash)
                seen.append(SeenLeaf(leaf.place, sealed.seal, digest, leaf_hash(sealed.leaf)))
        return report, seen

    def records(self, batch: Sequence[RecordLine]) -> tuple[Report, list[SeenRecord]]:
        """Check records with their seals; decide again what their traces decide."""
        report = Report()
        return report, [self._record(line, report) for line in batch]

    def _record(self, line: RecordLine, report: Report) -> SeenRecord:
        sealed = check_seal(line.place, line.seal_line, report, self._validators)
        seal = sealed.seal if sealed else None
        digest = bytes.fromhex(sealed.hash) if sealed else b""
        opened = open_record(line.place, line.content, seal, report)
        if opened is None:
            record = short(hashlib.sha256(line.content).digest())
            return SeenRecord(line.place, line.ref, seal, digest, record)
        if opened.kind is Kind.RUN and self._bench is not None:
            self._check_run(opened, self._bench, report)
        elif opened.kind is Kind.RUN:
            report.uncheckable(Check.OUTCOME, "not asked for")
        return _seen(opened, line, seal, digest)

    def _check_run(self, opened: Opened, bench: Workbench, report: Report) -> None:
        """One record that cannot be checked is a finding, and does not keep the rest from
        being checked."""
        try:
            check_run(opened, bench, report)
        except BROKEN as error:
            detail = f"a field is of the wrong kind: {type(error).__name__}: {error!s:.200}"
            report.found(Code.RECORD_SCHEMA, Check.SCHEMA, opened.place, detail)


def _seen(opened: Opened, line: RecordLine, seal: Seal | None, digest: bytes) -> SeenRecord:
    value = opened.value
    later = opened.kind is Kind.VERDICT
    return SeenRecord(
        place=opened.place,
        ref=line.ref,
        seal=seal,
        seal_hash=digest,
        record=short(bytes.fromhex(opened.hash)),
        run=short_name(str(value["run_id"])),
        kind=opened.kind,
        judged=value["verdict"] is not None,
        verdict_on=str(value["record_hash"]) if later else None,
    )


def short(digest: bytes) -> int:
    """Eight bytes of a hash as a number: enough to find what stands twice among millions."""
    return int.from_bytes(digest[:8], "little")


def short_hash(digest: str) -> int:
    """The same of a hash in hex."""
    return int.from_bytes(bytes.fromhex(digest[:16]), "little")


def short_name(name: str) -> int:
    """The same for a run's id."""
    return short(hashlib.sha256(name.encode("utf-8", "backslashreplace")).digest())


_worker: Worker | None = None


def begin(task: Task) -> None:
    """Set up a process of the pool."""
    global _worker  # a pool's process has no other place to keep it
    _worker = Worker(task)


def check_leaves(batch: Sequence[LeafLine]) -> tuple[Report, list[SeenLeaf]]:
    """`Worker.leaves` in a process of the pool."""
    assert _worker is not None
    return _worker.leaves(batch)


def check_records(batch: Sequence[RecordLine]) -> tuple[Report, list[SeenRecord]]:
    """`Worker.records` in a process of the pool."""
    assert _worker is not None
    return _worker.records(batch)
