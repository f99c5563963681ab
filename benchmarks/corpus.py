"""How long the export of a day takes, and how much memory: `python -m benchmarks.corpus`.

Real records of a race are varied into a day of many: each gets another run id, problem and
agent, and is sealed anew. Their traces stay as they are, drawn so that half of them are
below 30 KB and half above. Then `arena corpus export` runs as people run it, in a process of
its own, while the resident memory of it and its children is sampled.

Needs a race of react and pipeline and its catalogue:

    arena catalog generate --products 3000 --seed 15 --out world.jsonl.gz
    arena problems synthesise --catalog world.jsonl.gz --count 60 --seed 7 --out suite.jsonl
    arena race run react pipeline --suite suite.jsonl --catalog world.jsonl.gz --out race
    python -m benchmarks.corpus --race race --catalog world.jsonl.gz
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import zstandard

from arena.problems.suite import problem_to_json
from arena.problems.synthesise import split_evenly, synthesise
from arena.runs.canonical import canonical
from arena.runs.frames import encode_frame, read_spool
from arena.runs.record import EncodedRecord, Kind
from arena.runs.seal import Seal, Sealed, signing_message
from arena.runs.signing import KeypairSigner
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from scoring.types import Problem

MEDIAN_BYTES = 30 * 1024
RUNS_A_PROBLEM = 30
AGENTS = 300
SEED = 4
_POLL_S = 0.1


class Template:
    """A real record, and what of it is varied."""

    def __init__(self, content: bytes) -> None:
        value = json.loads(content)
        self.content = content
        self.size = len(content)
        self.trace_size = len(canonical(value["trace"]))
        self.day = value["timing"]["finished_at"][:10]
        self._old = [
            value["run_id"],
            value["problem"]["problem_id"],
            value["agent"]["source_hash"],
        ]

    def vary(self, run_id: str, problem_id: str, source: str) -> EncodedRecord:
        """Another record with the same trace; canonical as it was."""
        content = self.content
        for old, new in zip(self._old, (run_id, problem_id, source), strict=True):
            content = content.replace(old.encode(), new.encode())
        return EncodedRecord(content)


def templates(race: Path) -> list[Template]:
    """The run records of a race by the two agents that are wanted."""
    found = []
    for frame in read_spool(race / "records.jsonl.zst"):
        value = frame.content.record.value
        agent = cast("dict[str, str]", value.get("agent") or {})
        if agent.get("name") in ("react.py", "pipeline.py"):
            found.append(Template(frame.content.record.content))
    return found


def draw(pool: Sequence[Template], count: int, chance: random.Random) -> Iterator[Template]:
    """Half of them with traces below the median that is wanted, half above."""
    below = [t for t in pool if t.trace_size < MEDIAN_BYTES]
    above = [t for t in pool if t.trace_size >= MEDIAN_BYTES]
    for number in range(count):
        yield chance.choice(below if number % 2 else above)


def write_day(
    pool: Sequence[Template], problems: Sequence[Problem], count: int, race: Path
) -> None:
    """A race's directory with so many sealed records."""
    race.mkdir(parents=True)
    lines = b"".join(canonical(problem_to_json(p)) + b"\n" for p in problems)
    (race / "problems.jsonl.zst").write_bytes(zstandard.compress(lines))
    chance, signer = random.Random(SEED), KeypairSigner("//Benchmark")
    last: Sealed | None = None
    sizes: list[int] = []
    with (race / "records.jsonl.zst").open("wb") as file:
        for number, template in enumerate(draw(pool, count, chance)):
            run_id = hashlib.sha256(f"run {number}".encode()).hexdigest()[:32]
            source = hashlib.sha256(f"agent {number % AGENTS}".encode()).hexdigest()
            problem_id = problems[number // RUNS_A_PROBLEM].problem_id
            record = template.vary(run_id, problem_id, source)
            seal = Seal(
                validator=signer.address,
                sequence=number + 1,
                previous=last.hash if last else None,
                kind=Kind.RUN,
                record=record.hash,
                size=len(record.content),
                sealed_at=f"{template.day}T23:59:59.000000+00:00",
            ).encode()
            last = Sealed(seal, signer.sign(signing_message(seal)))
            file.write(encode_frame(record, last))
            sizes.append(template.trace_size)
    total = (race / "records.jsonl.zst").stat().st_size
    print(
        f"{count:,} records: traces of {statistics.median(sizes) / 1024:.1f} KB (median),"
        f" {statistics.mean(sizes) / 1024:.1f} KB (mean); {total / 1e6:,.0f} MB compressed"
    )


def measure(arguments: Sequence[str]) -> tuple[float, float, list[int]]:
    """Seconds of a command by the clock and of CPU, and the resident memory of its processes
    in bytes when their sum was greatest, the largest first."""
    begun, spent = time.perf_counter(), cpu_of_children()
    process = subprocess.Popen(
        [sys.executable, "-c", "from neurons.cli import main; main()", *arguments]
    )
    peak: list[int] = []
    while process.poll() is None:
        now = sorted((resident(pid) for pid in tree(process.pid)), reverse=True)
        peak = max(peak, now, key=sum)
        time.sleep(_POLL_S)
    if process.returncode:
        raise SystemExit("the export failed")
    return time.perf_counter() - begun, cpu_of_children() - spent, peak


def cpu_of_children() -> float:
    """Seconds of CPU that ended children and theirs took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += tree(int(child))
        except OSError:
            continue
    return found


def resident(pid: int) -> int:
    """Resident bytes of a process; memory that it shares counts in each."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure, and print what is to stand in the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--race", type=Path, required=True)
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--records", type=int, nargs="*", default=[27_000, 270_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--keep", type=Path, help="Keep the days and exports in this directory.")
    options = parser.parse_args()
    pool = templates(options.race)
    place = options.keep or Path(tempfile.mkdtemp(prefix="corpus-benchmark-"))
    try:
        place.mkdir(exist_ok=True)
        world = place / "problems.jsonl.gz"
        if not world.exists():
            write_world(60_000, SEED, world)
        most = max(options.records) // RUNS_A_PROBLEM + 1
        problems = list(synthesise(open_catalog(world), split_evenly(most), seed=SEED))
        random.Random(SEED).shuffle(problems)
        for count in options.records:
            race, out = place / f"race-{count}", place / f"corpus-{count}"
            if not race.exists():
                write_day(pool, problems[: count // RUNS_A_PROBLEM + 1], count, race)
            shutil.rmtree(out, ignore_errors=True)
            arguments = ["corpus", "export", "--race", str(race), "--catalog", str(options.catalog)]
            arguments += ["--out", str(out), "--workers", str(options.workers)]
            arguments += ["--tokenizer", str(options.tokenizer)] if options.tokenizer else []
            seconds, cpu, peak = measure(arguments)
            parts = ", ".join(f"{part / 1e6:.0f}" for part in peak)
            print(
                f"{count:,} records: {seconds:.1f} s by the clock, {cpu:.1f} s of CPU,"
                f" peak {sum(peak) / 1e6:,.0f} MB resident ({parts}),"
                f" load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    finally:
        if not options.keep:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
