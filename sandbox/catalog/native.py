"""The default engine: an index on disk, ranked by this project's own BM25."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sandbox.catalog import bm25, columns, postings
from sandbox.catalog.analysis import analyse
from sandbox.catalog.filters import MAX_TERMS, Filters
from sandbox.catalog.stored import StoredCatalog, mapped
from sandbox.catalog.strings import SortedStrings

ENGINE = "native-bm25/1"
"""Name and version of what ranks; stands in manifests and records."""

Accumulators = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]


class NativeCatalog(StoredCatalog):
    """A memory-mapped index. Implements `sandbox.catalog.interface.Catalog`.

    Safe to call from several threads: what a query writes belongs to it alone.
    """

    def __init__(self, directory: Path) -> None:
        """Open the index in `directory`. Raises CatalogError when it cannot be."""
        super().__init__(directory)
        self.engine = ENGINE
        self._terms = SortedStrings(directory, postings.TERMS)
        self._starts = mapped(directory / postings.STARTS)
        self._docs = mapped(directory / postings.DOCS)
        self._tfs = mapped(directory / postings.FREQUENCIES)
        self._norms = mapped(directory / columns.NORMS)
        self._inverses = bm25.norm_inverses(
            self.manifest.total_terms, self.manifest.documents_with_terms
        )
        self._idle: list[Accumulators] = []

    def rank(self, q: str, filters: Filters) -> list[int]:
        """See `StoredCatalog.rank`."""
        shop = -1
        if filters.shop_id is not None:
            shop = self.shop_ids.number(filters.shop_id)
            if shop < 0:
                return []
        terms = Counter(analyse(q))
        if not terms or len(terms) > MAX_TERMS:
            return []
        accumulators = self._accumulators()
        best = self._best(terms, filters, shop, *accumulators)
        self._idle.append(accumulators)  # clean again
        return best

    def _best(
        self,
        terms: Counter[str],
        filters: Filters,
        shop: int,
        scores: npt.NDArray[np.float64],
        touched: npt.NDArray[np.uint32],
    ) -> list[int]:
        """Score all documents that hold a term, choose, and leave the accumulators clean."""
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
            scores, reached, self.prices, filters.low, filters.high,
            self.shops, shop, self.services, filters.services,
        )  # fmt: skip
        bm25.forget(scores, reached)
        numbers: list[int] = best.tolist()
        return numbers

    def _accumulators(self) -> Accumulators:
        """Clean scores and room for the list of reached documents.

        Kept for the next query, so that there are as many as queries ran at once and
        not as many as threads ever asked.
        """
        try:
            return self._idle.pop()
        except IndexError:
            return np.full(len(self), bm25.UNTOUCHED), np.empty(len(self), np.uint32)
