"""Test vectors: one line of JSON each, an input with the output that everyone must give.

The kinds are told apart by their fields. Every vector judges itself with the code that
races use. Belongs to `arena conformance`; reads vector files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from arena.exceptions import ConformanceError
from sandbox.catalog.analysis import analyse
from sandbox.catalog.interface import Catalog
from sandbox.gateway import wire
from sandbox.tools import call_tool
from scoring.attempt import read_attempt
from scoring.coefficient import coefficient
from scoring.exceptions import ScoringError
from scoring.outcome import score
from scoring.reading import read_problem, read_product
from scoring.types import JsonObject
from scoring.weights import Finisher, weight_vector


class Kind(StrEnum):
    """The kinds of vectors."""

    ANALYSIS = "analysis"
    SEARCH = "search"
    WIRE = "wire"
    TOOLS = "tools"
    SCORING = "scoring"
    COEFFICIENT = "coefficient"
    WEIGHTS = "weights"


class _Vector(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class AnalysisVector(_Vector):
    """A text and its index terms."""

    text: str
    tokens: list[str]

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        return self.tokens, analyse(self.text)


class SearchArguments(_Vector):
    """The arguments of one search, without the tool's relaxations."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    q: str
    page: int = 1
    shop_id: str | None = None
    price: str | None = None
    sort: str | None = None
    service: str | None = None


class SearchVector(_Vector):
    """A search and the ids it finds, in order."""

    args: SearchArguments
    expected_product_ids: list[str]

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        given = self.args.model_dump(exclude={"service"})
        services = self.args.service.split(",") if self.args.service else []
        found = _needed(catalog).find(service=services, **given)
        return self.expected_product_ids, [product.product_id for product in found]


class WireVector(_Vector):
    """A request line as agents send it, and the ids in its answer."""

    get: str
    expected_product_ids: list[str]

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        answer = wire.answer(wire.parse_target(self.get), _needed(catalog))
        listed = cast("list[JsonObject]", answer)
        return self.expected_product_ids, [product["product_id"] for product in listed]


class ToolVector(_Vector):
    """A tool call and its answer."""

    tool: str
    args: dict[str, Any]
    expected: Any

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        return self.expected, call_tool(self.tool, self.args, _needed(catalog))


class ScoringVector(_Vector):
    """A problem and a dialogue, upstream's rule scores and its success."""

    problem: dict[str, Any]
    dialogue: Any
    expected: dict[str, float]
    success: bool
    bucket: str | None = None
    products: list[Any] | None = None
    title_model: None = None

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        problem = read_problem(self.problem, problem_id="vector")
        attempt = read_attempt(self.dialogue)
        if self.products is None:
            products = _needed(catalog).products(attempt.ids)
        else:
            products = {p.product_id: p for p in map(read_product, self.products)}
        outcome = score(problem, attempt, products)
        return (
            {"bucket": self.bucket or problem.bucket.value, "success": self.success}
            | self.expected,
            {"bucket": problem.bucket.value, "success": outcome.upstream_success}
            | dict(outcome.upstream_scores),
        )


class CoefficientVector(_Vector):
    """A quality and its coefficient."""

    quality: float
    expected: float

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        return self.expected, coefficient(self.quality)


class FinisherVector(_Vector):
    """One agent of a race."""

    miner_hotkey: str
    agent_version_id: str
    race_score: float


class WeightsExpected(_Vector):
    """The vector, or that there is none."""

    weights: list[int] | None = None
    error: bool | None = None


class WeightsVector(_Vector):
    """The finishers of a race, the metagraph and the weights on chain."""

    finishers: list[FinisherVector]
    metagraph_hotkeys: list[str]
    top_share: float
    burn_share: float
    expected: WeightsExpected

    def judge(self, catalog: Catalog | None) -> tuple[Any, Any]:
        """Expected and got."""
        got: JsonObject
        try:
            weights = weight_vector(
                [Finisher(**f.model_dump()) for f in self.finishers],
                self.metagraph_hotkeys,
                top_share=self.top_share,
                burn_share=self.burn_share,
            )
            got = {"weights": list(weights)}
        except ScoringError:
            got = {"error": True}
        return self.expected.model_dump(exclude_none=True), got


Vector = (
    AnalysisVector
    | SearchVector
    | WireVector
    | ToolVector
    | ScoringVector
    | CoefficientVector
    | WeightsVector
)

_MODELS: dict[Kind, tuple[type[Vector], frozenset[str]]] = {
    Kind.ANALYSIS: (AnalysisVector, frozenset({"text", "tokens"})),
    Kind.SEARCH: (SearchVector, frozenset({"args", "expected_product_ids"})),
    Kind.WIRE: (WireVector, frozenset({"get", "expected_product_ids"})),
    Kind.TOOLS: (ToolVector, frozenset({"tool", "args", "expected"})),
    Kind.SCORING: (ScoringVector, frozenset({"problem", "dialogue", "expected"})),
    Kind.COEFFICIENT: (CoefficientVector, frozenset({"quality", "expected"})),
    Kind.WEIGHTS: (WeightsVector, frozenset({"finishers", "metagraph_hotkeys", "expected"})),
}


@dataclass(frozen=True, slots=True)
class VectorFile:
    """One file: all its lines are of one kind."""

    path: Path
    kind: Kind
    vectors: tuple[tuple[int, Vector], ...]


def read_vectors(path: Path) -> VectorFile:
    """Read a vector file and tell its kind from its fields (and its name, between equals).

    Raises ConformanceError naming file and line for anything that is no vector.
    """
    lines = list(_lines(path))
    if not lines:
        raise ConformanceError(f"{path}: holds no vector")
    kind = _kind(path, lines[0][1])
    model, fields = _MODELS[kind]
    vectors: list[tuple[int, Vector]] = []
    for number, value in lines:
        if not fields <= value.keys():
            raise ConformanceError(f"{path}, line {number}: is no {kind} vector, as line 1 is")
        try:
            vectors.append((number, model.model_validate(value)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConformanceError(
                f"{path}, line {number}: {kind} vector, field {where}: {first['msg']}"
            ) from None
    return VectorFile(path, kind, tuple(vectors))


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConformanceError(f"{path}: cannot be read: {reason}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise ConformanceError(f"{path}, line {number}: broken JSON") from None
        if not isinstance(value, dict):
            raise ConformanceError(f"{path}, line {number}: expected a JSON object")
        yield number, value


def _kind(path: Path, first: dict[str, Any]) -> Kind:
    fitting = [kind for kind, (_, fields) in _MODELS.items() if fields <= first.keys()]
    named = [kind for kind in fitting if path.name.startswith(kind.value)]
    if not fitting:
        raise ConformanceError(
            f"{path}: its fields are those of no kind of vector ({', '.join(Kind)})"
        )
    return (named or fitting)[0]


def _needed(catalog: Catalog | None) -> Catalog:
    if catalog is None:
        raise ConformanceError("these vectors need a catalogue", remedy="give --catalog DIR|FILE")
    return catalog
