"""The measured set: honest agents, cheats and copies, as data that is never run.

`tests/fixtures/admission/*.txt` hold many files each, headed `=== name | class | rules`;
`escaped` at the end of a head means that the body is written with byte escapes. Copies are
made here from the honest agents of the same half, by disguises that know nothing of the
detector. The halves: `dev`, which the limits were set on, and `held_out`, which they were not.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "admission"
BANK = FIXTURES / "bank.jsonl"
HALVES = ("dev", "held_out")
_HEAD = re.compile(r"^=== (.*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One file. `rules`: any of them catches it; none for an honest one."""

    name: str
    kind: str
    source: bytes
    rules: tuple[str, ...] = ()

    @property
    def honest(self) -> bool:
        return not self.rules


def bundle(name: str) -> Iterator[Case]:
    """The files of one bundle."""
    text = (FIXTURES / f"{name}.txt").read_bytes().decode("utf-8")
    parts = _HEAD.split(text)
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        fields = [field.strip() for field in head.split("|")]
        source = body.encode("utf-8")
        if fields[-1] == "escaped":
            source = codecs.escape_decode(source.rstrip(b"\n"))[0]
        rules = tuple(fields[2].split(",")) if len(fields) > 2 else ()
        yield Case(fields[0], fields[1] if len(fields) > 1 else "honest", source, rules)
