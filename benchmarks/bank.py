"""The problem bank: folding a long journal, and what one day costs as the bank grows.

CPU time of this thread, since the machine may be at other work. The pure bank only: no
database, and clusters are given, not found (for those see `benchmarks.clusters`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from arena.journal import Event
from arena.problems.bank import GROWN, Bank
from arena.problems.decisions import mark_raced
from arena.problems.rotation import RotationRule, rotate
from scoring.types import JsonObject

START = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = (10_000, 100_000)
DAYS = 365
DRAWN = 30
GROWN_A_DAY = 40
RULE = RotationRule(opens=10, retires=40, held_out_min=0)


def grown(number: int, pool: str, at: datetime) -> Event:
    """A problem that comes alone."""
    problem: JsonObject = {
        "problem_id": f"p{number}",
        "category": "Product",
        "query": f"Looking for thing {number}.",
        "reward": {"product_id": str(number), "title": [f"Thing {number}"]},
        "difficulty": "easy",
    }
    data: JsonObject = {
        "problem": problem,
        "content_hash": f"{number:064x}",
        "version": 1,
        "provenance": {"origin": "synthesis"},
        "cluster": f"c-{number}",
        "pool": pool,
        "reason": "grown",
    }
    return Event(GROWN, at, data)


def bank_of(size: int) -> Bank:
    """Half held out, half open."""
    pools = ("bank:held_out", "bank:open")
    return Bank.folded([grown(i, pools[i % 2], START) for i in range(size)])


def a_year(bank: Bank) -> None:
    """Each day: grow, draw and note the draw, rotate."""
    number = 10**9
    for day in range(1, DAYS + 1):
        at = START + timedelta(days=day)
        for _ in range(GROWN_A_DAY):
            number += 1
            bank.apply(grown(number, "bank:held_out", at))
        drawn = [holding.problem_id for holding in bank.drawable()[:DRAWN]]
        for event in mark_raced(bank, drawn, f"race-{day}", at):
            bank.apply(event)
        for event in rotate(bank, RULE, seed=str(day), at=at).events(at):
            bank.apply(event)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this thread."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def main() -> None:
    """Print the table of `benchmarks/README.md`."""
    print("| problems | fold, s | a problem, µs |\n|---|---|---|")
    for size in SIZES:
        pools = ("bank:held_out", "bank:open")
        events = [grown(i, pools[i % 2], START) for i in range(size)]
        took = seconds(partial(Bank.folded, events))
        print(f"| {size:,} | {took:.2f} | {took / size * 1e6:.1f} |")
    bank = bank_of(2_000)
    took = seconds(lambda: a_year(bank))
    print(f"\na year of {DAYS} days from 2,000 problems: {took:.2f} s, {bank.entries:,} events")


if __name__ == "__main__":
    main()
