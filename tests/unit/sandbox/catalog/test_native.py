from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.catalog import Catalog
from sandbox.catalog.bm25 import CAP
from sandbox.catalog.filters import MAX_QUERY, MAX_TERMS
from sandbox.catalog.native import NativeCatalog
from tests.unit.sandbox.catalog.corpora import catalog_of, found, line
from tests.unit.sandbox.catalog.reference import ranking

WORDS = st.sampled_from(["red", "blue", "shirts", "running", "shoe", "the", "1.5l", "腰", "❤️", "x"])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
IDS = st.text("0123456789aé", min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(IDS, TEXTS, min_size=1, max_size=40), TEXTS)
def test_search_equals_the_plain_reference(texts: dict[str, str], q: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        catalog = catalog_of(Path(directory), (line(i, text) for i, text in texts.items()))
        expected = [i for i, _ in ranking(texts, q)]
        pages = [found(catalog, q, page=page) for page in range(1, 6)]
        assert [i for page in pages for i in page] == expected[:50]


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(IDS, st.tuples(TEXTS, st.sampled_from("ab"), st.integers(0, 9)), min_size=1),
    TEXTS,
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from([None, "3-6", "5-", "-4", "6-3", "abc"]),
    st.sampled_from([None, "priceasc", "pricedesc", "order", "bogus"]),
)
def test_filters_and_orders_equal_doing_it_by_hand(
    world: dict[str, tuple[str, str, int]],
    q: str,
    shop: str | None,
    price: str | None,
    sort: str | None,
) -> None:
    low, high = {"3-6": (3, 6), "5-": (5, 99), "-4": (0, 4), "6-3": (6, 3)}.get(
        price or "", (0, 99)
    )
    kept = [
        i
        for i, _ in ranking({i: text for i, (text, _, _) in world.items()}, q)
        if shop in (None, world[i][1]) and low <= world[i][2] <= high
    ][:50]
    if sort in ("priceasc", "pricedesc"):
        kept.sort(key=lambda i: world[i][2], reverse=sort == "pricedesc")
    if sort == "order":
        kept.sort(key=lambda i: -(world[i][2] % 4))
    with tempfile.TemporaryDirectory() as directory:
        catalog = catalog_of(
            Path(directory),
            (
                line(i, text, shop_id=s, price=p, sold_count=p % 4)
                for i, (text, s, p) in world.items()
            ),
        )
        assert found(catalog, q, shop_id=shop, price=price, sort=sort) == kept[:10]


def test_services_must_all_be_there_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    catalog = catalog_of(
        tmp_path,
        [line("1", service=["COD", "official"]), line("2", service=["COD", "x"]), line("3")],
    )
    assert found(catalog, "shirt", service=["COD"]) == ["1", "2"]
    assert found(catalog, "shirt", service=["COD", "official", "COD"]) == ["1"]
    assert found(catalog, "shirt", service=["x"]) == ["1", "2", "3"]


def test_ties_go_by_id_as_text(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, [line(i) for i in ("9", "10", "100", "2")])
    assert found(catalog, "shirt") == ["10", "100", "2", "9"]


def test_the_cap_comes_before_the_filters(tmp_path: Path) -> None:
    ids = [f"{number:05}" for number in range(CAP + 30)]
    catalog = catalog_of(
        tmp_path,
        (line(i, shop_id="late" if n >= CAP - 3 else "s") for n, i in enumerate(ids)),
    )
    assert found(catalog, "shirt", shop_id="late") == ids[CAP - 3 : CAP]
    assert found(catalog, "shirt", shop_id="late", page=2) == []
    assert found(catalog, "blue blue shirt")[:2] == ids[:2]


@pytest.mark.parametrize("q", ["", "the of", '+-&|!(){}[]^"~*?:\\/', "unheard", "\ud800", "\x00"])
def test_nothing_left_of_the_query_finds_nothing(tmp_path: Path, q: str) -> None:
    assert found(catalog_of(tmp_path, [line("1")]), q) == []


def test_pages_outside_one_to_five_are_empty(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, (line(f"{n:03}") for n in range(70)))
    assert [len(found(catalog, "shirt", page=p)) for p in range(-1, 8)] == [
        0, 0, 10, 10, 10, 10, 10, 0, 0,
    ]  # fmt: skip


def test_queries_that_lucene_refuses_find_nothing(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, [line("1", "w1 w2")])
    words = [f"w{number}" for number in range(MAX_TERMS)]
    assert found(catalog, " ".join(words)) == ["1"]
    assert found(catalog, " ".join([*words, "more"])) == []
    assert found(catalog, "w1 " * (MAX_QUERY // 3)) == ["1"]
    assert found(catalog, "w1 " * MAX_QUERY) == []


def test_many_threads_get_the_answers_of_one(tmp_path: Path) -> None:
    catalog = catalog_of(
        tmp_path, (line(f"{n:04}", f"shirt {'red ' * (n % 7)} w{n % 50}") for n in range(3000))
    )
    queries = [f"red shirt w{n % 50}" for n in range(400)]
    alone = [found(catalog, q) for q in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda q: found(catalog, q), queries)) == alone


def test_products_come_back_as_they_were_written(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "title": "tab\t \x00 \ud83d \u2028 ❤️ <b>",
        "service": ["COD", "odd"],
        "sold_count": 7,
        "short_description": "short",
        "description": "long",
        "sku_options": {"1": {"color": "red"}},
        "attributes": {"brand": ["a", "b"]},
    }
    catalog: Catalog = catalog_of(tmp_path, [line("b", price=2, **fields), line("a")])
    product = catalog.product("b")
    assert product is not None
    assert product.title == fields["title"]
    assert (product.price, product.sold_count) == (2.0, 7)
    assert product.service == ("COD", "odd")
    assert product.sku_options == {"1": {"color": "red"}}
    assert product.attributes == {"brand": ("a", "b")}
    assert catalog.product("c") is None
    assert catalog.product("") is None
    assert list(catalog.products(["zz", "b", "a", "b"])) == ["b", "a"]
    assert list(catalog.ids()) == ["a", "b"]
    assert len(catalog) == 2


def test_a_closed_catalogue_says_so(tmp_path: Path) -> None:
    catalog: NativeCatalog = catalog_of(tmp_path, [line("1")])
    catalog.close()
    with pytest.raises(ValueError, match="closed"):
        catalog.product("1")


def test_threads_that_ask_in_turn_share_one_set_of_accumulators(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, [line("1")])
    for _ in range(5):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(found, catalog, "shirt").result() == ["1"]
    assert len(catalog._idle) == 1
