"""The results of an evaluation on disk: a line a sample, which survives kill -9."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from arena.runs.record import RunRecord
from sandbox.trace import Trace
from scoring.exceptions import ErrorInfo, Fault
from scoring.outcome import Outcome
from scoring.types import Bucket, JsonObject
from training.evaluation.observing import Observed, observe
from training.exceptions import EvaluationError

RESULTS = "results.jsonl"
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class SampleResult:
    """What came of one sample of one problem.

    `outcome` is None while the sample is open: something that is not the agent's failed. An
    agent's own failure, a crash or a time-out, has an outcome and its `failure`.
    """

    problem_id: str
    bucket: Bucket
    cluster: str | None
    sample: int
    run_id: str
    outcome: Outcome | None
    observed: Observed = field(default_factory=Observed)
    failure: ErrorInfo | None = None
    wall_s: float = 0.0

    @property
    def success(self) -> bool:
        """Strict success."""
        return self.outcome is not None and self.outcome.success

    @property
    def recommended(self) -> bool:
        """Whether it recommended anything at all."""
        return self.outcome is not None and bool(self.outcome.recommended_ids)

    @classmethod
    def of(cls, record: RunRecord, sample: int) -> SampleResult:
        """Read it from the record of a run."""
        outcome = Outcome.from_json(record.outcome) if record.outcome is not None else None
        return cls(
            problem_id=record.problem.problem_id,
            bucket=Bucket(record.problem.bucket),
            cluster=record.problem.cluster,
            sample=sample,
            run_id=record.run_id,
            outcome=outcome if record.closed else None,
            observed=observe(Trace.from_json(record.trace)),
            failure=record.failure,
            wall_s=round(record.timing.wall_s, 3),
        )

    def to_json(self) -> JsonObject:
        """A line of the file."""
        return {
            "schema": _SCHEMA,
            "problem_id": self.problem_id,
            "bucket": self.bucket.value,
            "cluster": self.cluster,
            "sample": self.sample,
            "run_id": self.run_id,
            "success": self.success if self.outcome else None,
            "recommended": self.recommended if self.outcome else None,
            "outcome": self.outcome.to_json() if self.outcome else None,
            "observed": self.observed.to_json(),
            "failure": cast("JsonObject", self.failure.to_json()) if self.failure else None,
            "wall_s": self.wall_s,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> SampleResult:
        """Read what `to_json` wrote. Raises ValueError, KeyError or TypeError otherwise."""
        if value["schema"] != _SCHEMA:
            raise ValueError(f"schema {value['schema']!r}, expected {_SCHEMA}")
        outcome = cast("JsonObject | None", value["outcome"])
        failure = cast("dict[str, str] | None", value["failure"])
        return cls(
            problem_id=cast("str", value["problem_id"]),
            bucket=Bucket(cast("str", value["bucket"])),
            cluster=cast("str | None", value["cluster"]),
            sample=cast("int", value["sample"]),
            run_id=cast("str", value["run_id"]),
            outcome=Outcome.from_json(outcome) if outcome else None,
            observed=Observed(**cast("dict[str, int]", value["observed"])),
            failure=ErrorInfo.from_json(failure) if failure else None,
            wall_s=float(cast("float", value["wall_s"])),
        )


class ResultFile:
    """The open file. `add` returns when the disk has the line; one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded = read_results(path, mend=True) if path.exists() else ()
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise EvaluationError(f"{path}: {error.strerror}") from error

    def add(self, result: SampleResult) -> None:
        """Append a line. Raises EvaluationError when the disk does not take it whole."""
        line = json.dumps(result.to_json(), ensure_ascii=False).encode("utf-8", "replace")
        end = self._file.tell()
        try:
            self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            os.truncate(self.path, end)
            raise EvaluationError(
                f"{self.path}: {error.strerror}",
                fault=Fault.CALLER,
                remedy="make room on the disk and start again with the same --out",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_results(path: Path, *, mend: bool = False) -> tuple[SampleResult, ...]:
    """All whole lines, oldest first. With `mend` a half-written last line is cut off.

    Raises EvaluationError for a file that cannot be read.
    """
    try:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        results = tuple(SampleResult.from_json(json.loads(x)) for x in whole.splitlines())
        if mend and len(whole) < len(content):
            os.truncate(path, len(whole))
    except OSError as error:
        raise EvaluationError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(
            f"{path} is no file of evaluation results: {error}",
            remedy="give --out a new directory",
        ) from error
    return results


def latest(results: Iterable[SampleResult]) -> dict[tuple[str, int], SampleResult]:
    """The last result of each problem's each sample; an open one was run again."""
    return {(result.problem_id, result.sample): result for result in results}
