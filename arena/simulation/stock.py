"""The bank of a simulated season: the real one, with its clusters, growth and rotation."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.clusters import Clusters
from arena.problems.decisions import mark_raced
from arena.problems.growth import Growth, GrowthPlan, grow, secret_seed
from arena.problems.holdings import Holding, Origin, Provenance
from arena.problems.intake import Intake
from arena.problems.pools import Pool
from arena.problems.rotation import RotationRule, rotate
from arena.season.draw import Candidate
from arena.simulation.catalogue import Arrivals
from scoring.types import Bucket

MIXES: Mapping[Bucket, Mapping[str, float]] = {
    Bucket.PRODUCT: {"easy": 0.66, "medium": 0.34},
    Bucket.SHOP: {"medium": 0.38, "hard": 0.62},
    Bucket.VOUCHER: {"medium": 0.35, "hard": 0.65},
}
"""Difficulties as the catalogue gives them: asking for others takes many more draws."""
MANNERS = ("Hello!", "Please help me.", "A question:", "For a friend of mine.")
"""What a variant of a problem adds to its wording."""
FIRST_STOCK = 3
"""Races that the first stock of held-out problems is for."""


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
        """A day's growth, from the products of its week: a race's worth, and a little more
        while the stock is less than at first, since some problems join a cluster."""
        in_store = len({held.cluster for held in self.bank.drawable()})
        short = in_store < len(Bucket) * FIRST_STOCK * self._each
        self._grow(Pool.HELD_OUT, self._each + short, day, at)

    def contribute(self, day: int, at: datetime) -> Counter[str]:
        """Variants of problems, brought by people who mean well: one of a held-out problem to
        held-out, one of a held-out to open, one of an open to held-out. What became of each:
        `admitted`, or why it was left out."""
        rng = random.Random(f"{self._seed}/variants/{day}")  # noqa: S311 - no secret
        held_out = self.bank.drawable()
        came: Counter[str] = Counter()
        for number, (held, pool) in enumerate(
            (
                (rng.choice(held_out), Pool.HELD_OUT),
                (rng.choice(held_out), Pool.OPEN),
                (rng.choice(self.opened()), Pool.HELD_OUT),
            )
        ):
            asked = replace(
                held.problem,
                problem_id=f"variant-{day}-{number}",
                query=f"{rng.choice(MANNERS)} {held.problem.query}",
                pool=None,
                cluster=None,
            )
            intake = Intake(self.bank, self.clusters, at)
            intake.bring(asked, pool, Provenance(Origin.FILE, name="variants"))
            self.events += intake.taken.events
            came.update(intake.taken.left_out_by_reason() or {"admitted": 1})
        return came

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
