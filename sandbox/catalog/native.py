"""The default engine: an index on disk, ranked by this project's own BM25."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.catalog import bm25, columns, postings
from sandbox.catalog.analysis import ANALYSIS_VERSION, analyse
from sandbox.catalog.builder import ENGINE
from sandbox.catalog.documents import product_from_json
from sandbox.catalog.filters import (
    LAST_PAGE,
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


class NativeCatalog:
    """A memory-mapped index. Implements `sandbox.catalog.interface.Catalog`.

    Safe to call from several threads: what a query writes belongs to its thread.
    """

    def __init__(self, directory: Path) -> None:
        """Open the index in `directory`. Raises CatalogError when it cannot be."""
        self.manifest = read_manifest(directory)
        made_by = (self.manifest.engine, self.manifest.analysis)
        if made_by != (ENGINE, ANALYSIS_VERSION):
            raise CatalogError(
                f"{directory} was made by {' with '.join(made_by)}, "
                f"this program has {ENGINE} with {ANALYSIS_VERSION}",
                code="catalog.other_version",
                remedy=f"arena catalog build FILE --out {directory}",
            )
        self.content_hash = self.manifest.content_hash
        self.engine = f"{ENGINE} {ANALYSIS_VERSION}"

        def mapped(name: str) -> npt.NDArray[Any]:
            # The plain array over the map: a memmap's own indexing is slow.
            return np.asarray(np.load(directory / name, mmap_mode="r"))

        self._terms = SortedStrings(directory, postings.TERMS)
        self._starts = mapped(postings.STARTS)
        self._docs = mapped(postings.DOCS)
        self._tfs = mapped(postings.FREQUENCIES)
        self._ids = SortedStrings(directory, columns.IDS)
        self._shop_ids = SortedStrings(directory, columns.SHOP_IDS)
        self._prices = mapped(columns.PRICES)
        self._shops = mapped(columns.SHOPS)
        self._services = mapped(columns.SERVICES)
        self._norms = mapped(columns.NORMS)
        self._positions = mapped(columns.POSITIONS)
        self._store = DocumentReader(directory)
        self._inverses = bm25.norm_inverses(
            self.manifest.total_terms, self.manifest.documents_with_terms
        )
        self._local = threading.local()

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
        """See `Catalog.find`."""
        if not 1 <= page <= LAST_PAGE:
            return []
        terms = Counter(analyse(clean_query(q)))
        numbers = self._rank(terms, read_filters(shop_id, price, service))
        if sort is None:  # only the page asked for has to be read
            return [self._product(n) for n in one_page(numbers, page)]
        return one_page(arrange([self._product(n) for n in numbers], sort), page)

    def _rank(self, terms: Counter[str], filters: Filters) -> list[int]:
        """Numbers of the best products that pass the filters, at most 50, best first."""
        shop = -1 if filters.shop_id is None else self._shop_ids.number(filters.shop_id)
        if filters.shop_id is not None and shop < 0:
            return []
        scores, touched = self._accumulators()
        count = 0
        for term, number in zip(terms, self._terms.find(list(terms)).tolist(), strict=True):
            if number < 0:
                continue
            first, last = int(self._starts[number]), int(self._starts[number + 1])
            idf = bm25.idf(self.manifest.documents_with_terms, last - first)
            count = bm25.accumulate(
                self._docs, self._tfs, first, last, np.float32(terms[term]) * idf,
                self._norms, self._inverses, scores, touched, count,
            )  # fmt: skip
        reached = touched[:count]
        best: npt.NDArray[np.uint32] = bm25.best(
            scores, reached, self._prices, filters.low, filters.high,
            self._shops, shop, self._services, filters.services,
        )  # fmt: skip
        bm25.forget(scores, reached)
        numbers: list[int] = best.tolist()
        return numbers

    def _accumulators(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]:
        """This thread's scores and list of reached documents, clean between queries."""
        held: tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]] | None
        held = getattr(self._local, "held", None)
        if held is None:
            held = np.full(len(self), bm25.UNTOUCHED), np.empty(len(self), np.uint32)
            self._local.held = held
        return held

    def _product(self, number: int) -> Product:
        return product_from_json(self.document(number)["product"])  # type: ignore[arg-type]

    def document(self, number: int) -> JsonObject:
        """The whole catalogue line of the product that is `number`-th by id."""
        document: JsonObject = json.loads(self._store.read(int(self._positions[number])))
        return document

    def product(self, product_id: str) -> Product | None:
        """See `Catalog.product`."""
        number = self._ids.number(product_id)
        return None if number < 0 else self._product(number)

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """See `Catalog.products`."""
        found = ((i, self.product(i)) for i in dict.fromkeys(product_ids))
        return {i: product for i, product in found if product is not None}

    def ids(self) -> Iterable[str]:
        """See `Catalog.ids`."""
        return iter(self._ids)

    def close(self) -> None:
        """Close the document file; the maps go with the object."""
        self._store.close()
