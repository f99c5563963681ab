"""Agreement with real Lucene, line by line of the shared vectors."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sandbox.catalog import Catalog, open_catalog
from sandbox.catalog.analysis import analyse
from tests.shared import SHARED, needs_shared

pytestmark = needs_shared


def lines(name: str) -> list[dict[str, Any]]:
    path = SHARED / "vectors" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        return open_catalog(SHARED / "shoppingbench" / "documents.jsonl.gz")


def test_analysis_gives_the_terms_of_lucene() -> None:
    vectors = lines("analysis")
    assert len(vectors) == 1526
    assert [v["text"] for v in vectors if analyse(v["text"]) != v["tokens"]] == []


def test_search_gives_the_products_of_lucene_in_exact_order(catalog: Catalog) -> None:
    vectors = lines("search")
    assert len(vectors) == 400
    assert [v["args"] for v in vectors if found(catalog, v["args"]) != ids(v)] == []


def test_wire_queries_decoded_once_give_the_products_of_the_real_network(catalog: Catalog) -> None:
    vectors = lines("wire")
    assert len(vectors) == 80
    for vector in vectors:
        sent = {k: v[0] for k, v in parse_qs(urlsplit(vector["get"]).query).items()}
        args = sent | {"page": int(sent.get("page", 0))}
        assert found(catalog, args) == ids(vector), vector["get"]


def test_the_catalogue_is_whole_and_in_order(catalog: Catalog) -> None:
    everything = list(catalog.ids())
    assert len(catalog) == len(everything) == 9993
    assert everything == sorted(everything)


def found(catalog: Catalog, args: dict[str, Any]) -> list[str]:
    asked = {**args, "service": [s for s in args.get("service", "").split(",") if s]}
    return [product.product_id for product in catalog.find(asked.pop("q"), **asked)]


def ids(vector: dict[str, Any]) -> list[str]:
    expected: list[str] = vector["expected_product_ids"]
    return expected
