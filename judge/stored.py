"""Traces as they lie on disk: one JSON file, or records as JSON Lines, packed or not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import zstandard

from judge.exceptions import Fault, JudgeError
from sandbox.trace import Trace
from scoring.types import Json, JsonObject

MAX_LINE = 512 << 20
"""Bytes of one record; the gateway's limits are well below."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One trace with what its file says of it."""

    name: str
    trace: Trace
    dialogue: list[Json] | None = None
    query: str | None = None
    record: JsonObject | None = None
    """The record that held it; None for a bare trace."""


def read_traces(path: Path) -> Iterator[Stored]:
    """The traces of a file, in order. Raises JudgeError (CALLER) naming the line at fault.

    A file that ends in `.jsonl` or `.jsonl.zst` holds a record or a trace on each line; any
    other is one of them.
    """
    name = path.name
    try:
        if name.endswith((".jsonl", ".jsonl.zst")):
            for number, line in enumerate(_lines(path), start=1):
                if line.strip() and (found := _read(line, f"{name}:{number}")):
                    yield found
        elif found := _read(path.read_bytes(), name):
            yield found
    except (OSError, zstandard.ZstdError) as error:
        raise _bad(f"cannot read {path}: {error}") from None


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if not path.name.endswith(".zst"):
            yield from iter(lambda: file.readline(MAX_LINE), b"")
            return
        unpacked = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        buffer = io.BufferedReader(unpacked)
        yield from iter(lambda: buffer.readline(MAX_LINE), b"")


def _read(data: bytes, where: str) -> Stored | None:
    """None for a record that holds no trace on purpose: a verdict that came later."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad(f"{where} is no JSON") from None
    if not isinstance(value, dict):
        raise _bad(f"{where} holds no record and no trace")
    if value.get("kind") == "verdict":
        return None
    record = cast("JsonObject", value) if isinstance(value.get("trace"), dict) else None
    held = value["trace"] if record is not None else value
    try:
        trace = Trace.from_json(held)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise _bad(f"{where} holds no trace of a schema that is known here") from None
    if record is None:
        return Stored(where, trace)
    dialogue, query = record.get("dialogue"), record.get("query")
    return Stored(
        name=_name(record, where),
        trace=trace,
        dialogue=dialogue if isinstance(dialogue, list) else None,
        query=query if isinstance(query, str) else None,
        record=record,
    )


def _name(record: JsonObject, where: str) -> str:
    agent, problem = record.get("agent"), record.get("problem")
    label = agent.get("label") if isinstance(agent, dict) else None
    problem_id = problem.get("problem_id") if isinstance(problem, dict) else None
    run = record.get("run_id") or record.get("id")
    return " ".join(str(part) for part in (label, problem_id, run) if part) or where


def _bad(message: str) -> JudgeError:
    return JudgeError(message, code="judge.bad_input", fault=Fault.CALLER)
