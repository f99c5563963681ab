"""The unsigned record of one run: everything that is known of it, as canonical bytes.

The bytes are made once, when the run ends; whoever stores, hashes, signs or verifies
uses those bytes and never makes them again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal, cast

from arena.runs.canonical import canonical
from judge.verdict import Judgement, Unjudged, Verdict
from scoring.exceptions import ErrorInfo, Fault
from scoring.types import Json, JsonObject

RECORD_SCHEMA = 1


class Kind(StrEnum):
    """What a record is of: a run, or a verdict that came after its run's record."""

    RUN = "run"
    VERDICT = "verdict"


LOG_TAIL_CHARS = 8_192
"""How much of the end of an agent's log a record keeps."""


@dataclass(frozen=True, slots=True)
class AgentRef:
    """Which agent ran. `label` is its name made distinct within the race."""

    label: str
    name: str
    source_hash: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ProblemRef:
    """Which problem it ran on; no query, no reward.

    `content_hash` is the SHA-256 of the problem as canonical JSON, with both: it binds the
    record to what decided its outcome. None only in records from before there were seals.
    """

    problem_id: str
    bucket: str
    cluster: str | None = None
    pool: str | None = None
    content_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides a result besides agent and problem.

    `standins` names every stand-in that took part, such as `model:standin/shopper`.
    `environment` is what `Isolation.environment` said; its hash is in the record too.
    `judge` is what decides a verdict besides the trace; None when no judge was asked.
    """

    catalog_hash: str
    catalog_engine: str
    scoring_version: str
    model: str | None
    standins: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    judge: JsonObject | None = None

    @property
    def environment_hash(self) -> str:
        """SHA-256 of the canonical environment."""
        return hashlib.sha256(canonical(dict(self.environment))).hexdigest()


@dataclass(frozen=True, slots=True)
class Timing:
    """When, and how long. `wall_s` is all of it, `excused_s` the part that queues and
    providers took; times of day are RFC 3339 in UTC."""

    started_at: str
    finished_at: str
    wall_s: float
    excused_s: float = 0.0
    cpu_s: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One attempt of one agent at one problem.

    `failure` without an agent's fault leaves the problem *open*: it has no outcome and
    is tried again. In every other case it is *closed* and `outcome` is there.
    `verdict`, `coefficient` and `final_score` (success times coefficient) are None until
    a judge has spoken; `unjudged` then says why none did, when one was asked.
    """

    run_id: str
    race_id: str | None
    phase: str
    attempt: int
    agent: AgentRef
    problem: ProblemRef
    conditions: Conditions
    timing: Timing
    trace: JsonObject
    dialogue: tuple[JsonObject, ...] | None
    outcome: JsonObject | None
    axis: JsonObject | None
    failure: ErrorInfo | None = None
    notes: tuple[ErrorInfo, ...] = ()
    log_tail: str = ""
    verdict: JsonObject | None = None
    unjudged: JsonObject | None = None
    coefficient: float | None = None
    final_score: float | None = None

    @property
    def closed(self) -> bool:
        """Whether this attempt settles the problem."""
        return self.failure is None or self.failure.fault is Fault.AGENT

    def to_json(self) -> JsonObject:
        """The JSON object that is made canonical and stored."""
        return {
            "schema": RECORD_SCHEMA,
            "kind": Kind.RUN.value,
            "run_id": self.run_id,
            "race_id": self.race_id,
            "phase": self.phase,
            "attempt": self.attempt,
            "agent": _fields(self.agent),
            "problem": _fields(self.problem),
            "conditions": {
                **_fields(self.conditions),
                "environment_hash": self.conditions.environment_hash,
            },
            "timing": _fields(self.timing),
            "trace": self.trace,
            "dialogue": None if self.dialogue is None else list(self.dialogue),
            "outcome": self.outcome,
            "axis": self.axis,
            "closed": self.closed,
            "failure": _error(self.failure),
            "notes": [_error(note) for note in self.notes],
            "log_tail": self.log_tail[-LOG_TAIL_CHARS:],
            "verdict": self.verdict,
            "unjudged": self.unjudged,
            "coefficient": self.coefficient,
            "final_score": self.final_score,
        }

    def encode(self) -> EncodedRecord:
        """Make the canonical bytes. Once: keep what this returns."""
        return EncodedRecord(canonical(self.to_json()))


@dataclass(frozen=True)
class EncodedRecord:
    """A record as bytes, with what a store or a report reads from it."""

    content: bytes

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the bytes, lower-case hex."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def value(self) -> JsonObject:
        """The record as JSON. Raises ValueError when it is of another schema."""
        value = json.loads(self.content)
        if not isinstance(value, dict) or value.get("schema") != RECORD_SCHEMA:
            raise ValueError(f"not a record of schema {RECORD_SCHEMA}")
        return cast("JsonObject", value)

    @property
    def kind(self) -> Kind:
        """What it is a record of. Raises ValueError as `value`."""
        return Kind(cast("str", self.value.get("kind", Kind.RUN.value)))


def record_key(kind: Kind, run_id: str) -> str:
    """The key of a record of this kind on this run."""
    return run_id if kind is Kind.RUN else f"{run_id}/{kind.value}"


Axis = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a race keeps in memory of an attempt: enough to go on and to report."""

    run_id: str
    agent: str
    problem_id: str
    bucket: str
    attempt: int
    closed: bool
    outcome: JsonObject | None
    axis: str | None
    failure: ErrorInfo | None
    wall_s: float
    judgement: Judgement | None = None
    """Without the evidence; None when no judge was asked."""
    coefficient: float | None = None
    final_score: float | None = None

    @classmethod
    def of(cls, record: JsonObject) -> RunSummary:
        """Read it from a record's JSON. Raises KeyError or TypeError on a broken one."""
        agent = cast("JsonObject", record["agent"])
        problem = cast("JsonObject", record["problem"])
        timing = cast("JsonObject", record["timing"])
        axis = cast("JsonObject | None", record["axis"])
        failure = cast("dict[str, str] | None", record["failure"])
        return cls(
            run_id=cast("str", record["run_id"]),
            agent=cast("str", agent["label"]),
            problem_id=cast("str", problem["problem_id"]),
            bucket=cast("str", problem["bucket"]),
            attempt=cast("int", record["attempt"]),
            closed=cast("bool", record["closed"]),
            outcome=cast("JsonObject | None", record["outcome"]),
            axis=cast("str", axis["axis"]) if axis else None,
            failure=ErrorInfo.from_json(failure) if failure else None,
            wall_s=float(cast("float", timing["wall_s"])),
            judgement=_judgement(record),
            coefficient=_number(record.get("coefficient")),
            final_score=_number(record.get("final_score")),
        )

    @property
    def judged(self) -> bool:
        """Whether a judge has spoken."""
        return isinstance(self.judgement, Verdict)

    @property
    def quality(self) -> float | None:
        """What the judge says the reasoning is worth, 0 to 1."""
        return self.judgement.quality if isinstance(self.judgement, Verdict) else None

    @property
    def success(self) -> bool:
        """Strict success; False for a failed run and for one that is open."""
        return bool(self.outcome and self.outcome["success"])

    @property
    def success_upstream(self) -> bool:
        """Success by the upstream rule."""
        return bool(self.outcome and self.outcome["upstream_success"])


def slim(verdict: Verdict) -> Verdict:
    """A verdict without its citations, which only the record needs."""
    return replace(verdict, evidence=())


def _judgement(record: JsonObject) -> Judgement | None:
    verdict = cast("JsonObject | None", record.get("verdict"))
    if verdict is not None:
        return slim(Verdict.from_json(verdict))
    unjudged = cast("JsonObject | None", record.get("unjudged"))
    if unjudged is None:
        return None
    return Unjudged(
        reason=ErrorInfo.from_json(cast("dict[str, str]", unjudged["unjudged"])),
        calls=cast("int", unjudged["calls"]),
        failures=tuple(cast("list[str]", unjudged["failures"])),
    )


def _number(value: Json) -> float | None:
    return None if value is None else float(cast("float", value))


def _error(error: ErrorInfo | None) -> Json:
    return None if error is None else cast("Json", error.to_json())


def _fields(value: AgentRef | ProblemRef | Conditions | Timing) -> dict[str, Json]:
    names = type(value).__slots__
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: object) -> Json:
    return cast("Json", list(value) if isinstance(value, tuple) else value)
