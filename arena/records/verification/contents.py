"""One record and its seal: form, hash, signature. Pure, so that processes can share the work."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, cast

import orjson

from arena.exceptions import SealError
from arena.records.verification.findings import Check, Code, Report
from arena.runs.canonical import canonical
from arena.runs.record import RECORD_SCHEMA, Kind, RunRecord, RunSummary
from arena.runs.seal import SIGNATURE_BYTES, Seal, Sealed, signing_message
from arena.runs.signing import verify_signature
from arena.runs.verdicts import VerdictRecord, VerdictSummary
from judge.verdict import Verdict
from sandbox.trace import LlmEvent, Trace
from scoring.types import JsonObject

_RUN_FIELDS = {f.name for f in fields(RunRecord)} | {"schema", "kind", "closed"}
_VERDICT_FIELDS = {f.name for f in fields(VerdictRecord)} | {"schema", "kind"}
_HASH = re.compile(r"[0-9a-f]{64}")
BROKEN = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError),
)
"""What reading a record raises that has another value where its schema has one."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A record that could be read: its JSON, its kind and, of a run, its trace."""

    place: str
    hash: str
    kind: Kind
    value: JsonObject
    trace: Trace | None = None


def check_seal(
    place: str, line: bytes | None, report: Report, expected: Collection[str]
) -> Sealed | None:
    """The seal of a line, when it can be read; its signature and its validator are checked.

    `expected` are the validators that may seal; none named lets anyone.
    """
    if line is None:
        report.found(Code.SEAL_MISSING, Check.SIGNATURE, place, "nobody sealed this record")
        return None
    try:
        sealed = _sealed(line)
        seal = sealed.seal
    except SealError as error:
        report.found(Code.SEAL_BROKEN, Check.SIGNATURE, place, error.message)
        return None
    if verify_signature(seal.validator, signing_message(sealed.content), sealed.signature):
        report.passed(Check.SIGNATURE)
    else:
        detail = f"not a signature by {seal.validator} over seal {seal.sequence}"
        report.found(Code.SEAL_SIGNATURE, Check.SIGNATURE, place, detail)
    if not expected:
        report.uncheckable(Check.VALIDATOR, "no --validator was named")
    elif seal.validator in expected:
        report.passed(Check.VALIDATOR)
    else:
        detail = f"{seal.validator} is none of the validators that were named"
        report.found(Code.SEAL_UNEXPECTED_VALIDATOR, Check.VALIDATOR, place, detail)
    return sealed


def _sealed(line: bytes) -> Sealed:
    """As `Sealed.from_line`, and three times as fast on a line that is right.

    What a seal may hold is ASCII and whole numbers, and these `orjson` writes as RFC 8785
    does; `Sealed.seal` holds the rest to its bounds.
    """
    try:
        value = orjson.loads(line)
        content = orjson.dumps(value["seal"], option=orjson.OPT_SORT_KEYS)
        signature = bytes.fromhex(value["signature"])
        plain = b'{"seal":' + content + b',"signature":"' + signature.hex().encode() + b'"}'
        if plain == line and len(signature) == SIGNATURE_BYTES:
            return Sealed(content, signature)
    except (ValueError, KeyError, TypeError):
        pass
    return Sealed.from_line(line)


def open_record(place: str, content: bytes, seal: Seal | None, report: Report) -> Opened | None:
    """Check a record's bytes against its seal and its schema; None when it cannot be read."""
    digest = hashlib.sha256(content).hexdigest()
    if seal is not None:
        _check_against(place, content, digest, seal, report)
    try:
        value = orjson.loads(content)
    except ValueError:
        report.found(Code.RECORD_SCHEMA, Check.SCHEMA, place, "no JSON")
        return None
    if not isinstance(value, dict) or value.get("schema") != RECORD_SCHEMA:
        schema = value.get("schema") if isinstance(value, dict) else None
        detail = f"schema {schema!r}, known is {RECORD_SCHEMA}"
        report.found(Code.RECORD_SCHEMA, Check.SCHEMA, place, detail)
        return None
    opened = _read(place, digest, value, report)
    if opened is None:
        return None
    if not _is_canonical(value, content):
        detail = "not canonical JSON (RFC 8785): two readers may read it differently"
        report.found(Code.RECORD_NOT_CANONICAL, Check.SCHEMA, place, detail)
    elif seal is not None and opened.kind is not seal.kind:
        detail = f"a {opened.kind.value}, sealed as a {seal.kind.value}"
        report.found(Code.RECORD_KIND, Check.SCHEMA, place, detail)
    else:
        report.passed(Check.SCHEMA)
    return opened


def _check_against(place: str, content: bytes, digest: str, seal: Seal, report: Report) -> None:
    if digest != seal.record:
        detail = f"its SHA-256 is {digest}; seal {seal.sequence} is over {seal.record}"
        report.found(Code.RECORD_HASH, Check.CONTENT, place, detail)
    elif len(content) != seal.size:
        detail = f"it has {len(content)} bytes; its seal says {seal.size}"
        report.found(Code.RECORD_SIZE, Check.CONTENT, place, detail)
    else:
        report.passed(Check.CONTENT)


def _is_canonical(value: Any, content: bytes) -> bool:
    """RFC 8785, where the quick way cannot tell: some floats, keys beyond the first plane."""
    if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == content:
        return True
    return canonical(value) == content


def _read(place: str, digest: str, value: dict[str, Any], report: Report) -> Opened | None:
    code, what = Code.RECORD_SCHEMA, "a field is missing, or of the wrong kind"
    try:
        kind = Kind(value["kind"])
        if value.keys() != (_RUN_FIELDS if kind is Kind.RUN else _VERDICT_FIELDS):
            raise ValueError("other fields")
        trace: Trace | None = None
        if kind is Kind.RUN:
            _check_run(value)
            code, what = Code.RECORD_TRACE, "its trace is of no schema that is known here"
            trace = _trace(value["trace"])
            verdict = value["verdict"]
        else:
            summary = VerdictSummary.of(value)
            if not _HASH.fullmatch(summary.record_hash):
                raise ValueError("record_hash is no SHA-256")
            verdict = value["verdict"]
        code, what = Code.RECORD_VERDICT, "its verdict is of no schema that is known here"
        if verdict is not None:
            _check_verdict(Verdict.from_json(verdict))
    except BROKEN as error:
        detail = f"{what}: {type(error).__name__}: {error}"
        report.found(code, Check.SCHEMA, place, detail)
        return None
    return Opened(
        f"{place} ({value['run_id'][:80]})", digest, kind, cast("JsonObject", value), trace
    )


def _check_run(value: dict[str, Any]) -> None:
    """Raises for a field that would break who reads it."""
    RunSummary.of(value)
    if not (
        isinstance(value["run_id"], str)
        and type(value["closed"]) is bool
        and isinstance(value["problem"]["problem_id"], str)
        and isinstance(value["agent"]["source_hash"], str)
        and isinstance(value["conditions"]["catalog_hash"], str)
        and isinstance(value["conditions"]["scoring_version"], str)
        and isinstance(value["dialogue"], list | None)
        and isinstance(value["outcome"], dict | None)
        and isinstance(value["axis"], dict | None)
    ):
        raise TypeError("a field of the wrong kind")


def _trace(value: dict[str, Any]) -> Trace:
    trace = Trace.from_json(value)
    known = len(trace.messages)
    last = -1
    for event in trace.events:
        if type(event.seq) is not int or event.seq <= last:
            raise ValueError("events are out of order")
        last = event.seq
        if isinstance(event, LlmEvent) and not all(
            type(i) is int and 0 <= i < known for i in event.prompt
        ):
            raise ValueError(f"event {event.seq} names a message that is not there")
    if not all(isinstance(message, dict) for message in trace.messages):
        raise TypeError("a message is no object")
    return trace


def _check_verdict(verdict: Verdict) -> None:
    for span in verdict.evidence:
        numbers = (span.event, span.start, span.end)
        texts = (span.field, span.quote)
        if not all(type(n) is int for n in numbers) or not all(isinstance(t, str) for t in texts):
            raise TypeError("a citation of the wrong kind")
