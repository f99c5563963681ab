"""The files of an export, and of what it shares with a race's directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from arena.runs.spool import FILE_NAME

RECORDS = FILE_NAME
"""Records that are released, in the frames of a spool, in the order of the log."""
SEALS = "seals.jsonl.zst"
"""The leaves that the day added to the log: every seal with its signature, one a line."""
HEADS = "heads.jsonl"
"""Every head up to the day's, with the proof that the one before grew to it."""
ANCHORS = "anchors.jsonl"
"""Inclusion proofs of the seals that this day's chains go on from."""
COMMITMENTS = "commitments.jsonl"
"""What was put on chain."""
PROBLEMS = "problems.jsonl.zst"
"""Problems with their rewards that are released, as canonical JSON."""
SOURCES = "agents"
"""Agents' files that are released, by their SHA-256."""
MANIFEST = "manifest.json"
"""What the export holds, with the hash of each file."""
EXPORT_SCHEMA = 1


def file_hash(path: Path) -> str:
    """SHA-256 of a file, lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
