"""Rollouts as rows of the corpus: the same schema, made by the corpus's own stages.

A rollout's record is a run's record, so it is normalised as one. No judge has spoken on it:
`coefficient`, `quality`, `gate` and `final_score` are null, and strict success takes their
place. `agent` and `agent_source_hash` say which model made it; `notice` that it is no race's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import orjson
import zstandard

from arena.problems.pools import Side
from arena.runs.record import EncodedRecord
from corpus_export.features import features
from corpus_export.gates import refused
from corpus_export.normalise import messages_of, normalise
from corpus_export.rows import Place, Verdict, row_of
from corpus_export.tokens import EstimatedTokens
from corpus_export.types import Reject
from sandbox.catalog.interface import Catalog
from scoring.types import Json, JsonObject
from training.exceptions import CorpusRefusedError
from training.files import write_file

NOTICE: Final = "A rollout of training, not a run of a race."
_UNJUDGED: Final = Verdict(0.0, "", 0.0, 0.0)
_NO_LIMIT: Final = 1 << 40
"""Length is the trainer's own gate, by its own tokenizer."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One finished rollout as a row. `refused` says why it is not to be imitated, although it
    may have succeeded: the corpus's gates of form."""

    row: JsonObject
    refused: Reject | None

    @property
    def success(self) -> bool:
        """Strict success."""
        return self.row["success"] is True


def scored(record: EncodedRecord, query: str, cluster: str, catalog: Catalog) -> Scored | Reject:
    """The row of a closed rollout, or why it holds no trajectory. Raises nothing on content."""
    value = record.value
    trajectory = normalise(value, query, catalog)
    if isinstance(trajectory, Reject):
        return trajectory
    counted = features(trajectory, EstimatedTokens())
    row = row_of(
        value,
        record.hash,
        messages_of(trajectory),
        dialect=trajectory.dialect,
        rewritten=False,
        features=counted,
        place=Place(query, cluster, Side.TRAINING),
        released=False,
        verdict=_UNJUDGED,
        seal=None,
        seal_hash=None,
        commit=None,
    )
    row |= dict.fromkeys(("coefficient", "quality", "gate", "final_score"))
    row["notice"] = NOTICE
    return Scored(row, refused(trajectory, counted, catalog, _NO_LIMIT))


def distinct(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """Rows without those that say what another one of their problem says."""
    seen: set[bytes] = set()
    found: list[JsonObject] = []
    for row in rows:
        told: Json = [row["problem_id"], row["messages"]]
        key = hashlib.sha256(orjson.dumps(told)).digest()
        if key not in seen:
            seen.add(key)
            found.append(row)
    return found


def write_rows(path: Path, rows: Iterable[JsonObject]) -> None:
    """Rows as lines of JSON, compressed; whole or not there. Raises DiskFullError."""
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    write_file(path, zstandard.ZstdCompressor(level=9).compress(lines))


def read_rows(path: Path) -> list[JsonObject]:
    """What `write_rows` wrote. Raises CorpusRefusedError."""
    try:
        with path.open("rb") as file:
            data = zstandard.ZstdDecompressor().stream_reader(file).read()
        return list(_lines(data))
    except (OSError, zstandard.ZstdError, orjson.JSONDecodeError, TypeError) as error:
        raise CorpusRefusedError(
            f"{path} holds no rows of rollouts: {' '.join(str(error).split())[:200]}",
            remedy="name kept.jsonl.zst or scored.jsonl.zst of an `arena train reject|teacher`",
        ) from error


def _lines(data: bytes) -> Iterator[JsonObject]:
    for line in data.splitlines():
        row = orjson.loads(line)
        if not isinstance(row, dict) or "messages" not in row:
            raise TypeError("a line that is no row")
        yield cast("JsonObject", row)
