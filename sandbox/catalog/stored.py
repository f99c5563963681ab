"""What every engine shares: products by id, and the columns that filter and sort."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sandbox.catalog import columns
from sandbox.catalog.analysis import ANALYSIS_VERSION
from sandbox.catalog.documents import product_from_json
from sandbox.catalog.filters import (
    LAST_PAGE,
    MAX_QUERY,
    Filters,
    arrange,
    clean_query,
    one_page,
    read_filters,
)
from sandbox.catalog.manifest import read_manifest
from sandbox.catalog.store import DocumentReader
from sandbox.catalog.strings import SortedStrings
from sandbox.exceptions import CatalogError
from scoring.types import JsonObject, Product


def mapped(path: Path) -> npt.NDArray[Any]:
    """A memory-mapped array, as a plain one: indexing a `memmap` itself is slow."""
    return np.asarray(np.load(path, mmap_mode="r"))


class StoredCatalog(ABC):
    """An index directory, opened; implements `Catalog` but for the ranking.

    Products are numbered in ascending order of id, so that a lower number wins a tie.
    """

    def __init__(self, directory: Path) -> None:
        """Open the index in `directory`. Raises CatalogError when it cannot be."""
        self.directory = directory
        self.manifest = read_manifest(directory)
        if self.manifest.analysis != ANALYSIS_VERSION:
            raise CatalogError(
                f"{directory} was analysed by {self.manifest.analysis}, "
                f"this program has {ANALYSIS_VERSION}",
                code="catalog.other_version",
                remedy=f"arena catalog build FILE --out {directory}",
            )
        self.content_hash = self.manifest.content_hash
        self.engine = self.manifest.engine
        self._ids = SortedStrings(directory, columns.IDS)
        self.shop_ids = SortedStrings(directory, columns.SHOP_IDS)
        self.prices = mapped(directory / columns.PRICES)
        self.shops = mapped(directory / columns.SHOPS)
        self.services = mapped(directory / columns.SERVICES)
        self.sold = mapped(directory / columns.SOLD)
        self._positions = mapped(directory / columns.POSITIONS)
        self._store = DocumentReader(directory)

    @abstractmethod
    def rank(self, q: str, filters: Filters) -> list[int]:
        """Numbers of the best 50 products that pass the filters, best first.

        `q` has no query syntax left in it.
        """

    def __len__(self) -> int:
        return self.manifest.documents

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
        """See `Catalog.find`. A query longer than `MAX_QUERY` finds nothing."""
        if not 1 <= page <= LAST_PAGE or len(q) > MAX_QUERY:
            return []
        numbers = self.rank(clean_query(q), read_filters(shop_id, price, service))
        ordered = arrange(numbers, sort, self.prices, self.sold)
        return [self.product_at(number) for number in one_page(ordered, page)]

    def product_at(self, number: int) -> Product:
        """The product that is `number`-th by id."""
        return product_from_json(cast("JsonObject", self.document(number)["product"]))

    def document(self, number: int) -> JsonObject:
        """The whole catalogue line of the product that is `number`-th by id."""
        document: JsonObject = json.loads(self._store.read(int(self._positions[number])))
        return document

    def product(self, product_id: str) -> Product | None:
        """See `Catalog.product`."""
        number = self._ids.number(product_id)
        return None if number < 0 else self.product_at(number)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """See `Catalog.products`."""
        found = ((i, self.product(i)) for i in dict.fromkeys(product_ids))
        return {i: product for i, product in found if product is not None}

    def ids(self) -> Iterable[str]:
        """See `Catalog.ids`."""
        return iter(self._ids)

    def id_at(self, number: int) -> str:
        """The id that is `number`-th."""
        return self._ids[number]

    def number(self, product_id: str) -> int:
        """The place of an id among all, or -1."""
        return self._ids.number(product_id)

    def close(self) -> None:
        """Close the document file now; without this it closes with the object."""
        self._store.close()
