"""The measured set: honest agents, cheats and copies, as data that is never run.

`tests/fixtures/admission/*.txt` hold many files each, headed `=== name | class | rules`;
`escaped` at the end of a head means that the body is written with byte escapes. Copies are
made here from the honest agents of the same part, by disguises that know nothing of the
detector. The parts: `dev`, which the limits were set on; `held_out`, written at the same time and
first read when they stood, with what it showed then mended; `fresh`, written after that.
"""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.unit.arena.submissions.disguises import disguise, merge

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "admission"
BANK = FIXTURES / "bank.jsonl"
PARTS = ("dev", "held_out", "fresh")
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


COPIES: dict[str, tuple[tuple[str, ...], ...]] = {
    "dev": (
        (),
        ("rename",),
        ("reformat",),
        ("comment",),
        ("reorder",),
        ("dead_code",),
        ("constants", "rename"),
        ("reword", "rename", "constants"),
        ("rename", "reorder", "dead_code"),
    ),
    "held_out": (
        ("rename", "reformat", "comment"),
        ("rewrite", "rename"),
        ("cut", "rename"),
        ("reword", "constants", "reorder", "comment"),
        ("dead_code", "dead_code"),
        ("rename", "rewrite", "reorder", "reword", "dead_code", "constants", "comment"),
    ),
    "fresh": (
        ("rename", "dead_code", "rewrite"),
        ("cut", "reword", "constants", "rename", "reorder"),
    ),
}
"""Disguises of each part; every honest agent of the part is copied by each of them."""


@dataclass(frozen=True, slots=True)
class CopyCase:
    """A copy: of which honest agents, by which disguises."""

    of: tuple[str, ...]
    by: str
    source: bytes


def copies(part: str) -> Iterator[CopyCase]:
    """Every honest agent of a part in every disguise, and joined with its neighbour."""
    honest = [(case.name, case.source.decode("utf-8")) for case in bundle(f"honest_{part}")]
    for number, (name, text) in enumerate(honest):
        for names in COPIES[part]:
            rng = random.Random(f"{name}/{'+'.join(names)}")
            made = disguise(text, names, rng)
            yield CopyCase((name,), "+".join(names) or "identical", made.encode("utf-8"))
        other, second = honest[(number + 1) % len(honest)]
        made = merge(text, second, random.Random(f"{name}/merge"))
        yield CopyCase((name, other), "merge", made.encode("utf-8"))
