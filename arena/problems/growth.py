"""How the bank grows: synthesis from the catalogue, to quotas by bucket and difficulty.

A growth draws candidates, lets a model reword them if one is given (`rewording`), and
brings them to the bank by the rules of `intake`; for what is left out it draws others. Each
is a leak cluster of its own, of products that are new to the bank, unless it may use those
again whose clusters stand where the new problems go. Seeded: the same bank, catalogue and
seed give the same problems, without a model. The seed is a secret while its problems are
held out: who has it and the catalogue can make them too. Touches nothing but the catalogue.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from arena.exceptions import BankError
from arena.problems.bank import Bank
from arena.problems.holdings import UNKNOWN_POOL, Origin, Provenance
from arena.problems.identity import problem_id_of
from arena.problems.intake import Intake, Taken
from arena.problems.pools import Pool
from arena.problems.suite import problem_to_json
from arena.problems.synthesise import GENERATOR, TOO_SMALL, Synthesis
from sandbox.catalog.interface import Catalog
from scoring.exceptions import ProblemError
from scoring.types import Bucket, Problem

if TYPE_CHECKING:  # load datasketch, and the SDKs of model providers: seconds
    from arena.problems.clusters import Clusters
    from arena.problems.rewording import Reworder

DIFFICULTIES = ("easy", "medium", "hard")
DEFAULT_MIX: Mapping[str, float] = {"easy": 0.4, "medium": 0.4, "hard": 0.2}
PATIENCE = 40
"""Candidates drawn for each problem wanted before any difficulty will do: how many
constraints a problem states follows from its products, and one product has few."""
FITTING = 100
"""Candidates looked at for each problem wanted before the catalogue is called too small:
those that the bank would leave out are not even reworded."""

Candidate = tuple[Problem, str | None]
"""A problem, and the model that reworded it."""


@dataclass(frozen=True, slots=True)
class GrowthPlan:
    """What a growth is to bring."""

    counts: Mapping[Bucket, int]
    pool: Pool
    seed: int
    mix: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_MIX))
    """Shares of easy, medium and hard in each bucket; only their ratio counts."""
    reuse: bool = False
    """Whether problems may join clusters, and products serve again, in the pool where they
    stand: more problems, and no more for a race to draw without two of one cluster."""


class Growth:
    """A growth under way: `batch` gives candidates, `bring` takes them in, until `done`."""

    def __init__(
        self,
        bank: Bank,
        clusters: Clusters,
        catalog: Catalog,
        plan: GrowthPlan,
        *,
        key: bytes,
        at: datetime,
    ) -> None:
        """`key` names the problems (`identity`). Raises BankError for a pool of no bank."""
        if plan.pool not in (Pool.OPEN, Pool.HELD_OUT):
            raise BankError(f"nothing grows in {plan.pool}", code=UNKNOWN_POOL)
        self.plan = plan
        self.wanted: Counter[tuple[Bucket, str]] = Counter(_quotas(plan))
        """What was asked for, by bucket and difficulty."""
        self.got: Counter[tuple[Bucket, str]] = Counter()
        self.drawn = 0
        self.reworded = 0
        """Problems that came in a model's words."""
        self._bank = bank
        self._key = key
        self._provenance = Provenance(
            Origin.SYNTHESIS,
            catalog_hash=catalog.content_hash,
            seed=str(plan.seed),
            generator=GENERATOR,
        )
        self._intake = Intake(bank, clusters, at)
        self._synthesis = Synthesis(
            catalog, seed=plan.seed, key=key, without=_spent_products(bank, plan)
        )
        self._patience = {bucket: PATIENCE * n for bucket, n in plan.counts.items()}
        self._looked: Counter[Bucket] = Counter()

    @property
    def done(self) -> bool:
        """Whether every bucket has its count."""
        return not any(self._missing(bucket) for bucket in Bucket)

    @property
    def taken(self) -> Taken:
        """What came of all that was brought; its events are applied to the bank already."""
        return self._intake.taken

    def batch(self) -> list[Problem]:
        """Candidates for all that is missing, each such that the bank would take it alone.

        Raises ProblemError (`problem.catalog_too_small`) when the catalogue gives no more.
        """
        return [problem for bucket in Bucket for problem in self._draw(bucket)]

    def items(self, problem: Problem) -> tuple[str, ...]:
        """How a candidate words its wanted products, in order."""
        return self._synthesis.items[problem.problem_id]

    def bring(self, candidates: Sequence[Candidate]) -> None:
        """Bring a batch to the bank; a reworded problem gets the id of its new words."""
        for problem, model in candidates:
            provenance = self._provenance
            named = problem
            if model is not None:
                named = replace(
                    problem, problem_id=problem_id_of(problem_to_json(problem), self._key)
                )
                provenance = replace(provenance, reworded_by=model)
            alone = not self.plan.reuse
            if self._intake.bring(named, self.plan.pool, provenance, alone=alone):
                self.got[named.bucket, named.difficulty or ""] += 1
                self.reworded += model is not None

    def _draw(self, bucket: Bucket) -> list[Problem]:
        """Problems of one bucket, of the difficulties that are missing while patience lasts."""
        room = Counter({d: self.wanted[bucket, d] - self.got[bucket, d] for d in DIFFICULTIES})
        found: list[Problem] = []
        while len(found) < self._missing(bucket):
            problem = self._synthesis.draw(bucket)
            self.drawn += 1
            self._patience[bucket] -= 1
            difficulty = problem.difficulty or ""
            if room[difficulty] <= 0 and self._patience[bucket] > 0:
                continue
            self._count(bucket)
            if not self.plan.reuse:
                self._synthesis.used.update(r.product_id for r in problem.rewards)
            if self._intake.fits(problem, self.plan.pool, alone=not self.plan.reuse):
                room[difficulty] -= 1
                found.append(problem)
        return found

    def _count(self, bucket: Bucket) -> None:
        self._looked[bucket] += 1
        if self._looked[bucket] > FITTING * self.plan.counts[bucket]:
            left_out = self.taken.left_out_by_reason().items()
            raise ProblemError(
                f"hardly any {bucket.category} problem of this catalogue may come to"
                f" {self.plan.pool}: {', '.join(f'{n} {why}' for why, n in left_out)}",
                code=TOO_SMALL,
                remedy="ask for fewer problems, or give a larger catalogue",
            )

    def _missing(self, bucket: Bucket) -> int:
        got = sum(n for (b, _), n in self.got.items() if b is bucket)
        return self.plan.counts.get(bucket, 0) - got


def grow(growth: Growth, advance: Callable[[int], None] = lambda _: None) -> Taken:
    """A whole growth in the generator's own words; `advance` hears how many came each round."""
    while not growth.done:
        before = len(growth.taken.admitted)
        growth.bring([(problem, None) for problem in growth.batch()])
        advance(len(growth.taken.admitted) - before)
    return growth.taken


async def grow_reworded(
    growth: Growth, reworder: Reworder, advance: Callable[[int], None] = lambda _: None
) -> Taken:
    """A whole growth in a model's words, where they hold. Raises RewordingError."""
    while not growth.done:
        before = len(growth.taken.admitted)
        batch = [(problem, growth.items(problem)) for problem in growth.batch()]
        growth.bring(await reworder.reword_all(batch))
        advance(len(growth.taken.admitted) - before)
    return growth.taken


def secret_seed(key: bytes, purpose: str) -> int:
    """A seed that only the holder of the arena's key can compute; 63 bits.

    `purpose` tells the seeds of one key apart, such as `growth/2026-11-21/3`.
    """
    return int.from_bytes(hmac.digest(key, purpose.encode(), hashlib.sha256)[:8], "big") >> 1


def _quotas(plan: GrowthPlan) -> dict[tuple[Bucket, str], int]:
    """Whole problems by bucket and difficulty: the largest remainders get what is left over."""
    total = sum(plan.mix.get(d, 0.0) for d in DIFFICULTIES)
    if not total > 0:
        raise BankError("the mix of difficulties is empty", remedy="easy=0.4,medium=0.4,hard=0.2")
    quotas: dict[tuple[Bucket, str], int] = {}
    for bucket, count in plan.counts.items():
        exact = {d: count * plan.mix.get(d, 0.0) / total for d in DIFFICULTIES}
        whole = {d: int(share) for d, share in exact.items()}
        left = count - sum(whole.values())
        for d in sorted(DIFFICULTIES, key=lambda d: whole[d] - exact[d])[:left]:
            whole[d] += 1
        quotas |= {(bucket, d): n for d, n in whole.items()}
    return quotas


def _spent_products(bank: Bank, plan: GrowthPlan) -> frozenset[str]:
    """Products that must not answer a new problem; always those of the suites' clusters."""

    def free(product_id: str) -> bool:
        cluster = bank.product_cluster(product_id)
        if not plan.reuse or cluster is None or cluster.suite:
            return False
        return cluster.pool is plan.pool and (plan.pool is Pool.OPEN or not cluster.exposed)

    return frozenset(product_id for product_id in bank.products if not free(product_id))
