"""How fast records are verified, and in how much memory.

`python -m benchmarks.verify` · a race's spool of generated records (30 KB each, sealed by one
key, with an honest trace of a searching agent) is verified on one core: first the integrity
pass (frames, form, hashes, signatures, chain), then with everything decided again from the
traces (outcome, axis, score, citations, facts). Both in fresh processes, so that their peaks
of memory stand for themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

from arena.records.layout import RECORDS
from arena.records.verification.sources import RaceSource
from arena.records.verification.verifier import Options, verify
from arena.runs.frames import encode_frame
from arena.runs.ledger import Head, seal_after
from arena.runs.problems import problem_content
from arena.runs.record import RunRecord
from arena.runs.rescoring import rejudge_axis, rescore
from arena.runs.signing import KeypairSigner
from sandbox.catalog import open_catalog
from sandbox.catalog.interface import Catalog
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.titles import NoTitles
from tests.integration.transparency import AGENT, World

TARGET = 1_000
BYTES = 30_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000)
    parser.add_argument("--more", type=int, default=9_000, help="for the growth of memory")
    parser.add_argument("--json", type=Path, help="write the result here; - is standard output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as name:
        os.environ["ARENA_DATA_DIR"] = name
        world = World.written(Path(name) / "world")
        few, many = Path(name) / "few", Path(name) / "many"
        mean = write_race(few, world, options.records)
        write_race(many, world, options.more)
        report: dict[str, Any] = {
            "records": options.records,
            "mean_bytes": round(mean),
            "integrity": measured(few, None),
            "integrity_more": {"records": options.more, **measured(many, None)},
            "recomputed": measured(few, world.catalog),
            "target_records_per_second": TARGET,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "how": "one process, CPU time of all of it, reading and start of the checks included",
        }
    show(report, options.records, options.more)
    if options.json is not None:
        text = json.dumps(report, indent=2) + "\n"
        if str(options.json) == "-":
            print(text, end="")
        else:
            options.json.write_text(text, encoding="utf-8")


def show(report: dict[str, Any], few: int, many: int) -> None:
    """The figures for people."""
    integrity, more, again = (report[n] for n in ("integrity", "integrity_more", "recomputed"))
    print(f"records of {report['mean_bytes']:,} bytes, one core, CPU time")
    print(f"integrity: {integrity['per_second']:,} records a second; target {TARGET:,}")
    print(f"everything decided again: {again['per_second']:,} records a second")
    grown = (more["peak_mb"] - integrity["peak_mb"]) * (1 << 20) / (many - few)
    print(
        f"peak: {integrity['peak_mb']:.0f} MB for {few:,} records, {more['peak_mb']:.0f} MB for"
        f" {many:,}: {grown:.0f} bytes a record"
    )


def write_race(directory: Path, world: World, count: int) -> float:
    """A race's directory with `count` honest records; their mean size."""
    directory.mkdir()
    (directory / "agents").mkdir()
    (directory / "agents" / f"{AGENT.ref.source_hash}.py").write_bytes(AGENT.source)
    problems = b"".join(problem_content(problem) + b"\n" for problem in world.problems)
    (directory / "problems.jsonl.zst").write_bytes(zstandard.compress(problems))
    patterns = [long_record(world, number) for number in range(3)]
    signer, head, size = KeypairSigner("//Bench"), Head(), 0
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with (directory / RECORDS).open("wb") as file:
        for number in range(count):
            content = replace(patterns[number % 3], run_id=f"run-{number}").encode()
            now = start + timedelta(seconds=number)
            sealed = seal_after(head, content, signer, now=now, block=None)
            head = Head.of(sealed.sealed)
            file.write(encode_frame(content, sealed.sealed))
            size += len(content.content)
    return size / count


def long_record(world: World, number: int) -> RunRecord:
    """A run's record of about `BYTES`: the agent looks up many products on the way."""
    base = world.run(number)
    trace = Trace.from_json(json.loads(json.dumps(base.trace)))
    problem = world.problems[number % 3]
    extra: list[Any] = []
    seq = 0
    for page in range(8):
        products: list[Any] = [
            {
                "product_id": str(7_000 + 10 * page + i),
                "shop_id": "7",
                "title": f"Enamel mug number {page}-{i} with a handle of wood, 350 ml, dishwasher",
                "price": 12.5 + i,
                "service": ["freeShipping", "COD"],
                "sold_count": 10 * i,
            }
            for i in range(10)
        ]
        asked = {"q": f"enamel mug handle {page}", "page": 1}
        first = trace.events[0]
        assert isinstance(first, LlmEvent)
        call = {
            "id": f"c{page}",
            "type": "function",
            "function": {"name": "find_product", "arguments": json.dumps(asked)},
        }
        text = (
            f"Page {page} of mugs comes next. The last results showed prices from 12.5 to 21.5"
            " pesos; none of them fits better than what I have, so I go on looking for the mug."
        )
        message = {"role": "assistant", "content": text, "tool_calls": [call]}
        choice: Any = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        extra.append(replace(first, seq=seq, choices=(choice,), params=_tools()))
        extra.append(
            ToolEvent(seq + 1, seq, 1.0, "tools", "find_product", asked, 200, products)  # type: ignore[arg-type]
        )
        seq += 2
    events = (*extra, *(replace(e, seq=e.seq + seq) for e in trace.events))
    whole = replace(trace, events=events)
    catalog = world_catalog(world)
    outcome = rescore(problem, whole, [], catalog, NoTitles(), completed=True)
    axis = rejudge_axis(problem, whole, [], AGENT.source)
    record = replace(base, trace=whole.to_json(), outcome=outcome.to_json(), axis=axis.to_json())
    return replace(record, **world.judged(record))


def _tools() -> dict[str, Any]:
    """Declared tools, as real requests carry them."""
    return {"temperature": 0, "tools": [{"type": "function", "function": {"name": "find_product",
            "description": "Search. " * 60}}]}  # fmt: skip


def world_catalog(world: World) -> Catalog:
    """The world's catalogue."""
    return open_catalog(world.catalog)


def measured(race: Path, catalog: Path | None) -> dict[str, Any]:
    """One verification in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_verify, (race, catalog))


def _verify(race: Path, catalog: Path | None) -> dict[str, Any]:
    options = Options(catalog=catalog, recompute=catalog is not None)
    began, cpu = time.perf_counter(), time.process_time()
    report = asyncio.run(verify([RaceSource(race)], options))
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    assert report.failed == 0, report.findings[:3]
    count = next(t.passed for c, t in report.tallies.items() if c.value == "signature")
    return {
        "per_second": round(count / used),
        "cpu_s": round(used, 3),
        "wall_s": round(wall, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "checks_passed": _passed(report.tallies.values()),
    }


def _passed(tallies: Any) -> int:
    found: Sequence[int] = [tally.passed for tally in tallies]
    return sum(found)


if __name__ == "__main__":
    main()
