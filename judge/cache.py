"""Verdicts of single models on disk, by what was shown, by whom and how it was asked.

One small JSON file each, written beside and moved into place: a reader sees all of it
or nothing. A file that cannot be read is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import structlog

from judge.verdict import Gate, Span
from scoring.types import JsonObject

CACHE_SCHEMA = 1
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Vote:
    """The checked verdict of one model, before it is capped."""

    model: str
    gate: Gate
    evidence: tuple[Span, ...]
    standin: bool = False


class VoteCache:
    """Votes in a directory, which is made when it is needed. None as directory keeps nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def get(self, key: str) -> Vote | None:
        """The vote filed under `key`, if there is one that can be read."""
        if self._directory is None:
            return None
        try:
            value = json.loads(self._path(key).read_text(encoding="utf-8"))
            if value["schema"] != CACHE_SCHEMA or value["key"] != key:
                return None
            spans = tuple(Span.from_json(span) for span in value["evidence"])
            return Vote(str(value["model"]), Gate(value["gate"]), spans, bool(value["standin"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            _log.warning("a cached verdict cannot be read", key=key, error=type(error).__name__)
            return None

    def put(self, key: str, vote: Vote) -> None:
        """File a vote. A disk that takes none costs a call later, and is logged."""
        if self._directory is None:
            return
        value: JsonObject = {
            "schema": CACHE_SCHEMA,
            "key": key,
            "model": vote.model,
            "gate": vote.gate.value,
            "standin": vote.standin,
            "evidence": [span.to_json() for span in vote.evidence],
        }
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(json.dumps(value).encode("ascii"))
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            _log.warning("a verdict could not be cached", error=str(error))

    def _path(self, key: str) -> Path:
        return cast("Path", self._directory) / key[:2] / f"{key}.json"


def cache_key(
    content_hash: str, prompt_version: str, model: str, max_tokens: int, temperature: float
) -> str:
    """SHA-256 over everything that decides an answer, lower-case hex."""
    parts = json.dumps([content_hash, prompt_version, model, max_tokens, temperature])
    return hashlib.sha256(parts.encode()).hexdigest()
