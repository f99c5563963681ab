"""`rejects.jsonl.zst`: every record that is not in the corpus, and why not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson
import zstandard

from corpus_export.workfile import Found
from scoring.types import JsonObject


def reject_line(found: Found) -> bytes:
    """A refused record as a line, without its end. `detail` may hold an agent's text."""
    assert found.reason is not None
    line = {
        "record_id": found.run_id,
        "record_hash": found.record_hash,
        "stage": found.reason.stage.value,
        "reason": found.reason.value,
        "detail": found.detail,
        "problem_id": found.problem_id,
        "bucket": found.bucket,
        "cluster": found.cluster,
        "axis": found.axis,
        "agent": found.agent,
        "validator": found.validator,
        "sequence": found.sequence,
        "coefficient": found.coefficient,
        "quality": found.quality,
        "tool_calls": found.tool_calls,
        "features": asdict(found.features) if found.features else None,
    }
    return orjson.dumps(line)


def read_lines(path: Path) -> Iterator[JsonObject]:
    """The objects of a file of compressed lines.

    Raises OSError, zstandard.ZstdError or ValueError when it cannot be read.
    """
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        for line in io.BufferedReader(stream, 1 << 16):
            value = orjson.loads(line)
            if not isinstance(value, dict):
                raise ValueError("a line is no JSON object")  # noqa: TRY004
            yield value
