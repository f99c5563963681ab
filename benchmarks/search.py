"""Search: latency, memory and opening time, beside the upstream algorithm on real Lucene.

    python -m benchmarks.search [--products 200000] [--million] [--queries 300]
                                [--upstream-queries 30] [--work DIR] [--json FILE]

Generates a world, indexes it, and asks for what agents ask for: a few words of a title;
the same within a shop; the same with a price band and a service. Each engine runs alone
in a fresh process, one thread, on the same queries in the same order; the upstream
algorithm (10,000 hits of Lucene, parse every hit's JSON, filter, keep 50) runs when
`make lucene` has installed it, on the first of them. Ratios compare medians of one run,
by the clock and by the calling thread's CPU time: the latter stays fair on a busy machine
and leaves Java's own threads out.
`--million` adds memory and opening time at one million products, without Lucene.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.catalog import lucene
from sandbox.catalog.bm25 import CAP, KEPT
from sandbox.catalog.builder import build_index
from sandbox.catalog.documents import read_documents
from sandbox.catalog.filters import clean_query, price_range
from sandbox.catalog.generate import write_world
from sandbox.catalog.native import NativeCatalog

SEED = 15
KINDS = ("plain", "shop", "price and service")
RAW = "lucene-raw"
MILLION = 1_000_000

Search = dict[str, Any]
Report = dict[str, Any]


def searches(catalog: NativeCatalog, kind: str, count: int) -> list[Search]:
    """The queries of one kind: three to six words of a title, filters that fit it."""
    rng = random.Random(f"{SEED} {kind}")
    made: list[Search] = []
    while len(made) < count:
        product = catalog.product_at(rng.randrange(len(catalog)))
        words = product.title.split()
        search: Search = {"q": " ".join(rng.sample(words, min(len(words), rng.randint(3, 6))))}
        if kind == "shop":
            search["shop_id"] = product.shop_id
        if kind == "price and service":
            if not product.service:
                continue
            search["price"] = f"{int(product.price * 0.7)}-{int(product.price * 1.4) + 1}"
            search["service"] = [rng.choice(product.service)]
        made.append(search)
    return made


def milliseconds(search: Callable[..., object], asked: list[Search]) -> Report:
    """p50 and p99 of the calls, by the clock and by this thread's own CPU time.

    The first queries are asked once before, to warm up.
    """
    for args in asked[:10]:
        search(**args)
    wall, cpu = [], []
    for args in asked:
        start, start_cpu = time.perf_counter(), time.thread_time()
        search(**args)
        wall.append((time.perf_counter() - start) * 1000)
        cpu.append((time.thread_time() - start_cpu) * 1000)
    report: Report = {"queries": len(asked)}
    for name, taken in (("", wall), ("cpu_", cpu)):
        taken.sort()
        report[f"p50_{name}ms"] = round(taken[len(taken) // 2], 3)
        report[f"p99_{name}ms"] = round(taken[int((len(taken) - 1) * 0.99)], 3)
    return report


def resident_mb() -> float:
    """Resident memory of this process, all mapped pages included."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return round(int(kilobytes) / 1024, 1)


def measure_native(index: Path, queries: int) -> Report:
    """Everything about the default engine; for a fresh process."""
    before = resident_mb()
    start = time.perf_counter()
    catalog = NativeCatalog(index)
    opened = time.perf_counter() - start
    start = time.perf_counter()
    catalog.find("cotton shirt", shop_id=catalog.product_at(0).shop_id)
    first = time.perf_counter() - start
    report: Report = {
        "products": len(catalog),
        "open_s": round(opened, 4),
        "first_query_s": round(first, 3),
        "resident_before_mb": before,
    }
    report["kinds"] = {
        kind: milliseconds(catalog.find, searches(catalog, kind, queries)) for kind in KINDS
    }
    report["resident_mb"] = resident_mb()
    return report


class Upstream:
    """The upstream algorithm: 10,000 hits, every hit's JSON, then the filters."""

    def __init__(self, directory: Path) -> None:
        self._searcher = lucene.java_class("io.anserini.search.SimpleSearcher")(str(directory))
        self._searcher.set_bm25(0.9, 0.4)

    def find(
        self,
        q: str,
        shop_id: str | None = None,
        price: str | None = None,
        service: list[str] | None = None,
    ) -> list[str]:
        """Ids of the first page."""
        low, high = price_range(price)
        kept = []
        for hit in self._searcher.search(clean_query(q), CAP):
            product = json.loads(hit.lucene_document.get("raw"))["product"]
            if shop_id is not None and product["shop_id"] != shop_id:
                continue
            if not low <= product["price"] <= high:
                continue
            if not set(service or ()) <= set(product["service"]):
                continue
            kept.append(product["product_id"])
        return kept[:KEPT][:10]


def measure_upstream(index: Path, queries: int) -> Report:
    """The upstream algorithm on the same first queries; for a fresh process."""
    catalog = NativeCatalog(index)
    upstream = Upstream(index.parent / RAW)
    report: Report = {"kinds": {}, "differing": 0}
    for kind in KINDS:
        asked = searches(catalog, kind, queries)
        report["kinds"][kind] = milliseconds(upstream.find, asked)
        for args in asked[:10]:
            ours = [product.product_id for product in catalog.find(**args)]
            report["differing"] += ours != upstream.find(**args)
    report["resident_mb"] = resident_mb()
    return report


def write_raw_index(world: Path, directory: Path) -> None:
    """A Lucene index that stores every line, as the real network's does."""
    indexer = lucene.java_class("io.anserini.index.SimpleIndexer")(
        ["-collection", "JsonCollection", "-input", "x", "-storeRaw", "-index", str(directory)]
    )
    for document in read_documents([world]):
        indexer.addRawDocument(document.canonical.decode("ascii"))
    indexer.close()


def prepared(work: Path, products: int) -> tuple[Path, Report]:
    """A world and its index, made once per place and size."""
    place = work / f"search-{products}"
    world, index = place / "world.jsonl", place / "index"
    report: Report = {}
    if not index.exists():
        start = time.perf_counter()
        write_world(products, SEED, world)
        report["generate_s"] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()
        build_index([world], index)
        report["build_s"] = round(time.perf_counter() - start, 1)
    files = (file for file in index.rglob("*") if file.is_file())
    report["disk_mb"] = round(sum(file.stat().st_size for file in files) / 2**20, 1)
    return index, report


def in_a_fresh_process(what: str, index: Path, queries: int) -> Report:
    """Run one `measure_…` alone and return what it reports."""
    command = [sys.executable, "-m", "benchmarks.search", "--measure", what]
    command += ["--index", str(index), "--queries", str(queries)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: Report = json.loads(done.stdout.splitlines()[-1])
    return report


def compared(work: Path, products: int, queries: int, upstream_queries: int) -> Report:
    """One size: our engine, and the upstream algorithm when upstream_queries are asked."""
    index, report = prepared(work, products)
    report["native"] = in_a_fresh_process("native", index, queries)
    lack = lucene.missing()
    if lack or not upstream_queries:
        report["upstream"] = lack or "not asked for"
        return report
    if not (index.parent / RAW).exists():
        write_raw_index(index.parent / "world.jsonl", index.parent / RAW)
    report["upstream"] = in_a_fresh_process("upstream", index, upstream_queries)
    ours, theirs = report["native"]["kinds"], report["upstream"]["kinds"]
    report["times_faster"] = {
        kind: {p: round(theirs[kind][p] / ours[kind][p]) for p in ("p50_ms", "p50_cpu_ms")}
        for kind in KINDS
    }
    return report


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--products", type=int, default=200_000)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--upstream-queries", type=int, default=30)
    parser.add_argument("--work", type=Path, default=Path("var/benchmarks"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", choices=("native", "upstream"), help=argparse.SUPPRESS)
    parser.add_argument("--index", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure = {"native": measure_native, "upstream": measure_upstream}[args.measure]
        print(json.dumps(measure(args.index, args.queries)))
        return
    report = {
        f"{args.products}": compared(args.work, args.products, args.queries, args.upstream_queries)
    }
    if args.million:
        report[f"{MILLION}"] = compared(args.work, MILLION, args.queries, 0)
    text = json.dumps(report, indent=2)
    print(text)
    if args.json:
        args.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
