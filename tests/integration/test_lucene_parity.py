"""The native engine and real Lucene, held against each other in the same index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sandbox.catalog.analysis import analyse
from sandbox.catalog.builder import Engine, build_index, write_index
from sandbox.catalog.documents import parse_document
from sandbox.catalog.filters import MAX_TERMS, clean_query, read_filters
from sandbox.catalog.generate import write_world
from sandbox.catalog.lucene import LuceneCatalog, java_class, missing
from sandbox.catalog.native import NativeCatalog
from sandbox.catalog.stored import StoredCatalog
from sandbox.catalog.tokenizer import CLASSES, class_table
from tests.shared import SHARED, needs_shared

LACK = missing()
pytestmark = pytest.mark.skipif(LACK is not None, reason=f"no real Lucene: {LACK} (make lucene)")

Pair = tuple[NativeCatalog, LuceneCatalog]


def both(directory: Path) -> Pair:
    return NativeCatalog(directory), LuceneCatalog(directory)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    place = tmp_path_factory.mktemp("generated")
    write_world(12_000, 11, place / "world.jsonl")
    build_index([place / "world.jsonl"], place / "index", engine=Engine.LUCENE)
    pair = both(place / "index")
    yield pair
    pair[1].close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    place = tmp_path_factory.mktemp("real")
    documents = SHARED / "shoppingbench" / "documents.jsonl.gz"
    build_index([documents], place / "index", engine=Engine.LUCENE)
    pair = both(place / "index")
    yield pair
    pair[1].close()


def differing(pair: Pair, searches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The searches to which the two do not give the same 50 products in the same order."""
    native, lucene = pair

    def ranked(catalog: StoredCatalog, search: dict[str, Any]) -> list[int]:
        filters = read_filters(
            search.get("shop_id"), search.get("price"), search.get("service", ())
        )
        return catalog.rank(search["q"], filters)

    return [search for search in searches if ranked(native, search) != ranked(lucene, search)]


def searches(catalog: NativeCatalog, seed: int, count: int) -> list[dict[str, Any]]:
    """Queries made of the words of titles, with filters of products that exist."""
    random = Random(seed)
    made = []
    for _ in range(count):
        some = [catalog.product_at(random.randrange(len(catalog))) for _ in range(3)]
        words = " ".join(p.title for p in some[: random.randint(1, 3)]).split()
        size = random.choice((1, 2, 3, 5, 8, 40))
        q = clean_query(" ".join(random.choices(words or ["x"], k=size)))
        search: dict[str, Any] = {"q": q}
        if random.random() < 0.1:
            search["shop_id"] = some[0].shop_id
        if random.random() < 0.1:
            search["price"] = f"{int(some[0].price * 0.5)}-{int(some[0].price * 2)}"
        if random.random() < 0.05:
            search["service"] = [random.choice(("official", "COD", "freeShipping"))]
        made.append(search)
    return made


def test_generated_products_are_ranked_alike(generated: Pair) -> None:
    assert differing(generated, searches(generated[0], 1, 400)) == []


def test_words_that_reach_more_than_the_cap_are_ranked_alike(generated: Pair) -> None:
    asked = [{"q": "cod official 2024"}, {"q": " ".join(f"{n}" for n in range(999))}]
    shops = [generated[0].product_at(n).shop_id for n in range(0, 12_000, 1000)]
    wide = "original cotton steel usb 1pc black white dog red m l 2024 2025 sale for men home"
    asked += [{"q": wide, "shop_id": shop} for shop in shops]
    assert differing(generated, asked) == []


@needs_shared
def test_real_products_are_ranked_alike(real: Pair) -> None:
    assert differing(real, searches(real[0], 2, 300)) == []


@needs_shared
def test_real_queries_are_answered_alike(real: Pair) -> None:
    lines = (SHARED / "vectors" / "search.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [{"q": clean_query(json.loads(line)["args"]["q"])} for line in lines]
    assert differing(real, queries) == []


@pytest.mark.parametrize("seed", range(6))
def test_random_small_corpora_are_ranked_alike(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    words = ["red", "shirts", "running", "the", "1.5l", "腰", "❤️", "o'neil's", "x", ""]
    lines = [
        {
            "id": product_id,
            "contents": " ".join(random.choices(words, k=random.choice((0, 1, 3, 30, 400)))),
            "product": {"product_id": product_id, "shop_id": "s", "title": "t", "price": 1},
        }
        for product_id in {str(random.randrange(10**4)) for _ in range(random.choice((1, 9, 300)))}
    ]
    write_index(
        (parse_document(json.dumps(line)) for line in lines), tmp_path, engine=Engine.LUCENE
    )
    pair = both(tmp_path)
    asked = [{"q": " ".join(random.choices(words, k=k))} for k in (1, 1, 2, 3, 5, 9)]
    assert differing(pair, asked) == []
    pair[1].close()


def test_what_lucene_refuses_finds_nothing(generated: Pair) -> None:
    many = " ".join(f"w{n}" for n in range(MAX_TERMS)) + " cotton"
    for q in (many, "", "the of", "((("):
        assert generated[1].find(q) == generated[0].find(q) == []


@pytest.mark.parametrize("seed", range(3))
def test_any_mixture_of_word_break_classes_is_analysed_alike(seed: int) -> None:
    random = Random(seed)
    table = class_table()
    members: list[list[str]] = [[] for _ in CLASSES]
    for code in [
        *range(0x3400),
        *range(0xA000, 0xD800),
        *range(0xFB00, 0x1FC00),
        *range(0xE0000, 0xE0200),
    ]:
        members[table[code]].append(chr(code))
    analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    utils = java_class("io.anserini.analysis.AnalyzerUtils")
    for _ in range(1000):
        chosen = random.sample(members, random.randint(2, len(members)))
        size = random.choice((3, 8, 30, 300))
        text = "".join(random.choice(random.choice(chosen)) for _ in range(size))
        terms = utils.analyze(analyzer, text)
        assert analyse(text) == [terms.get(i) for i in range(terms.size())], ascii(text)
