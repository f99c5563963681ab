"""Small catalogues for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sandbox.catalog.builder import write_index
from sandbox.catalog.documents import parse_document
from sandbox.catalog.native import NativeCatalog
from sandbox.catalog.postings import DEFAULT_LIMITS, Limits
from scoring.types import JsonObject


def line(product_id: str, contents: str = "blue shirt", **product: Any) -> JsonObject:
    """A catalogue line; `product` overrides fields of the product."""
    fields: JsonObject = {"product_id": product_id, "shop_id": "s", "title": contents, "price": 1.0}
    return {"id": product_id, "contents": contents, "product": fields | product}


def lines_file(path: Path, lines: Iterable[JsonObject | str]) -> Path:
    """A catalogue file; texts are written as they are."""
    texts = (text if isinstance(text, str) else json.dumps(text) for text in lines)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def catalog_of(
    directory: Path, lines: Iterable[JsonObject], limits: Limits = DEFAULT_LIMITS
) -> NativeCatalog:
    """An opened index of the lines, in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    documents = (parse_document(json.dumps(value)) for value in lines)
    write_index(documents, directory, limits=limits)
    return NativeCatalog(directory)


def found(catalog: NativeCatalog, q: str, **args: Any) -> list[str]:
    """Ids of one page."""
    return [product.product_id for product in catalog.find(q, **args)]
