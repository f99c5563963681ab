"""`manifest.json`: what an export holds, of what it was made, and how many fell where."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from arena.runs.canonical import canonical, ijson
from corpus_export.exceptions import CorpusInvalidError
from corpus_export.rows import AXES, ROW_SCHEMA, SPLITS
from corpus_export.types import Reason, Stage
from corpus_export.workfile import WorkFile
from corpus_export.writing import WrittenFile
from scoring.types import Json, JsonObject

FILE_NAME = "manifest.json"
PARTITION = "partition.json"
REJECTS = "rejects.jsonl.zst"
CARD = "README.md"
GROUPS = ("bucket", "axis", "agent")
"""What the funnel is also counted by."""


@dataclass(frozen=True, slots=True)
class Funnel:
    """How many records there were, and how many of them each stage refused, by reason."""

    read: int = 0
    refused: Mapping[Reason, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """What is left."""
        return self.read - sum(self.refused.values())

    def to_json(self) -> JsonObject:
        """Every stage in order: what came, what it refused for which reason, what went on."""
        left = self.read
        stages: list[Json] = []
        for stage in Stage:
            here = (r for r in Reason if r.stage is stage and r in self.refused)
            reasons = {reason.value: self.refused[reason] for reason in here}
            came, left = left, left - sum(reasons.values())
            stages.append({"stage": stage.value, "in": came, "refused": {**reasons}, "out": left})
        return {"read": self.read, "stages": stages, "rows": left}


def funnel_of(work: WorkFile) -> Funnel:
    """The funnel over all records."""
    return _funnel(work.counted("reason"))


def funnels_by(work: WorkFile, column: str) -> dict[str, Funnel]:
    """The funnel for each value of a column; what could not be read counts under ""."""
    groups: dict[str, list[tuple[object, ...]]] = {}
    for value, reason, count in work.counted(column, "reason"):
        groups.setdefault(str(value or ""), []).append((reason, count))
    return {value: _funnel(counts) for value, counts in sorted(groups.items())}


def _funnel(counts: Sequence[tuple[object, ...]]) -> Funnel:
    refused = {Reason(str(reason)): cast("int", n) for reason, n in counts if reason is not None}
    return Funnel(sum(cast("int", n) for _, n in counts), refused)


def make_manifest(
    work: WorkFile,
    inputs: JsonObject,
    removed: Mapping[str, int],
    partition: JsonObject,
    head: JsonObject | None,
) -> JsonObject:
    """The manifest of an export whose rows and rejects are written; its files come last."""
    funnel = funnel_of(work)
    return {
        "schema": ROW_SCHEMA,
        "public": cast("JsonObject", inputs["options"])["public"],
        "inputs": inputs,
        "records": {
            "read": funnel.read,
            "other_days": int(work.state("other_days") or 0),
            "validators": [
                {"validator": who, "first": first, "last": last, "records": n}
                for who, first, last, n in work.sequences()
            ],
            "unsealed": work.count("validator IS NULL"),
            "later_verdicts": work.count("later_verdict IS NOT NULL"),
        },
        "scoring_versions": _named(work, "scoring_version"),
        "catalogs": _named(work, "catalog_hash"),
        "log_head": head,
        "funnel": funnel.to_json(),
        "by": {
            group: {value: one.to_json() for value, one in funnels_by(work, group).items()}
            for group in GROUPS
        },
        "rows": _rows(work),
        "removed": dict(sorted(removed.items())),
        "partition": partition,
        "files": {},
    }


def with_files(manifest: JsonObject, files: Sequence[WrittenFile]) -> JsonObject:
    """The manifest with its files."""
    return manifest | {"files": {file.path: file.to_json() for file in files}}


def _rows(work: WorkFile) -> JsonObject:
    counts = {(side, axis): n for side, axis, n in work.kept()}
    return {
        split: {name: counts.get((side.value, axis), 0) for axis, name in AXES.items()}
        for side, split in SPLITS.items()
    }


def _named(work: WorkFile, column: str) -> JsonObject:
    return {str(value): cast("int", n) for value, n in work.counted(column) if value is not None}


def read_manifest(directory: Path) -> JsonObject:
    """The manifest of an export. Raises CorpusInvalidError when there is none of this schema,
    or not in its canonical form."""
    path = directory / FILE_NAME
    try:
        content = path.read_bytes()
        value = json.loads(content)
    except OSError as error:
        raise CorpusInvalidError(
            f"{directory} is no export: {error.strerror}: {FILE_NAME}", code="corpus.no_manifest"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CorpusInvalidError(f"{path} is no JSON", code="corpus.bad_manifest") from error
    if not isinstance(value, dict) or value.get("schema") != ROW_SCHEMA:
        schema = value.get("schema") if isinstance(value, dict) else None
        raise CorpusInvalidError(
            f"{path}: schema {schema!r:.60}, expected {ROW_SCHEMA!r}", code="corpus.other_schema"
        )
    if encode(value) != content:
        raise CorpusInvalidError(f"{path} is not in its canonical form", code="corpus.bad_manifest")
    return cast("JsonObject", value)


def encode(manifest: JsonObject) -> bytes:
    """The manifest's bytes: canonical JSON (RFC 8785) and a newline."""
    return canonical(manifest) + b"\n"


def differences(made: Json, asked: Json, name: str = "") -> list[str]:
    """What differs between the inputs of two exports, one short phrase each."""
    made, asked = ijson(made), ijson(asked)
    if isinstance(made, dict) and isinstance(asked, dict):
        found: list[str] = []
        for key in sorted({*made, *asked}):
            found += differences(made.get(key), asked.get(key), f"{name}.{key}" if name else key)
        return found
    if made == asked:
        return []
    return [f"{name} ({_short(made)}, now {_short(asked)})"]


def _short(value: Json) -> str:
    text = "none" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:16] + "…"
