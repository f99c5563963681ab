"""A catalogue small enough to read, for tests that need one and no search engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scoring.types import Product

MUG = Product(
    "101",
    "7",
    "Blue enamel camping mug",
    price=120.5,
    service=("COD",),
    sold_count=3,
    short_description="material: enamel",
    description="A mug for the camp.",
    sku_options={"1": {"color_family": "Blue", "size": "350ml"}},
    attributes={"Material": ("Enamel",), "brand": ("Campo",)},
)
POT = Product("102", "7", "Enamel pot", price=300.0, service=("COD", "official"), sold_count=9)
CUP = Product("103", "8", "Blue paper cup", price=12.0, sold_count=100)
LAMP = Product("104", "8", "Camping lamp", price=99.0, service=("freeShipping",))


class WordCatalog:
    """Finds products whose title holds every word of the query. Keeps what it was asked."""

    content_hash = "0" * 64
    engine = "words/1"

    def __init__(self, products: Sequence[Product] = (MUG, POT, CUP, LAMP)) -> None:
        self._products = {p.product_id: p for p in products}
        self.asked: list[tuple[str, str | None, tuple[str, ...]]] = []

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
        self.asked.append((q, shop_id, tuple(service)))
        words = q.lower().replace("+", " ").split()
        if not words or page != 1:
            return []
        return [
            p
            for p in self._products.values()
            if all(word in p.title.lower() for word in words)
            and shop_id in (None, p.shop_id)
            and set(service) <= set(p.service)
        ]

    def product(self, product_id: str) -> Product | None:
        return self._products.get(product_id)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        return {i: self._products[i] for i in product_ids if i in self._products}

    def ids(self) -> Iterable[str]:
        return sorted(self._products)
