"""Judging of vectors: what passed, what failed, and the first differences.

Belongs to `arena conformance`. No I/O but what the catalogue does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from arena.conformance.vectors import (
    AnalysisVector,
    Kind,
    ScoringVector,
    SearchVector,
    Vector,
    VectorFile,
    WireVector,
)
from arena.exceptions import ConformanceError
from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ToolError
from scoring.exceptions import ArenaError, ProblemError
from scoring.types import Json, JsonObject

TOLERANCE = 1e-9
"""Vectors round floats to nine decimals."""
KEPT = 100
"""Differences kept of a kind."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A vector that failed. `got` is what this machine's code answers."""

    file: str
    line: int
    expected: Json
    got: Json

    def to_json(self) -> JsonObject:
        """Place, expected, got."""
        return {
            "file": self.file,
            "line": self.line,
            "expected": self.expected,
            "got": self.got,
        }


@dataclass(slots=True)
class Tally:
    """Results of one kind."""

    passed: int = 0
    failed: int = 0
    differences: list[Difference] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Counts and the first differences."""
        return {
            "passed": self.passed,
            "failed": self.failed,
            "differences": [difference.to_json() for difference in self.differences],
        }


def needs_catalog(file: VectorFile) -> bool:
    """Whether judging the file takes a catalogue."""
    if file.kind in (Kind.SEARCH, Kind.WIRE, Kind.TOOLS):
        return True
    return any(isinstance(v, ScoringVector) and v.products is None for _, v in file.vectors)


def judge(
    file: VectorFile, number: int, vector: Vector, catalog: Catalog | None
) -> Difference | None:
    """None where this machine agrees.

    Raises ConformanceError when the vector itself cannot be read.
    """
    got: Any
    try:
        expected, got = vector.judge(catalog)
    except ProblemError as error:
        raise ConformanceError(f"{file.path}, line {number}: {error.message}") from None
    except ToolError as error:
        expected, got = _expected(vector), {"error": error.message}
    except ArenaError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the judged code does wrong is a difference
        expected, got = _expected(vector), {"raised": f"{type(error).__name__}: {error}"}
    if same(expected, got):
        return None
    return Difference(str(file.path), number, cast("Json", expected), cast("Json", got))


def _expected(vector: Vector) -> Any:
    if isinstance(vector, SearchVector | WireVector):
        return vector.expected_product_ids
    return vector.tokens if isinstance(vector, AnalysisVector) else vector.expected


def same(expected: object, got: object) -> bool:
    """Equal as JSON: a number may be whole or not, floats agree to nine decimals."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(v, got[k]) for k, v in expected.items())
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return math.isclose(expected, got, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(expected) is type(got) and expected == got


def judge_files(
    files: Sequence[VectorFile],
    catalog: Catalog | None,
    advance: Callable[[], None] = lambda: None,
) -> dict[Kind, Tally]:
    """Judge every vector; kinds in the order of `Kind`."""
    tallies = {kind: Tally() for kind in Kind if any(f.kind is kind for f in files)}
    for file in files:
        tally = tallies[file.kind]
        for number, vector in file.vectors:
            difference = judge(file, number, vector, catalog)
            advance()
            if difference is None:
                tally.passed += 1
                continue
            tally.failed += 1
            if len(tally.differences) < KEPT:
                tally.differences.append(difference)
    return tallies
