"""A day of races made for tests: a catalogue, problems, and sealed records in a race's
directory, each of a script whose fate in the pipeline is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import zstandard

from arena.problems.suite import problem_to_json
from arena.runs.canonical import canonical
from arena.runs.frames import encode_frame
from arena.runs.record import Conditions, EncodedRecord, Kind, RunRecord, Timing
from arena.runs.seal import Seal, Sealed, signing_message
from arena.runs.signing import KeypairSigner
from corpus_export.opening import Inputs, open_files
from corpus_export.pipeline import ExportJob, ExportResult, export
from corpus_export.settings import ExportOptions
from judge.verdict import Gate
from sandbox.catalog import open_catalog
from scoring.types import Bucket, JsonObject, Problem, Reward, Voucher
from tests.unit.arena import builders
from tests.unit.corpus_export.builders import GOOD, Move, NativeAgent, TagAgent

DAY = date(2026, 1, 1)
NAMES = tuple(
    "lantern saucepan trowel violin bathrobe stapler kettle hammock easel".split()  # noqa: SIM905
)
"""What the problems ask for: no two of them are alike."""


def write_catalog(directory: Path, products: int = 12) -> Path:
    """A file of products 1, 2, …"""
    path = directory / "catalog.jsonl"
    with path.open("w") as file:
        for number in range(1, products + 1):
            name = NAMES[(number - 1) % len(NAMES)]
            product = {
                "product_id": str(number),
                "shop_id": "7",
                "title": f"{name} number {number}",
                "price": 10.0 * number,
                "service": [],
            }
            line = {"id": str(number), "contents": product["title"], "product": product}
            file.write(json.dumps(line) + "\n")
    return path


def problems(pool: str | None = None) -> list[Problem]:
    """Three problems of each bucket, no two of them in one leak cluster."""
    made = []
    for number, name in enumerate(NAMES, start=1):
        bucket = list(Bucket)[(number - 1) % 3]
        reward = Reward(str(number), title=(f"{name} number {number}",))
        voucher = Voucher("platform", 1.0, "fixed", 500.0, 10.0)
        query = f"{name * 2} {name[::-1]} {name} please"
        made.append(
            Problem(
                f"p{number}",
                query,
                bucket,
                (reward,),
                voucher if bucket is Bucket.VOUCHER else None,
                pool=pool,
            )
        )
    return made


_SIGNERS: dict[str, KeypairSigner] = {}


@dataclass
class Day:
    """Records of a day, and where they lie."""

    directory: Path
    problems: list[Problem] = field(default_factory=problems)
    frames: list[bytes] = field(default_factory=list)
    signer: str = "//Alice"
    _last: Sealed | None = None

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.catalog = write_catalog(self.directory)
        self.catalog_hash = open_catalog(self.catalog).content_hash
        self.race = self.directory / "race"
        self.race.mkdir()

    def run(
        self,
        problem: int = 0,
        moves: Sequence[Move] = GOOD,
        *,
        label: str = "alpha",
        gate: Gate | None = Gate.PASSED,
        axis: str = "A",
        tags: bool = False,
        day: date = DAY,
        catalog_hash: str | None = None,
        **changes: Any,
    ) -> RunRecord:
        """A run's record; `moves` is what its agent did, `changes` are fields of the record."""
        trace = (TagAgent() if tags else NativeAgent()).play(moves)
        record = builders.record(self.problems[problem], label=label, gate=gate, axis=axis)
        conditions = Conditions(catalog_hash or self.catalog_hash, "e", "rules-1", "standin/x")
        times = [f"{day.isoformat()}T12:00:0{second}+00:00" for second in (0, 2)]
        made = replace(
            record,
            run_id=f"{label}-{problem}-{hashlib.sha256(repr(moves).encode()).hexdigest()[:8]}",
            trace=trace.to_json(),
            conditions=conditions,
            timing=Timing(times[0], times[1], wall_s=2.0),
            **changes,
        )
        if made.coefficient is None or made.outcome is None:
            return made
        return replace(made, final_score=made.coefficient * bool(made.outcome["success"]))

    def add(self, *records: RunRecord | Any) -> None:
        """Seal records and append them."""
        for record in records:
            self.put(record.encode())

    def put(self, record: EncodedRecord, *, kind: Kind = Kind.RUN, spoil: bool = False) -> None:
        """Seal any bytes and append them; `spoil` signs something else."""
        if self.signer not in _SIGNERS:
            _SIGNERS[self.signer] = KeypairSigner(self.signer)
        signer = _SIGNERS[self.signer]
        seal = Seal(
            validator=signer.address,
            sequence=self._last.seal.sequence + 1 if self._last else 1,
            previous=self._last.hash if self._last else None,
            kind=kind,
            record=record.hash,
            size=len(record.content),
            sealed_at="2026-01-01T12:00:03.000000+00:00",
        )
        content = seal.encode()
        self._last = Sealed(content, signer.sign(signing_message(b"" if spoil else content)))
        self.frames.append(encode_frame(record, self._last))

    def write(self) -> Path:
        """The race's directory with what was added so far."""
        (self.race / "records.jsonl.zst").write_bytes(b"".join(self.frames))
        lines = b"".join(canonical(problem_to_json(p)) + b"\n" for p in self.problems)
        (self.race / "problems.jsonl.zst").write_bytes(zstandard.compress(lines))
        return self.race

    def job(self, out: Path, *, partition: Path | None = None, **options: Any) -> ExportJob:
        """A job over the directory, in this process."""
        inputs = Inputs(catalogs=(self.catalog,), races=(self.write(),), partition=partition)
        chosen: dict[str, Any] = {"day": DAY, "workers": 1} | options
        return open_files(inputs, ExportOptions(out=out, **chosen))

    def export(self, out: Path, **options: Any) -> ExportResult:
        """Export it."""
        return export(self.job(out, **options), Quiet(), lambda text: None)


def full_day(directory: Path) -> Day:
    """Every problem solved by two agents that differ, and one reject of a kind."""
    day = Day(directory)
    shorter = (*GOOD[:1], *GOOD[2:])
    for number in range(len(day.problems)):
        day.add(day.run(number), day.run(number, shorter, label="beta", axis="A"))
    day.add(day.run(0, label="gamma", gate=None), day.run(1, label="gamma", gate=Gate.INFERENCE))
    return day


class Quiet:
    """Watches an export and says nothing; may interrupt it."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list[str] = []
        self.advanced = 0
        self._stop_after = stop_after

    def stage(self, name: str, total: int | None = None) -> None:
        self.seen.append(name)
        self.advanced = 0

    def advance(self, count: int) -> None:
        self.advanced += count
        if self._stop_after is not None and self.advanced >= self._stop_after:
            raise KeyboardInterrupt


def file_bytes(directory: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def lines(path: Path) -> list[JsonObject]:
    """The objects of compressed lines."""
    text = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def rows(directory: Path) -> Iterable[JsonObject]:
    """All rows of an export."""
    for path in sorted(directory.glob("*/axis_*.jsonl.zst")):
        yield from lines(path)


def reasons(directory: Path) -> dict[str, str]:
    """Why each run is not in, by its id."""
    found = lines(directory / "rejects.jsonl.zst")
    return {str(line["record_id"]): str(line["reason"]) for line in found}
