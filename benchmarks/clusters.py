"""Leak clusters: planted variants found, unrelated problems joined, and how fast.

    python -m benchmarks.clusters [--shared DIR] [--count 1500] [--speed 20000] [--json FILE]

Three banks: problems made from a generated world, the public problems, and problems made
from the catalogue beside those (real text, four in five products near-copies of another);
the last two only with `--shared`, the folder that holds `shoppingbench/`. No two problems
of a bank share a product, so whatever is joined inside it was joined by likeness. Each
problem is varied in six ways (`benchmarks/planted_variants.py`), and once in all ways that
apply together; every variant gets product ids of its own, so that the rule of shared
products cannot help. Found is a variant that would join its original's cluster. Joined
are pairs of the bank's own problems that stand in one cluster at the end, through others
or not. `--speed N` then clusters N problems and takes the process's CPU time.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from arena.problems.canonical_reward import canonical
from arena.problems.clusters import LISTING_ALIKE, WORDING_ALIKE, Clusters, Thresholds
from arena.problems.normal_form import tokens
from arena.problems.suite import load_suites
from arena.problems.synthesise import split_evenly, synthesise
from benchmarks.planted_variants import KINDS, SYNONYMS, relisted
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import World
from scoring.reading import read_product
from scoring.types import Json, JsonObject, Problem, Product

CURVE = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
BITS = (0, 5, 10, 15, 20)
TOGETHER = "all together"
_SLICE = 20_000
"""Products of which the problems of one slice of the speed run are made."""
_OF_A_SLICE = 2_000


class Slice:
    """Some lines of a generated world, in memory; without a search."""

    content_hash = "0" * 64
    engine = "memory"

    def __init__(self, world: World, first: int, count: int) -> None:
        lines = (world.document(i) for i in range(first, first + count))
        made = (read_product(line["product"]) for line in lines)
        self._products = {product.product_id: product for product in made}

    def __len__(self) -> int:
        return len(self._products)

    def ids(self) -> Iterable[str]:
        """All ids, sorted."""
        return sorted(self._products)

    def product(self, product_id: str) -> Product | None:
        """The product, if it is here."""
        return self._products.get(product_id)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """Those of the ids that are here."""
        return {i: self._products[i] for i in product_ids if i in self._products}

    def find(self, q: str, **_: object) -> list[Product]:
        """Nothing here searches."""
        raise NotImplementedError


def apart(problems: Iterable[Problem]) -> list[Problem]:
    """Those that share no product with one before them."""
    seen: set[str] = set()
    kept = []
    for problem in problems:
        ids = {reward.product_id for reward in problem.rewards}
        if seen.isdisjoint(ids):
            kept.append(problem)
            seen |= ids
    return kept


def planted(problems: Sequence[Problem]) -> dict[str, list[tuple[Problem, Problem]]]:
    """Originals with their variant, by kind."""
    found: dict[str, list[tuple[Problem, Problem]]] = {}
    for kind, make in KINDS.items():
        rng = random.Random(kind)
        pairs = ((p, make(p, rng)) for p in problems)
        found[kind] = [(p, relisted(v, rng)) for p, v in pairs if v is not None]
    rng = random.Random(TOGETHER)
    found[TOGETHER] = []
    for problem in problems:
        variant = problem
        for make in KINDS.values():
            variant = make(variant, rng) or variant
        found[TOGETHER].append((problem, relisted(variant, rng)))
    return found


def measure(
    problems: Sequence[Problem],
    variants: dict[str, list[tuple[Problem, Problem]]],
    threshold: float,
) -> JsonObject:
    """Recall by kind, and what was joined that shares no product."""
    clusters = Clusters.of(problems, Thresholds(threshold, threshold))
    recall: JsonObject = {}
    for kind, pairs in variants.items():
        hits = 0
        for problem, variant in pairs:
            home = clusters.find(problem.problem_id)
            links = clusters.links_of(variant)
            hits += any(clusters.find(link.other) == home for link in links)
        recall[kind] = hits / len(pairs)
    sizes = [len(members) for members in clusters.groups().values()]
    joined = sum(size * (size - 1) for size in sizes)
    rules: dict[str, Json] = dict(Counter(link.rule.value for link in clusters.links))
    return {
        "threshold": threshold,
        "recall": recall,
        "joined": joined / (len(problems) * (len(problems) - 1)),
        "largest": max(sizes),
        "links": rules,
    }


def same_rewards(problems: Sequence[Problem]) -> JsonObject:
    """How many rewards another product has too, by the bits that they have at least."""
    forms = [
        form
        for problem in problems
        for reward in problem.rewards
        if (form := canonical(reward)).constraints
    ]
    seen = Counter(form.constraints for form in forms)
    rows: JsonObject = {}
    for least in BITS:
        told = [form for form in forms if form.bits >= least]
        shared = sum(seen[form.constraints] > 1 for form in told)
        rows[str(least)] = f"{shared} of {len(told)}"
    return rows


def banks(shared: Path | None, count: int) -> Iterator[tuple[str, list[Problem]]]:
    """The banks, by name."""
    made = synthesise(Slice(World(_SLICE, 7), 0, _SLICE), split_evenly(count), seed=5)
    yield "generated world", apart(made)
    if shared is None:
        return
    folder = shared / "shoppingbench"
    files = [folder / f"{name}.jsonl" for name in ("product", "shop", "voucher")]
    yield "public problems", apart(load_suites(files))
    copies = open_catalog(folder / "documents.jsonl.gz")
    yield "catalogue of near-copies", apart(synthesise(copies, split_evenly(count), seed=5))


def speed(count: int) -> list[Json]:
    """CPU seconds per thousand problems while the clusters grow to `count`."""
    world = World(max(_SLICE, count // _OF_A_SLICE * _SLICE), 3)
    clusters, rows = Clusters(), list[Json]()
    for number in range(count // _OF_A_SLICE):
        catalog = Slice(world, number * _SLICE, _SLICE)
        problems = synthesise(catalog, split_evenly(_OF_A_SLICE), seed=number)
        start = time.process_time()
        for problem in problems:
            clusters.add(problem)
        spent = time.process_time() - start
        rows.append(
            {
                "problems": (number + 1) * _OF_A_SLICE,
                "s_per_1000": round(spent / _OF_A_SLICE * 1000, 2),
                "clusters": len(clusters),
                "largest": max(map(len, clusters.groups().values())),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
        if number % 5 == 4 or number == 0:
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--speed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    unknown = [w for w, other in SYNONYMS.items() if sorted(tokens(w)) != sorted(tokens(other))]
    print(f"{len(unknown)} of the {len(SYNONYMS)} planted synonyms are unknown to the detector")
    print(f"thresholds in use: listing {LISTING_ALIKE}, wording {WORDING_ALIKE}")
    result: JsonObject = {"synonyms": len(SYNONYMS), "unknown": len(unknown)}
    for name, problems in banks(args.shared, args.count):
        variants = planted(problems)
        counts = ", ".join(f"{kind} {len(pairs)}" for kind, pairs in variants.items())
        print(f"\n{name}: {len(problems)} problems; {counts}")
        print(f"rewards that another product has too, by least bits: {same_rewards(problems)}")
        rows = []
        for threshold in CURVE:
            row = measure(problems, variants, threshold)
            print(json.dumps(row), flush=True)
            rows.append(row)
        result[name] = list[Json](rows)
    if args.speed:
        result["speed"] = speed(args.speed)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
