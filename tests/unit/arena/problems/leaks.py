"""Small problems and a bank of made ones, for tests of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arena.problems.synthesise import split_evenly, synthesise
from sandbox.catalog.generate import World
from scoring.reading import read_product
from scoring.types import Bucket, PriceBand, Problem, Product, Reward, Voucher


def wanted(
    product_id: str,
    title: str,
    *,
    options: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    service: Sequence[str] = (),
    price: PriceBand | None = None,
) -> Reward:
    """A reward for one product."""
    return Reward(
        product_id,
        title=(title,),
        sku_options=(options,) if options else (),
        attributes=tuple({key: (value,)} for key, value in (attributes or {}).items()),
        service=tuple(service),
        price=(price,) if price else (),
    )


def asked(problem_id: str, query: str, *rewards: Reward, pool: str | None = None) -> Problem:
    """A problem: of a product, or of a shop when several are wanted."""
    bucket = Bucket.PRODUCT if len(rewards) == 1 else Bucket.SHOP
    return Problem(problem_id, query, bucket, rewards, pool=pool)


def with_voucher(problem: Problem) -> Problem:
    """The same products with a voucher."""
    voucher = Voucher("platform", 10.0, "fixed", budget=90.0, face_value=5.0)
    return Problem(
        f"{problem.problem_id}-v", problem.query, Bucket.VOUCHER, problem.rewards, voucher
    )


class MadeCatalog:
    """The generated world in memory; without a search."""

    content_hash = "0" * 64
    engine = "memory"

    def __init__(self, products: int, seed: int) -> None:
        made = (read_product(line["product"]) for line in World(products, seed))
        self._products = {product.product_id: product for product in made}

    def __len__(self) -> int:
        return len(self._products)

    def ids(self) -> Iterable[str]:
        return sorted(self._products)

    def product(self, product_id: str) -> Product | None:
        return self._products.get(product_id)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        return {i: self._products[i] for i in product_ids if i in self._products}

    def find(self, q: str, **_: object) -> list[Product]:
        raise NotImplementedError


def without_shared_products(problems: Iterable[Problem]) -> list[Problem]:
    """Those that share no product with one before them."""
    seen: set[str] = set()
    kept = []
    for problem in problems:
        ids = {reward.product_id for reward in problem.rewards}
        if seen.isdisjoint(ids):
            kept.append(problem)
            seen |= ids
    return kept


def made_problems(count: int, *, products: int = 4000, seed: int = 5) -> list[Problem]:
    """Problems of a generated world, no two of which share a product."""
    made = synthesise(MadeCatalog(products, seed), split_evenly(count), seed=seed)
    return without_shared_products(made)
