"""Labelled traces as a file: JSON Lines, compressed when the name ends in `.zst`.

One line a trace: `name`, `gate` (the label), `rule` (why), `agent`, `model`, `query`,
`trace` as records hold it, `dialogue`. Anybody may write such a file with labels of
their own; what is missing but `gate` and `trace` is empty.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from judge.exceptions import Fault, JudgeError
from judge.verdict import Gate
from sandbox.trace import Trace
from scoring.types import Json, JsonObject

SHIPPED = Path(__file__).parent / "labelled" / "traces.jsonl.zst"
"""The set that comes with the project."""
MAX_LINE = 64 << 20
LEVEL = 19


@dataclass(frozen=True, slots=True)
class Labelled:
    """A trace with the gate at which it stops, and why."""

    name: str
    gate: Gate
    trace: Trace
    rule: str = ""
    agent: str = ""
    model: str = ""
    query: str = ""
    dialogue: tuple[JsonObject, ...] = ()

    def to_json(self) -> JsonObject:
        """One line of the file."""
        return {
            "name": self.name,
            "gate": self.gate.value,
            "rule": self.rule,
            "agent": self.agent,
            "model": self.model,
            "query": self.query,
            "trace": self.trace.to_json(),
            "dialogue": [*cast("tuple[Json, ...]", self.dialogue)],
        }


def write_labelled(items: Sequence[Labelled], out: Path) -> int:
    """Write a file; how many bytes it has. Raises JudgeError when it cannot be written."""
    lines = [json.dumps(i.to_json(), ensure_ascii=False, separators=(",", ":")) for i in items]
    data = "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")
    if out.suffix == ".zst":
        window = zstandard.ZstdCompressionParameters.from_level(LEVEL, window_log=23)
        data = zstandard.ZstdCompressor(compression_params=window).compress(data)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise _bad(out, error.strerror or str(error)) from None
    return len(data)


def read_labelled(file: Path) -> Iterator[Labelled]:
    """Read a file line by line. Raises JudgeError (CALLER) naming the line that is wrong."""
    try:
        with file.open("rb") as raw:
            lines = _lines(raw, packed=file.suffix == ".zst")
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _read(file, number, line)
    except OSError as error:
        raise _bad(file, error.strerror or str(error)) from None
    except zstandard.ZstdError:
        raise _bad(file, "it is not a whole Zstandard file") from None


def _lines(raw: IO[bytes], *, packed: bool) -> Iterator[bytes]:
    stream: IO[bytes] = raw
    if packed:
        reader = zstandard.ZstdDecompressor().stream_reader(raw)
        stream = cast("IO[bytes]", io.BufferedReader(cast("Any", reader)))
    while line := stream.readline(MAX_LINE):
        yield line


def _read(file: Path, number: int, line: bytes) -> Labelled:
    try:
        value = json.loads(line)
        return Labelled(
            name=str(value.get("name") or f"line {number}"),
            gate=Gate(value["gate"]),
            rule=str(value.get("rule") or ""),
            agent=str(value.get("agent") or ""),
            model=str(value.get("model") or ""),
            query=str(value.get("query") or ""),
            trace=Trace.from_json(value["trace"]),
            dialogue=tuple(value.get("dialogue") or ()),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _bad(file, f"line {number} is no labelled trace ({error})") from None


def _bad(file: Path, what: str) -> JudgeError:
    return JudgeError(
        f"{file.name}: {what}",
        code="judge.bad_labelled_set",
        fault=Fault.CALLER,
        remedy="give a file of labelled traces, such as `python -m judge.bench_make` writes",
    )
