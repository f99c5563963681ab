"""The catalogue of a simulated season: new products every week, from generated worlds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import cast

from sandbox.catalog.documents import product_from_json
from sandbox.catalog.generate import World
from scoring.types import JsonObject, Product


class Arrivals:
    """The products of one week, in memory. Implements `Catalog`; nobody searches in it."""

    engine = "simulation"

    def __init__(self, products: int, seed: int, week: int) -> None:
        world = World(products, seed * 1_000 + week)
        read = (product_from_json(cast("JsonObject", line["product"])) for line in world)
        self._products = {product.product_id: product for product in read}
        told = f"{products} products of week {week}, seed {seed}"
        self.content_hash = hashlib.sha256(told.encode()).hexdigest()

    def __len__(self) -> int:
        return len(self._products)

    def find(
        self,
        q: str,
        *,
        page: int = 1,
        shop_id: str | None = None,
        price: str | None = None,
        sort: str | None = None,
        service: Sequence[str] = (),
    ) -> list[Product]:
        """No agent runs here, so nobody searches."""
        raise NotImplementedError("simulated agents do not search")

    def product(self, product_id: str) -> Product | None:
        """The product with this id, or None."""
        return self._products.get(product_id)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """Those of the ids that exist, in the order given."""
        return {i: self._products[i] for i in product_ids if i in self._products}

    def ids(self) -> Iterable[str]:
        """All product ids, ascending as strings."""
        return sorted(self._products)
