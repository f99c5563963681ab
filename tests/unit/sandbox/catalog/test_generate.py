from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.catalog.documents import Document, parse_document
from sandbox.catalog.generate import World, write_world
from sandbox.catalog.permutation import Permutation
from sandbox.catalog.wares import HOSTILE, KINDS
from sandbox.exceptions import CatalogError

SIZE = 3000


@pytest.fixture(scope="module")
def world() -> list[Document]:
    return [parse_document(json.dumps(value)) for value in World(SIZE, 7)]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = [
        write_world(200, seed, tmp_path / f"{n}.jsonl.gz") for n, seed in enumerate([3, 3, 4])
    ]
    files = [(tmp_path / f"{n}.jsonl.gz").read_bytes() for n in range(3)]
    assert digests[0] == digests[1] != digests[2]
    assert files[0] == files[1] != files[2]


def test_gzip_and_plain_hold_the_same_lines(tmp_path: Path) -> None:
    write_world(50, 1, tmp_path / "a.jsonl")
    write_world(50, 1, tmp_path / "a.jsonl.gz")
    assert (
        gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())
        == (tmp_path / "a.jsonl").read_bytes()
    )
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.gz"]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="must end"):
        write_world(1, 1, tmp_path / "a.txt")


def test_every_line_is_a_good_document_with_an_id_of_its_own(world: list[Document]) -> None:
    assert len({d.product.product_id for d in world}) == SIZE
    assert all(10 <= d.product.price <= 40_000 for d in world)


def test_a_line_can_be_made_alone() -> None:
    large = World(10**9, 5)
    assert large.document(123_456_789) == World(10**9, 5).document(123_456_789)
    assert len(list(islice(large, 3))) == 3


def test_near_copies_differ_in_what_a_buyer_asks_for(world: list[Document]) -> None:
    families: dict[str, list[Any]] = defaultdict(list)
    for document in world:
        words = document.product.title.split()
        model = next(w for w in words if w[1:].isdigit() and w[0].isalpha() and len(w) >= 3)
        families[f"{words[0]} {model}"].append(document.product)
    together = [members for members in families.values() if len(members) >= 4]
    assert len(together) > SIZE / 12
    for differing in (
        lambda p: p.price,
        lambda p: frozenset(p.service),
        lambda p: str(p.sku_options),
        lambda p: str(p.attributes),
    ):
        varied = sum(1 for members in together if len({differing(p) for p in members}) > 1)
        assert varied > len(together) / 2


def test_shops_are_shared_and_carry_several_kinds(world: list[Document]) -> None:
    shops: dict[str, set[int]] = defaultdict(set)
    for document in world:
        kind = next(
            i for i, k in enumerate(KINDS) if any(n in document.product.title for n in k.nouns)
        )
        shops[document.product.shop_id].add(kind)
    assert sum(1 for kinds in shops.values() if len(kinds) >= 3) > len(shops) / 2


def test_ids_tell_nothing(world: list[Document]) -> None:
    ids = [int(d.product.product_id) for d in world]
    rising = sum(1 for a, b in pairwise(ids) if a < b)
    assert 0.45 < rising / SIZE < 0.55
    assert {len(str(i)) for i in ids} == {10}


def test_several_scripts_emoji_and_hostile_titles_are_there(world: list[Document]) -> None:
    text = "\n".join(d.product.title for d in world)
    for low, high in [("一", "鿿"), ("ก", "๛"), ("ء", "ي"), ("가", "힣"), ("а", "я"), ("☀", "➿")]:
        assert any(low <= c <= high for c in text), (low, high)
    assert sum(1 for hostile in HOSTILE if hostile in text) > len(HOSTILE) / 2
    assert "\x1b" not in text
    assert "\x00" not in text


@given(st.integers(1, 500), st.text(max_size=5))
def test_a_permutation_is_a_bijection(size: int, key: str) -> None:
    permutation = Permutation(size, key)
    assert sorted(permutation[i] for i in range(size)) == list(range(size))


def test_a_permutation_refuses_what_lies_outside() -> None:
    with pytest.raises(IndexError):
        Permutation(5, "k")[5]
