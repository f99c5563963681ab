"""The bank's stock: what was raced becomes open, the oldest retire, new problems come in.

Between the opening of a race and its draw nothing that is listed leaves held-out: a rotation
then opens only what was raced before. And what a race has drawn is opened when that race is
over, not while validators run it.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from arena.conducting.calendar import Calendar
from arena.conducting.parts import Grower, Parts
from arena.conducting.work import Work
from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.bank_store import LoadedBank
from arena.problems.growth import Growth, GrowthPlan, grow, secret_seed
from arena.problems.intake import Intake
from arena.problems.pools import Pool
from arena.problems.rotation import due_at, rotate
from sandbox.catalog.interface import Catalog
from scoring.types import Bucket

STEP = "stock"


class CatalogGrower:
    """Grows problems from a catalogue, in the generator's own words."""

    def __init__(self, catalog: Catalog, key: bytes) -> None:
        """`key` names the problems and seeds them: a secret."""
        self._catalog = catalog
        self._key = key

    def grow(
        self, loaded: LoadedBank, counts: Mapping[Bucket, int], pool: Pool, at: datetime
    ) -> Sequence[Event]:
        """As `Grower.grow`. Raises ProblemError when the catalogue gives no more."""
        seed = secret_seed(self._key, f"growth/{loaded.bank.entries}/{pool.value}")
        plan = GrowthPlan(counts, pool, seed)
        growth = Growth(loaded.bank, loaded.clusters, self._catalog, plan, key=self._key, at=at)
        return grow(growth).events


async def rotate_bank(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Rotate when it is due and no race runs. Raises BankError when too little would be left."""
    season = calendar.season
    due = due_at(calendar.bank, parts.rotation)
    early = due is not None and work.now < due
    # Before the first race there is nothing to rotate: the stock comes in.
    raced = bool(season.results or season.voids)
    if season.running is not None or early or not raced:
        return
    rule = parts.rotation
    if season.open is not None:
        # Only what is spent moves, so what is left to draw from does not change.
        rule = replace(rule, opens=0, held_out_min=0)

    def decide(bank: Bank, at: datetime) -> Sequence[Event]:
        seed = str(secret_seed(parts.bank_key, f"rotation/{bank.entries}"))
        rotation = rotate(bank, rule, seed=seed, at=at)
        moves = any(one.opened or one.retired for one in rotation.moves)
        return rotation.events(at) if moves else []

    # Asked of what is in memory first: the journal is not read again at every look.
    if not decide(calendar.bank, calendar.bank_moment(calendar.bank, work.now)):
        return
    for event in await calendar.change_bank(lambda b, at: decide(b.bank, at), work.now):
        opened, retired = (event.data[name] for name in ("opened", "retired"))
        assert isinstance(opened, dict)
        assert isinstance(retired, dict)
        told = f"{len(opened)} clusters opened, {len(retired)} retired"
        work.did(STEP, event.kind, "bank", told)


async def grow_bank(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Grow the pools to what races and qualifying need: a batch at a look, and all that is
    missing before a race opens, which draws from what is there then."""
    if parts.grower is None or not calendar.begun:
        return
    for pool, wanted in _wanted(parts, calendar).items():
        missing = _missing(calendar.bank, pool, wanted)
        most = parts.settings.growth_batch if calendar.season.open else missing.total()
        counts = _batch(missing, most)
        if not counts:
            continue
        with work.trying(STEP, pool.value):
            events = await _grow(parts.grower, calendar, counts, pool, work.now)
            if events:
                work.did(STEP, "bank.grown", pool.value, f"{len(events)} problems")


async def reconcile_clusters(parts: Parts, calendar: Calendar, work: Work) -> None:
    """Merge clusters that this program sees as one and an older one did not. Only while no
    race is listed: who must leave for it may be held out. Before each race opens."""
    if calendar.season.open is not None or not len(calendar.bank):
        return

    def decide(loaded: LoadedBank, at: datetime) -> Sequence[Event]:
        return Intake(loaded.bank, loaded.clusters, at).reconcile().events

    events = await calendar.change_bank(decide, work.now)
    if events:
        work.did(STEP, "clusters.reconciled", "bank", f"{len(events)} changes")


async def _grow(
    grower: Grower, calendar: Calendar, counts: Mapping[Bucket, int], pool: Pool, now: datetime
) -> Sequence[Event]:
    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], Sequence[Event]]:
        at = max(now, loaded.bank.clock or now)
        events = await asyncio.to_thread(grower.grow, loaded, counts, pool, at)
        return events, events

    return await calendar.write_bank(decide)


def _wanted(parts: Parts, calendar: Calendar) -> dict[Pool, dict[Bucket, int]]:
    """Clusters of each bucket that the pools are to have."""
    quota, rule = calendar.season.rules.quota, parts.rotation
    races = parts.settings.stock_races
    qualifying = math.ceil(parts.settings.qualifying_problems / len(Bucket))
    held_out = {
        bucket: max(rule.held_out_min + rule.opens, math.ceil(races * quota.get(bucket, 0)))
        for bucket in Bucket
    }
    opened = max(rule.open_min, qualifying)
    return {Pool.HELD_OUT: held_out, Pool.OPEN: dict.fromkeys(Bucket, opened)}


def _missing(bank: Bank, pool: Pool, wanted: Mapping[Bucket, int]) -> Counter[Bucket]:
    have = Counter(c.bucket for c in bank.clusters(pool) if pool is Pool.OPEN or not c.exposed)
    return +Counter({bucket: wanted[bucket] - have[bucket] for bucket in Bucket})


def _batch(missing: Counter[Bucket], most: int) -> dict[Bucket, int]:
    """As many of what is missing as one growth may bring, the buckets in turns."""
    taken: Counter[Bucket] = Counter()
    while sum(taken.values()) < min(most, sum(missing.values())):
        for bucket in Bucket:
            if taken[bucket] < missing[bucket] and sum(taken.values()) < most:
                taken[bucket] += 1
    return dict(taken)
