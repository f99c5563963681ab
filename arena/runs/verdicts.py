"""A verdict that came after its run's record: a record of its own that links to the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from arena.runs.canonical import canonical
from arena.runs.record import RECORD_SCHEMA, EncodedRecord, Kind, slim
from judge.verdict import Verdict
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The verdict on a run whose own record has none.

    `record_hash` is the SHA-256 of that record's bytes; `judge` is what decided besides
    the trace; `judged_at` is RFC 3339 in UTC.
    """

    run_id: str
    race_id: str | None
    record_hash: str
    judged_at: str
    judge: JsonObject
    standins: tuple[str, ...]
    verdict: JsonObject
    coefficient: float
    final_score: float

    def to_json(self) -> JsonObject:
        """The JSON object that is made canonical and stored."""
        return {
            "schema": RECORD_SCHEMA,
            "kind": Kind.VERDICT.value,
            "run_id": self.run_id,
            "race_id": self.race_id,
            "record_hash": self.record_hash,
            "judged_at": self.judged_at,
            "judge": self.judge,
            "standins": list(self.standins),
            "verdict": self.verdict,
            "coefficient": self.coefficient,
            "final_score": self.final_score,
        }

    def encode(self) -> EncodedRecord:
        """Make the canonical bytes. Once: keep what this returns."""
        return EncodedRecord(canonical(self.to_json()))


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """What a race keeps in memory of a later verdict."""

    run_id: str
    record_hash: str
    judge: JsonObject
    verdict: Verdict
    coefficient: float
    final_score: float

    @classmethod
    def of(cls, record: JsonObject) -> VerdictSummary:
        """Read it from a record's JSON. Raises KeyError, TypeError or ValueError if broken."""
        return cls(
            run_id=cast("str", record["run_id"]),
            record_hash=cast("str", record["record_hash"]),
            judge=cast("JsonObject", record["judge"]),
            verdict=slim(Verdict.from_json(cast("JsonObject", record["verdict"]))),
            coefficient=float(cast("float", record["coefficient"])),
            final_score=float(cast("float", record["final_score"])),
        )
