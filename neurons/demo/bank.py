"""The demonstration's bank: grown on the generated catalogue, with clusters and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from arena.journal import Event, Journal
from arena.problems.bank import Bank
from arena.problems.bank_store import LoadedBank, change_bank
from arena.problems.growth import Growth, GrowthPlan, grow
from arena.problems.pools import Pool
from arena.problems.suite import write_suite
from arena.problems.synthesise import split_evenly
from sandbox.catalog import Catalog
from scoring.types import Problem

STOCK = 1.5
"""Held-out problems for each that is raced: the draw has to have a choice."""
_MIX = {"easy": 1.0, "medium": 1.0, "hard": 1.0}


async def grow_bank(
    journal: Journal, catalog: Catalog, *, raced: int, opened: int, seed: int, at: datetime
) -> Bank:
    """A bank with enough held-out problems for a race of `raced`, and `opened` open ones."""
    bank = Bank()
    wanted = ((Pool.HELD_OUT, int(raced * STOCK)), (Pool.OPEN, opened))
    for number, (pool, count) in enumerate(wanted):
        plan = GrowthPlan(split_evenly(count), pool, seed + number, _MIX)

        async def decide(
            loaded: LoadedBank, plan: GrowthPlan = plan
        ) -> tuple[Sequence[Event], None]:
            growth = Growth(loaded.bank, loaded.clusters, catalog, plan, key=_key(seed), at=at)
            grow(growth)
            return growth.taken.events, None

        bank, _ = await change_bank(journal, decide)
    return bank


def problems_in(bank: Bank, ids: Sequence[str]) -> list[Problem]:
    """Problems of the bank with the pool and cluster that records name."""
    found = []
    for problem_id in ids:
        holding = bank.need(problem_id)
        problem = bank.problem(problem_id)
        found.append(replace(problem, pool=holding.pool.value, cluster=holding.cluster))
    return found


def write_problems(problems: Sequence[Problem], file: Path) -> Path:
    """A suite of these problems, for the commands that are shown at the end."""
    write_suite(problems, file)
    return file


def _key(seed: int) -> bytes:
    """Names problems the same on every machine; an arena's own key is secret."""
    return f"sn15-arena demonstration {seed}".encode()
