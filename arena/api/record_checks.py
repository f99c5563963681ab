"""What a sealed record must be before it is stored. Pure.

The checks of `arena records verify` that need no catalogue are made at the door, from the
same code: form, hash, signature, what follows from outcome and gate, citations, and what the
facts of the trace allow. Beside them stands what only the arena knows: whose run it is, of
which agent, on which problem. A record that does not hold is refused by the code of what was
found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, cast
from uuid import UUID

import zstandard

from arena.api.errors import Code, Refusal
from arena.records.verification.contents import Opened, check_seal, open_record
from arena.records.verification.findings import Report
from arena.records.verification.scores import (
    check_ceiling,
    check_citations,
    check_closed,
    check_score,
)
from arena.runs.record import EncodedRecord, Kind
from arena.runs.seal import SealedRecord
from arena.work.types import Evaluation
from scoring.outcome import Axes, Outcome
from scoring.types import Problem

AHEAD = timedelta(minutes=5)
"""How far a seal may be ahead of our clock: one of next year would wait a year for the log."""
_RUN_ID = re.compile(r"[0-9A-Za-z._-]{1,100}")
_CODE = re.compile(r"[0-9a-z_.]{1,100}")
_MAX_ATTEMPT = 1_000
_MAX_SECONDS = 1e6
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_WINDOW = 1 << 27
"""Memory that a frame may ask of its reader."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, unpacked."""

    batch: int
    record: int
    records: int
    """How many records."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Conditions under which records count; an empty set takes every one."""

    scoring_versions: frozenset[str] = frozenset()
    catalog_hashes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Read:
    """A record of a batch whose form, hash and signature hold. `index` counts from 0."""

    index: int
    sealed: SealedRecord
    opened: Opened

    @property
    def value(self) -> dict[str, Any]:
        """The record."""
        return cast("dict[str, Any]", self.opened.value)

    @property
    def run_id(self) -> str:
        """The attempt that it is of."""
        return str(self.value["run_id"])

    @property
    def closed(self) -> bool:
        """Whether it settles its problem: a run that failed by no fault of ours."""
        return self.sealed.sealed.seal.kind is Kind.RUN and bool(self.value["closed"])

    def refuse(self, code: Code, detail: str, **extra: str) -> NoReturn:
        """Raises Refusal, which names the record."""
        refuse(self.index, code, detail, **extra)

    def evaluation_id(self) -> UUID:
        """The evaluation that it belongs to. Raises Refusal."""
        said = self.value["race_id"]
        try:
            found = UUID(said)
        except (ValueError, TypeError, AttributeError):
            found = None
        if found is None or str(found) != said:
            self.refuse(Code.INVALID_RECORD, "its race_id is no evaluation")
        return found


@dataclass(frozen=True, slots=True)
class Expected:
    """What the arena knows of the evaluation that a run's record says it belongs to."""

    evaluation: Evaluation
    source_hash: str
    content_hashes: Mapping[str, str]
    """Of the problems, by id."""
    problem: Problem | None


def refuse(index: int, code: Code, detail: str, **extra: str) -> NoReturn:
    """Raises Refusal of a batch, by the record that is wrong."""
    raise Refusal(code, f"record {index}: {detail}", extra={"index": index, **extra})


def unpack(body: bytes, limits: Limits) -> list[tuple[bytes, bytes]]:
    """Content and seal of each record: frames of zstandard over JSON Lines, as in a spool.

    Raises Refusal for what is no such thing, or larger than the limits.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        with decompressor.stream_reader(body, read_across_frames=True) as reader:
            plain = reader.read(limits.batch + 1)
    except zstandard.ZstdError:
        raise Refusal(Code.INVALID_RECORD, "the body is no zstandard frame of records") from None
    if len(plain) > limits.batch:
        raise Refusal(
            Code.FILE_TOO_LARGE, f"the batch has more than {limits.batch} bytes", status=413
        )
    lines = plain.split(b"\n")
    if lines[-1] or len(lines) % 2 == 0 or len(lines) == 1:
        raise Refusal(
            Code.INVALID_RECORD, "a batch has two lines for each record, and one at least"
        )
    if len(lines) // 2 > limits.records:
        raise Refusal(
            Code.FILE_TOO_LARGE, f"a batch has at most {limits.records} records", status=413
        )
    pairs = list(zip(lines[:-1:2], lines[1:-1:2], strict=True))
    for index, (content, seal) in enumerate(pairs):
        if len(content) > limits.record or len(seal) > 10_000:
            refuse(index, Code.FILE_TOO_LARGE, f"it has more than {limits.record} bytes")
    return pairs


def read(index: int, content: bytes, line: bytes, hotkey: str, now: datetime) -> Read:
    """A record whose bytes are what its caller sealed. Raises Refusal."""
    report = Report()
    sealed = check_seal("seal", line, report, {hotkey})
    _raise(index, report, Code.INVALID_SEAL)
    assert sealed is not None
    if sealed.seal.time > now + AHEAD:
        refuse(index, Code.INVALID_SEAL, "its seal is of a time to come: is your clock right?")
    opened = open_record("record", content, sealed.seal, report)
    _raise(index, report, Code.INVALID_RECORD)
    assert opened is not None
    found = Read(index, SealedRecord(EncodedRecord(content), sealed), opened)
    run_id, verdict = found.value["run_id"], found.value["verdict"]
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        found.refuse(Code.INVALID_RECORD, "its run_id is none")
    if verdict is not None and type(verdict["standin"]) is not bool:
        found.refuse(Code.INVALID_RECORD, "its verdict does not say whether a stand-in gave it")
    return found


def check_run(record: Read, expected: Expected, accepted: Accepted) -> None:
    """A run's record against its evaluation. Raises Refusal."""
    _check_identity(record, expected)
    _check_conditions(record, accepted)
    _check_numbers(record)
    report = Report()
    check_closed(record.opened, report)
    outcome = record.value["outcome"]
    _check_outcome(record, outcome, expected)
    check_score("score", record.value, bool(outcome and outcome["success"]), report)
    verdict = record.value["verdict"]
    if verdict is not None:
        assert record.opened.trace is not None
        check_citations("verdict", verdict, record.opened.trace, report)
        check_ceiling("verdict", verdict, record.opened, expected.problem, report)
    _raise(record.index, report, Code.INVALID_RECORD)


def check_verdict(record: Read, run: Opened, sealer: str, problem: Problem | None) -> None:
    """A later verdict against the run's record, of `sealer`. Raises Refusal."""
    seal = record.sealed.sealed.seal
    value, judged = record.value, cast("dict[str, Any]", run.value)
    if sealer != seal.validator:
        record.refuse(Code.NOT_RUN_OWNER, "it judges a run of another validator")
    if (value["record_hash"], value["race_id"]) != (run.hash, judged["race_id"]):
        record.refuse(Code.INVALID_RECORD, "it is not of the run's record")
    if not judged["closed"] or judged["verdict"] is not None:
        record.refuse(Code.INVALID_RECORD, "the run has no outcome, or a verdict already")
    report = Report()
    check_score("score", value, bool(judged["outcome"]["success"]), report)
    assert run.trace is not None
    check_citations("verdict", value["verdict"], run.trace, report)
    check_ceiling("verdict", value["verdict"], run, problem, report)
    _raise(record.index, report, Code.INVALID_RECORD)


def _check_identity(record: Read, expected: Expected) -> None:
    """Of this agent, on a problem of this evaluation, in this phase."""
    value, evaluation = record.value, expected.evaluation
    agent, problem, version = value["agent"], value["problem"], str(evaluation.version)
    if (agent["label"], agent["version"]) != (version, version):
        record.refuse(
            Code.INVALID_RECORD, "it is of another agent version", finding="agent.version"
        )
    if agent["source_hash"] != expected.source_hash:
        record.refuse(Code.INVALID_RECORD, "it is of another file", finding="agent.source")
    if value["phase"] != evaluation.kind.value:
        record.refuse(Code.INVALID_RECORD, "it is of another phase", finding="phase")
    content = expected.content_hashes.get(problem["problem_id"])
    if content is None:
        record.refuse(Code.INVALID_PROBLEM_ID, "its problem is not in the evaluation")
    if problem["content_hash"] != content:
        record.refuse(Code.INVALID_RECORD, "its problem has other content", finding="problem")
    if (known := expected.problem) is not None:
        said = (problem["bucket"], problem["pool"], problem["cluster"])
        if said != (known.bucket.value, known.pool, known.cluster):
            record.refuse(
                Code.INVALID_RECORD, "its problem is labelled otherwise", finding="problem"
            )


def _check_conditions(record: Read, accepted: Accepted) -> None:
    conditions = record.value["conditions"]
    for name, known in (
        ("scoring_version", accepted.scoring_versions),
        ("catalog_hash", accepted.catalog_hashes),
    ):
        if known and conditions[name] not in known:
            record.refuse(
                Code.UNSUPPORTED_CONDITIONS, f"this arena takes no such {name}", finding=name
            )


def _check_numbers(record: Read) -> None:
    """What goes into columns of the database, in its bounds."""
    value = record.value
    timing, failure, axis = value["timing"], value["failure"], value["axis"]
    try:
        times = [datetime.fromisoformat(timing[name]) for name in ("started_at", "finished_at")]
        good = (
            type(value["attempt"]) is int
            and 1 <= value["attempt"] <= _MAX_ATTEMPT
            and _number(timing["wall_s"], _MAX_SECONDS)
            and all(time.tzinfo is not None and _EARLIEST < time < _LATEST for time in times)
            and (failure is None or bool(_CODE.fullmatch(failure["code"])))
            and (axis is None or (axis["axis"] in ("A", "B") and _ratio(axis)))
        )
    except (ValueError, TypeError, KeyError):
        good = False
    if not good:
        record.refuse(Code.INVALID_RECORD, "a number or a time is out of its bounds")


def _check_outcome(record: Read, outcome: Any, expected: Expected) -> None:
    """Shares from 0 to 1, and success exactly without a reason against it."""
    if outcome is None:
        return
    try:
        read = Outcome.from_json(outcome)
        good = (
            read.to_json() == outcome
            and isinstance(read.axes, Axes)
            and type(read.success) is bool
            and type(read.upstream_success) is bool
            and read.success is (read.reason is None)
            and read.bucket.value == record.value["problem"]["bucket"]
            and all(v is None or _number(v, 1.0) for v in read.axes.to_json().values())
            and all(_number(v, 1.0) for v in read.upstream_scores.values())
            and not (read.success and record.value["failure"] is not None)
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        good = False
    if not good:
        record.refuse(Code.INVALID_RECORD, "its outcome is none", finding="outcome")


def _ratio(axis: Mapping[str, Any]) -> bool:
    """Whether the agentic ratio is one, or none: the calendar reads it, and whatever it cannot
    read would keep the agent from ever being scored."""
    ratio = axis.get("agentic_ratio")
    return ratio is None or _number(ratio, 1.0)


def _number(value: object, most: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= most


def _raise(index: int, report: Report, code: Code) -> None:
    """Refuse by the first thing that was found."""
    for finding in report.findings:
        if not finding.code.is_notice:
            refuse(index, code, finding.detail, finding=finding.code.value)
