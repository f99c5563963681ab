"""The rows of the corpus: their columns, and how a record's trajectory becomes one.

The same dictionary is written to Parquet and as a line of JSON: every column stands in
both, empty ones as null, so that the formats can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, cast

import orjson
import pyarrow as pa

from arena.problems.pools import Side
from arena.runs.seal import Seal
from corpus_export.types import Features
from sandbox.tools.schemas import TOOL_SCHEMAS
from scoring.types import Json, JsonObject

ROW_SCHEMA: Final = "corpus-1"
"""Raised with every change of a column, or of what one means."""

TOOLS: Final[str] = orjson.dumps(TOOL_SCHEMAS, option=orjson.OPT_SORT_KEYS).decode()
"""The seven tools as OpenAI schemas: JSON text, since no two have the same fields."""

NOT_PUBLIC: Final = "Not public: made by the operator for its own training."

SPLITS: Final[Mapping[Side, str]] = {Side.TRAINING: "train", Side.EVALUATION: "eval"}
"""The sides that are exported, and the folder of each."""
AXES: Final[Mapping[str, str]] = {"A": "axis_a", "B": "axis_b"}
"""The axes, and the file and the configuration of each."""

OUTCOME_AXES: Final = (
    "title",
    "price",
    "service",
    "sku",
    "attribute",
    "sku_and_attribute",
    "shop",
    "budget",
)

_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
MESSAGE_FIELDS: Final = (
    "role",
    "content",
    "reasoning_content",
    "tool_calls",
    "tool_call_id",
    "name",
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("reasoning_content", pa.string()),
        ("tool_calls", pa.list_(_CALL)),
        ("tool_call_id", pa.string()),
        ("name", pa.string()),
    ]
)
_FEATURES = pa.struct(
    [
        ("depth", pa.int64()),
        ("queries", pa.int64()),
        ("verified", pa.bool_()),
        ("regularity", pa.float64()),
        ("shape", pa.list_(pa.string())),
        ("turns", pa.int64()),
        ("calls", pa.int64()),
        ("tokens", pa.int64()),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("messages", pa.list_(_MESSAGE)),
        ("tools", pa.string()),
        ("query", pa.string()),
        ("problem_id", pa.string()),
        ("bucket", pa.string()),
        ("cluster", pa.string()),
        ("axis", pa.string()),
        ("dialect", pa.string()),
        ("rewritten", pa.bool_()),
        ("split", pa.string()),
        ("record_id", pa.string()),
        ("record_hash", pa.string()),
        ("verdict_hash", pa.string()),
        ("seal_hash", pa.string()),
        ("validator", pa.string()),
        ("sequence", pa.int64()),
        ("agent", pa.string()),
        ("agent_version", pa.string()),
        ("agent_source_hash", pa.string()),
        ("miner_hotkey", pa.string()),
        ("race_id", pa.string()),
        ("coefficient", pa.float64()),
        ("quality", pa.float64()),
        ("gate", pa.string()),
        ("success", pa.bool_()),
        ("success_upstream", pa.bool_()),
        ("outcome", pa.struct([(name, pa.float64()) for name in OUTCOME_AXES])),
        ("final_score", pa.float64()),
        ("features", _FEATURES),
        ("chain_block", pa.int64()),
        ("chain_commit", pa.string()),
        ("standins", pa.list_(pa.string())),
        ("catalog_hash", pa.string()),
        ("scoring_version", pa.string()),
        ("released", pa.bool_()),
        ("notice", pa.string()),
    ]
)
"""The columns. `verdict_hash` names the record of a verdict that came after its run's;
`chain_commit` is address, block and data of the commitment that vouches for
the record; null until a head of the log with its seal stands on chain."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said of the run, in its own record or in a later one."""

    quality: float
    gate: str
    coefficient: float
    final_score: float
    record_hash: str | None = None
    standins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked, and where the problem stands."""

    query: str
    cluster: str
    side: Side


def row_of(
    record: JsonObject,
    record_hash: str,
    messages: Sequence[JsonObject],
    *,
    dialect: str,
    rewritten: bool,
    features: Features,
    place: Place,
    released: bool,
    verdict: Verdict,
    seal: Seal | None,
    seal_hash: str | None,
    commit: str | None,
) -> JsonObject:
    """A row, with every column of `SCHEMA` in its order."""
    agent = cast("JsonObject", record["agent"])
    problem = cast("JsonObject", record["problem"])
    conditions = cast("JsonObject", record["conditions"])
    outcome = cast("JsonObject", record["outcome"])
    axes = cast("JsonObject", outcome["axes"])
    known = cast("list[str]", conditions["standins"])
    return {
        "messages": [{name: message.get(name) for name in MESSAGE_FIELDS} for message in messages],
        "tools": TOOLS,
        "query": place.query,
        "problem_id": problem["problem_id"],
        "bucket": problem["bucket"],
        "cluster": place.cluster,
        "axis": cast("JsonObject", record["axis"])["axis"],
        "dialect": dialect,
        "rewritten": rewritten,
        "split": SPLITS[place.side],
        "record_id": record["run_id"],
        "record_hash": record_hash,
        "verdict_hash": verdict.record_hash,
        "seal_hash": seal_hash,
        "validator": seal.validator if seal else None,
        "sequence": seal.sequence if seal else None,
        "agent": agent["name"],
        "agent_version": agent["version"],
        "agent_source_hash": agent["source_hash"],
        "miner_hotkey": agent.get("miner_hotkey"),
        "race_id": record["race_id"],
        "coefficient": verdict.coefficient,
        "quality": verdict.quality,
        "gate": verdict.gate,
        "success": outcome["success"],
        "success_upstream": outcome["upstream_success"],
        "outcome": {name: _number(axes[name]) for name in OUTCOME_AXES},
        "final_score": verdict.final_score,
        "features": cast("JsonObject", asdict(features) | {"shape": list(features.shape)}),
        "chain_block": seal.block.number if seal and seal.block else None,
        "chain_commit": commit,
        "standins": cast("list[Json]", sorted({*known, *verdict.standins})),
        "catalog_hash": conditions["catalog_hash"],
        "scoring_version": conditions["scoring_version"],
        "released": released,
        "notice": "" if released else NOT_PUBLIC,
    }


def _number(value: Json) -> float | None:
    """Canonical JSON writes 1.0 as 1."""
    return None if value is None else float(cast("float", value))
