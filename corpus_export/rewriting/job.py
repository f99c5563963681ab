"""The axis B rows of an export, rewritten into an export of their own.

What is written is marked in every row (`rewritten`), keeps its axis and its coefficient, both
of which are of what the agent did, and stands apart: who trains on it chooses to.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import cast

import orjson
import zstandard

from corpus_export.exceptions import CorpusError, CorpusInvalidError
from corpus_export.manifest import FILE_NAME, read_manifest
from corpus_export.rewriting.prompts import PROMPT_VERSION
from corpus_export.rewriting.rewriter import Refused, Rewriter
from corpus_export.scrub import Scrubber
from corpus_export.tokens import TokenCounter
from corpus_export.writing import LinesWriter, TableWriter, Workplace, WrittenFile, write_file
from scoring.types import Json, JsonObject

REWRITE_SCHEMA = "corpus-rewritten-1"
SOURCE_TABLE = "train/axis_b.jsonl.zst"
"""Training rows alone: evaluation is on what agents did."""
TABLE = "train/axis_b_rewritten"
REFUSED = "refused.jsonl.zst"
_CHUNK = 32

Sources = Callable[[str], str | None]
"""An agent's source by its hash; None when it is not at hand, or not released."""


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """What is rewritten, by whom, and what the result must keep to."""

    export: Path
    out: Path
    rewriter: Rewriter
    standin: bool
    sources: Sources
    tokens: TokenCounter
    max_tokens: int


@dataclass(slots=True)
class _Tally:
    read: int = 0
    cost_usd: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)


async def rewrite_export(job: RewriteJob, advance: Callable[[int], None]) -> JsonObject:
    """Rewrite the rows and publish the result; its manifest.

    Raises CorpusError when `out` is there already, CorpusInvalidError when the export is not
    what its manifest says, and ModelError when the model's server fails: nothing is
    published then.
    """
    if job.out.exists():
        raise CorpusError(f"{job.out} is there already", remedy="give another --out")
    manifest = read_manifest(job.export)
    tally = _Tally()
    with Workplace(job.out) as place:
        directory = place.fresh_partial()
        table, refused = TableWriter(directory, TABLE), LinesWriter(directory, REFUSED)
        try:
            rows = _rows(job.export, manifest)
            while chunk := list(islice(rows, _CHUNK)):
                for line in await _together(job, chunk, tally):
                    (table if "messages" in line else refused).write(orjson.dumps(line))
                advance(len(chunk))
            result = _manifest(job, manifest, tally, [*table.close(), refused.close()])
            write_file(directory, "README.md", _card(result))
            content = orjson.dumps(result, option=orjson.OPT_SORT_KEYS) + b"\n"
            write_file(directory, FILE_NAME, content)
            place.publish()
        except BaseException:
            table.abandon()
            refused.abandon()
            raise
        finally:
            place.clear()
    return result


async def _together(job: RewriteJob, rows: Sequence[JsonObject], tally: _Tally) -> list[JsonObject]:
    """What comes of some rows, in their order. Where one cannot be asked, none goes on asking."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(job, row, tally)) for row in rows]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _one(job: RewriteJob, row: JsonObject, tally: _Tally) -> JsonObject:
    """The rewritten row, or why there is none."""
    tally.read += 1
    source = job.sources(str(row["agent_source_hash"]))
    if source is None:
        return _refused(row, tally, "no_source", ("its agent's source is not at hand",))
    messages = cast("list[JsonObject]", row["messages"])
    result = await job.rewriter.rewrite(messages, source)
    tally.cost_usd += result.cost_usd
    if isinstance(result, Refused):
        return _refused(row, tally, "does_not_hold", result.reasons)
    # The model has read the agent's source: what is secret there may stand in a thought.
    clean, removed = Scrubber().scrub(result.messages)
    tally.removed += removed
    tokens = job.tokens.count(clean)
    if tokens > job.max_tokens:
        return _refused(row, tally, "too_long", (f"{tokens} tokens",))
    tally.outcomes["rewritten"] += 1
    writer = [f"rewriter:{result.model}"] if job.standin else []
    return _rewritten(row, writer, clean, tokens)


def _rewritten(
    row: JsonObject, writer: Sequence[str], messages: Sequence[JsonObject], tokens: int
) -> JsonObject:
    features = cast("JsonObject", row["features"])
    depth = sum(bool(m["tool_calls"]) for m in messages if m["role"] == "assistant")
    standins = {*cast("list[str]", row["standins"]), *writer}
    return {
        **row,
        "messages": list[Json](messages),
        "rewritten": True,
        "features": {**features, "depth": depth, "tokens": tokens},
        "standins": cast("list[Json]", sorted(standins)),
    }


def _refused(row: JsonObject, tally: _Tally, kind: str, reasons: Sequence[str]) -> JsonObject:
    tally.outcomes[kind] += 1
    return {"record_hash": row["record_hash"], "refused": kind, "reasons": list[Json](reasons)}


def _rows(export: Path, manifest: JsonObject) -> Iterator[JsonObject]:
    """The axis B rows of an export, held against its manifest first."""
    path = export / SOURCE_TABLE
    listed = cast("dict[str, dict[str, str]]", manifest["files"])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CorpusInvalidError(f"{path}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != listed[SOURCE_TABLE]["sha256"]:
        raise CorpusInvalidError(
            f"{path} is not what its manifest says", remedy=f"arena corpus verify {export}"
        )
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content))
    for line in io.TextIOWrapper(reader, encoding="utf-8"):
        yield cast("JsonObject", orjson.loads(line))


def _manifest(
    job: RewriteJob, source: JsonObject, tally: _Tally, files: Sequence[WrittenFile]
) -> JsonObject:
    digest = hashlib.sha256((job.export / FILE_NAME).read_bytes()).hexdigest()
    return {
        "schema": REWRITE_SCHEMA,
        "source_manifest": digest,
        "public": source["public"],
        "model": job.rewriter.model,
        "standin": job.standin,
        "prompt": PROMPT_VERSION,
        "min_quality": job.rewriter.min_quality,
        "read": tally.read,
        "outcomes": dict(sorted(tally.outcomes.items())),
        "removed": dict(sorted(tally.removed.items())),
        "cost_usd": round(tally.cost_usd, 6),
        "files": {file.path: file.to_json() for file in files},
    }


def _card(manifest: JsonObject) -> bytes:
    """The dataset card. The model's name is an operator's setting, JSON-quoted all the same."""
    model = orjson.dumps(manifest["model"]).decode().replace("`", "'")
    public = "" if manifest["public"] else "**Not public.** "
    outcomes = cast("dict[str, int]", manifest["outcomes"])
    return f"""---
configs:
- config_name: axis_b_rewritten
  data_files:
  - split: train
    path: {TABLE}.parquet
---
# Trajectories of axis B with written reasoning

{public}The calls, arguments and observations are those of recorded runs, unchanged; a model,
{model}, wrote the reasoning between them afterwards. Every row says so (`rewritten`), and keeps
the axis and the coefficient of the run itself. {outcomes.get("rewritten", 0)} of
{manifest["read"]} rows were kept; `refused.jsonl.zst` has the reasons for the others.
""".encode()
