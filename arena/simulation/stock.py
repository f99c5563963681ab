"""The bank of a simulated season: the real one, with its clusters, growth and rotation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.clusters import Clusters
from arena.problems.decisions import mark_raced
from arena.problems.growth import Growth, GrowthPlan, grow, secret_seed
from arena.problems.holdings import Holding
from arena.problems.pools import Pool
from arena.problems.rotation import RotationRule, rotate
from arena.season.draw import Candidate
from arena.simulation.catalogue import Arrivals
from scoring.types import Bucket

MIXES: Mapping[Bucket, Mapping[str, float]] = {
    Bucket.PRODUCT: {"easy": 0.7, "medium": 0.3},
    Bucket.SHOP: {"medium": 0.5, "hard": 0.5},
    Bucket.VOUCHER: {"medium": 0.5, "hard": 0.5},
}
"""Difficulties as the catalogue gives them: asking for others takes many more draws."""
FIRST_STOCK = 3
"""Races that the first stock of held-out problems is for."""
SPARE = 1
"""Problems of each bucket that a day's growth has beyond a day's race."""


class Stock:
    """Problems in, problems out; every change is an event."""

    def __init__(
        self, each: int, open_each: int, products: int, seed: int, bank: Callable[[], Bank] = Bank
    ) -> None:
        """`each` and `open_each`: problems of a bucket in a race, and in the open pool."""
        self.bank = bank()
        self.clusters = Clusters()
        self.events: list[Event] = []
        self._each, self._open_each = each, open_each
        self._products, self._seed = products, seed
        self._key = hashlib.sha256(f"simulated arena {seed}".encode()).digest()
        self._week = -1
        self._arrivals = Arrivals(1, seed, 0)
        # Only what was raced rotates: the next race is committed to the rest.
        self._rule = RotationRule(
            every=timedelta(hours=12),
            opens=0,
            retires=each,
            held_out_min=each,
            open_min=open_each,
        )

    def begin(self, at: datetime) -> None:
        """The first stock of both pools."""
        self._grow(Pool.OPEN, self._open_each, 0, at)
        self._grow(Pool.HELD_OUT, FIRST_STOCK * self._each, 0, at)

    def grow(self, day: int, at: datetime) -> None:
        """A day's growth, from the products of its week."""
        self._grow(Pool.HELD_OUT, self._each + SPARE, day, at)

    def rotate(self, day: int, at: datetime) -> None:
        """What was raced goes to the open pool, and the oldest there retire."""
        seed = hashlib.sha256(f"{self._seed}/rotation/{day}".encode()).hexdigest()
        self._take(rotate(self.bank, self._rule, seed=seed, at=at).events(at))

    def mark_raced(self, problem_ids: list[str], race_id: str, at: datetime) -> None:
        """Note a draw."""
        self._take(mark_raced(self.bank, problem_ids, race_id, at))

    def candidates(self) -> list[Candidate]:
        """What a race may draw."""
        return [Candidate(h.problem_id, h.bucket, h.cluster) for h in self.bank.drawable()]

    def opened(self) -> list[Holding]:
        """The open pool, sorted by id."""
        return sorted(self.bank.live(Pool.OPEN), key=lambda held: held.problem_id)

    def cluster_of(self) -> dict[str, str]:
        """Each problem's cluster, as the index of clusters has it."""
        return {h.problem_id: self.clusters.find(h.problem_id) or "" for h in self.bank}

    def _grow(self, pool: Pool, count: int, day: int, at: datetime) -> None:
        if day // 7 != self._week:
            self._week = day // 7
            self._arrivals = Arrivals(self._products, self._seed, self._week)
        for bucket, mix in MIXES.items():
            seed = secret_seed(self._key, f"growth/{day}/{pool.value}/{bucket.value}")
            plan = GrowthPlan({bucket: count}, pool, seed, mix)
            growth = Growth(self.bank, self.clusters, self._arrivals, plan, key=self._key, at=at)
            self.events += grow(growth).events

    def _take(self, events: list[Event]) -> None:
        for event in events:
            self.bank.apply(event)
        self.events += events
