"""What the gate catches and what it stops in error, and how long it takes.

    python -m benchmarks.admission [--versions 5000] [--json FILE]

Checks every file of `tests/fixtures/admission` (honest agents, cheats, and the honest
agents in disguise) in its three parts, and counts by class. Then times, in one run: the
reading of a file in the worker, and the search for its original among `--versions` earlier
submissions. Those are the fingerprints of the honest agents, each with most of its hashes
exchanged for others, of which one in five comes from a small pool that all share, as the
idioms of a trade do.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from arena.problems.suite import load_suite
from arena.submissions.admission import check
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from tests.unit.arena.submissions.measured import BANK, PARTS, bundle, copies

POLICY = Policy()
Tally = dict[str, dict[str, list[int]]]
"""Class → part → [right, all]."""


def count(tally: Tally, kind: str, part: str, right: bool) -> None:
    """Add one file."""
    cell = tally.setdefault(kind, {}).setdefault(part, [0, 0])
    cell[0] += right
    cell[1] += 1


def measure(reader: Reader) -> tuple[Tally, dict[str, Fingerprint]]:
    """Check the whole set; the prints of the honest agents come along."""
    bank = AnswerIndex.build(load_suite(BANK).problems)
    tally: Tally = {}
    prints: dict[str, Fingerprint] = {}
    for part in PARTS:
        for case in (*bundle(f"honest_{part}"), *bundle(f"cheats_{part}")):
            admission = check(case.source, name=case.name, policy=POLICY, bank=bank, reader=reader)
            found = {str(v.rule) for v in admission.violations}
            right = not found if case.honest else bool(found & set(case.rules))
            count(tally, case.kind, part, right)
            if case.honest and admission.fingerprint is not None:
                prints[case.name] = admission.fingerprint
    known = CopyIndex()
    for name, found_print in prints.items():
        known.add(name, name, found_print)
    for part in PARTS:
        for copy in copies(part):
            admission = check(copy.source, name="copy", policy=POLICY, known=known, reader=reader)
            told = {c.version for c in admission.copies} | {known.identical(admission.sha256)}
            count(tally, f"copy: {copy.by}", part, bool(told & set(copy.of)))
    return tally, prints


def chance(prints: dict[str, Fingerprint]) -> float:
    """The greatest share of code that two agents of different authors have in common."""
    known = CopyIndex()
    for name, found in prints.items():
        known.add(name, name, found)
    shares = [
        max(copy.of_theirs, copy.of_mine)
        for name, found in prints.items()
        for copy in known.closest(found, name)
        if copy.what == "code"
    ]
    return max(shares, default=0.0)


def crowd(prints: dict[str, Fingerprint], versions: int, rng: random.Random) -> CopyIndex:
    """An index of many made-up submissions, the honest agents themselves in its middle."""
    pool = [rng.getrandbits(64) for _ in range(2_000)]
    sizes = list(prints.values())
    known = CopyIndex()
    for number in range(versions):
        if number == versions // 2:
            for name, found in prints.items():
                known.add(name, name, found)
        model = rng.choice(sizes)
        code = tuple(
            (rng.choice(pool) if rng.random() < 0.2 else rng.getrandbits(64), first, last)
            for _ in range(4)
            for _, first, last in model.code
        )
        prose = tuple((rng.getrandbits(64), a, b) for _, a, b in model.prose)
        made = replace(model, sha256=str(number), code=code, prose=prose)
        known.add(f"v{number}", f"hotkey {number % (versions // 4)}", made)
    return known


def seconds(action: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and greatest time of a call by the clock."""
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken), max(taken)


def timings(reader: Reader, prints: dict[str, Fingerprint], versions: int) -> dict[str, Any]:
    """Reading, starting a worker for it, and the search among many versions."""
    sources = [case.source for part in PARTS for case in bundle(f"honest_{part}")]
    rng = random.Random(15)
    known = crowd(prints, versions, rng)
    some = next(iter(prints.values()))
    begun = time.perf_counter()
    known.copied(some, POLICY)
    first = time.perf_counter() - begun
    probes = list(prints.values())
    search = seconds(lambda: known.copied(rng.choice(probes), POLICY), 200)
    read = seconds(lambda: reader.read(rng.choice(sources), POLICY), 60)
    alone = seconds(lambda: check(rng.choice(sources), name="x", policy=POLICY), 20)
    return {
        "read_ms": [round(1000 * value, 1) for value in read],
        "check_with_a_worker_of_its_own_ms": [round(1000 * value, 1) for value in alone],
        "versions": versions,
        "search_ms": [round(1000 * value, 1) for value in search],
        "first_search_ms": round(1000 * first, 1),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--versions", type=int, default=5_000)
    parser.add_argument("--json", type=Path, help="write the result here; - is standard output")
    options = parser.parse_args()
    with Reader() as reader:
        tally, prints = measure(reader)
        taken = timings(reader, prints, options.versions)
    share = chance(prints)
    print(f"{'class':64}" + "".join(f"{part:>10}" for part in PARTS))
    totals: Counter[tuple[str, str]] = Counter()
    for kind, parts in tally.items():
        row = [parts.get(part, [0, 0]) for part in PARTS]
        print(f"{kind:64}" + "".join(f"{f'{a}/{b}' if b else '':>10}" for a, b in row))
        group = "honest" if kind == "honest" else "copies" if kind[:5] == "copy:" else "cheats"
        for part, (right, every) in parts.items():
            totals[group, part] += right
            totals[f"all {group}", part] += every
    for group in ("honest", "cheats", "copies"):
        cells = [f"{totals[group, p]}/{totals[f'all {group}', p]}" for p in PARTS]
        print(f"{group.upper():64}" + "".join(f"{cell:>10}" for cell in cells))
    print(f"greatest share of code by chance: {share:.3f}")
    for name, value in taken.items():
        print(f"{name}: {value}")
    if options.json:
        result = {
            "right": tally,
            "greatest_share_by_chance": share,
            "timings": taken,
            "python": platform.python_version(),
        }
        text = json.dumps(result, indent=2) + "\n"
        if str(options.json) == "-":
            print(text, end="")
        else:
            options.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
