"""What a run is: the first thing in its directory, which no other run may then go on with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import rfc8785

from scoring.types import JsonObject
from training.exceptions import OtherBaseError, OtherRunError
from training.files import read_json_file, write_json_file

IDENTITY: Final = "run.json"
SCHEMA: Final = "run-1"


def claim(out: Path, facts: JsonObject) -> str:
    """Make a directory that run's, or find that it is; the run's identity.

    Raises OtherBaseError or OtherRunError, which say what differs.
    """
    said: JsonObject = {"schema": SCHEMA, **facts}
    path = out / IDENTITY
    if path.exists():
        there = read_json_file(path)
        differing = sorted(key for key in {*there, *said} if there.get(key) != said.get(key))
        if "base" in differing:
            raise OtherBaseError(
                f"{out} holds a run from another base", remedy="choose another --out"
            )
        if differing:
            raise OtherRunError(
                f"{out} holds a run with another {differing[0]}", remedy="choose another --out"
            )
    else:
        write_json_file(path, said)
    return hashlib.sha256(rfc8785.dumps(said)).hexdigest()
