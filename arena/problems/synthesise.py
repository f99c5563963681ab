"""Problems made from a catalogue, each with a checked solution.

A problem counts only when the scorer itself says so: its answer, recommended in order,
is a strict success, and products drawn at random in the answer's place are not. Seeded:
the same catalogue, seed and counts give the same problems. Touches nothing but the
catalogue that it is given.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from arena.problems.drawing import constraints, draw_reward, draw_voucher, with_close_price
from arena.problems.identity import LOCAL_KEY, problem_id_of
from arena.problems.suite import problem_to_json
from arena.problems.wording import item_words, phrase, query_words
from sandbox.catalog.interface import Catalog
from scoring.attempt import Attempt, Ending
from scoring.exceptions import ProblemError
from scoring.outcome import score
from scoring.types import Bucket, Problem, Product, Reward

POOL = 20_000
"""Products drawn as material: enough for any suite, and small beside a large catalogue."""
WRONG_DRAWS = 2
"""Drawn products that must fail in the place of each answer. One may satisfy it by luck."""
TRIES = 200
"""Draws for one problem before the catalogue is called too small."""
GENERATOR = "synthesise-1"
"""The version of what makes problems: another one makes others from the same seed."""

TOO_SMALL = "problem.catalog_too_small"
"""Code of ProblemError. Stable."""

Counts = Mapping[Bucket, int]


def split_evenly(count: int) -> dict[Bucket, int]:
    """`count` problems over the three buckets; the first ones take what is left over."""
    share, rest = divmod(count, len(Bucket))
    return {bucket: share + (i < rest) for i, bucket in enumerate(Bucket)}


def synthesise(
    catalog: Catalog,
    counts: Counts,
    *,
    seed: int,
    key: bytes = LOCAL_KEY,
    advance: Callable[[], None] = lambda: None,
) -> tuple[Problem, ...]:
    """Make `counts` problems, bucket by bucket.

    `key` makes their ids. Raises ProblemError when the catalogue has not enough products
    of the kind that a bucket needs.
    """
    synthesis = Synthesis(catalog, seed=seed, key=key)
    for bucket in Bucket:
        for _ in range(counts.get(bucket, 0)):
            synthesis.draw(bucket)
            advance()
    return tuple(synthesis.made.values())


class Synthesis:
    """A source of problems that are all different. No product of `without` answers one.

    The problems of one bucket do not depend on how many of the others are drawn.
    """

    def __init__(
        self, catalog: Catalog, *, seed: int, key: bytes = LOCAL_KEY, without: Container[str] = ()
    ) -> None:
        rng = random.Random(f"{seed}/material")  # noqa: S311 - no secret
        self.made: dict[str, Problem] = {}
        """All problems so far by id, in order."""
        self.items: dict[str, tuple[str, ...]] = {}
        """How each of them words its wanted products, in order."""
        self.used: set[str] = set()
        """Products that are not to answer another problem; whoever draws may add some."""
        self._key = key
        self._material = _Material(catalog, rng, without)
        self._rngs = {
            bucket: random.Random(f"{seed}/{bucket}")  # noqa: S311 - no secret
            for bucket in Bucket
        }

    def draw(self, bucket: Bucket) -> Problem:
        """One more. Raises ProblemError (`problem.catalog_too_small`) when there is none."""
        material, rng = self._material, self._rngs[bucket]
        for _ in range(TRIES):
            tried = _try(bucket, material, rng)
            if tried is None:
                continue
            problem, items = tried
            if not self.used.isdisjoint(reward.product_id for reward in problem.rewards):
                continue
            named = replace(problem, problem_id=problem_id_of(problem_to_json(problem), self._key))
            if named.problem_id not in self.made and _checked(named, material, rng):
                self.made[named.problem_id] = named
                self.items[named.problem_id] = items
                return named
        raise ProblemError(
            f"the catalogue gives no more {bucket.category} problems after {len(self.made)} in all",
            code=TOO_SMALL,
            remedy="ask for fewer problems, or give a larger catalogue",
        )


@dataclass(frozen=True, slots=True)
class _Draft:
    """A product with the reward drawn for it and the words for that."""

    product: Product
    reward: Reward
    words: str


class _Material:
    """Products to draw from, and the shops that sell several of them."""

    def __init__(self, catalog: Catalog, rng: random.Random, without: Container[str]) -> None:
        ids = [product_id for product_id in catalog.ids() if product_id not in without]
        chosen = sorted(rng.sample(ids, POOL)) if len(ids) > POOL else ids
        self.products = list(catalog.products(chosen).values())
        self.by_id = {product.product_id: product for product in self.products}
        shops: dict[str, list[Product]] = {}
        for product in self.products:
            shops.setdefault(product.shop_id, []).append(product)
        self.shops = [shops[shop] for shop in sorted(shops) if len(shops[shop]) > 1]


def _try(
    bucket: Bucket, material: _Material, rng: random.Random
) -> tuple[Problem, tuple[str, ...]] | None:
    """A problem without an id, and the words for each of its products."""
    products = _choose(bucket, material, rng)
    drafts = [draft for p in products if (draft := _draft(p, rng)) is not None]
    if not drafts or len(drafts) < len(products):
        return None
    voucher = draw_voucher(products, rng) if bucket is Bucket.VOUCHER else None
    if bucket is Bucket.VOUCHER and voucher is None:
        return None
    items = tuple(draft.words for draft in drafts)
    query = query_words(bucket, items, voucher, rng)
    if any(product.product_id in query for product in products):
        return None
    stated = sum(constraints(draft.reward) for draft in drafts)
    problem = Problem(
        problem_id="",
        query=query,
        bucket=bucket,
        rewards=tuple(draft.reward for draft in drafts),
        voucher=voucher,
        difficulty=("easy", "medium", "hard")[(stated > 3) + (stated > 7)],
    )
    return problem, items


def _choose(bucket: Bucket, material: _Material, rng: random.Random) -> Sequence[Product]:
    if bucket is Bucket.PRODUCT:
        return rng.sample(material.products, min(1, len(material.products)))
    # Half of the vouchers are a shop's, as in the public test set.
    if bucket is Bucket.SHOP or rng.random() < 0.5:
        if not material.shops:
            return ()
        shop = rng.choice(material.shops)
        return rng.sample(shop, min(len(shop), rng.randint(2, 4)))
    count = rng.choices((1, 2, 3, 4), weights=(1, 3, 4, 3))[0]
    return rng.sample(material.products, min(count, len(material.products)))


def _draft(product: Product, rng: random.Random) -> _Draft | None:
    noun = phrase(product.title, rng)
    if noun is None:
        return None
    reward = draw_reward(product, rng)
    if constraints(reward) < 2:
        reward = with_close_price(reward, product, rng)
    return _Draft(product, reward, item_words(reward, noun, rng))


def _checked(problem: Problem, material: _Material, rng: random.Random) -> bool:
    """The answer is a strict success, and no drawn wrong product is one in its place."""
    if not _succeeds(problem, [reward.product_id for reward in problem.rewards], material):
        return False
    right = [reward.product_id for reward in problem.rewards]
    for place in range(len(right)):
        for wrong in rng.sample(material.products, min(WRONG_DRAWS, len(material.products))):
            ids = [*right[:place], wrong.product_id, *right[place + 1 :]]
            if wrong.product_id not in right and _succeeds(problem, ids, material):
                return False
    return True


def _succeeds(problem: Problem, ids: Sequence[str], material: _Material) -> bool:
    attempt = Attempt(steps=(), ids=tuple(ids), ending=Ending.PROPER, completed=True)
    return score(problem, attempt, material.by_id).success
