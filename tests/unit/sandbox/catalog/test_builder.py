from __future__ import annotations

import gzip
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.catalog.builder import build_index
from sandbox.catalog.manifest import FORMAT_VERSION, MANIFEST, read_manifest
from sandbox.catalog.native import NativeCatalog
from sandbox.catalog.postings import Limits
from sandbox.exceptions import CatalogError
from tests.unit.sandbox.catalog.corpora import catalog_of, found, line, lines_file


def test_an_index_is_the_same_whatever_the_order_of_lines(tmp_path: Path) -> None:
    lines = [line(str(n), f"red w{n % 13} shirt", shop_id=f"s{n % 5}") for n in range(200)]
    one = catalog_of(tmp_path / "a", lines)
    other = catalog_of(tmp_path / "b", lines[::-1])
    assert one.content_hash == other.content_hash
    for q in ("w3", "red w5 shirt"):
        assert found(one, q) == found(other, q)
    same = [f.name for f in (tmp_path / "a").iterdir() if f.name.startswith("posting")]
    assert same
    for name in same:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@settings(deadline=None, max_examples=25)
@given(st.permutations([line(str(n), title=t) for n, t in enumerate(["é", "\x00", "b", "\ud800"])]))
def test_the_content_hash_knows_no_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any]
) -> None:
    catalog = catalog_of(tmp_path_factory.mktemp("index"), lines)
    digests = [
        sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).digest()
        for value in sorted(lines, key=lambda value: value["id"])
    ]
    assert catalog.content_hash == sha256(b"".join(digests)).hexdigest()


def test_the_content_hash_changes_with_any_content(tmp_path: Path) -> None:
    base = [line("1"), line("2")]
    hashes = {
        catalog_of(tmp_path / str(n), lines).content_hash
        for n, lines in enumerate(
            [base, base[:1], [line("1", price=2), base[1]], [line("1", extra="x"), base[1]]]
        )
    }
    assert len(hashes) == 4


def test_gzip_and_plain_files_give_the_same_content(tmp_path: Path) -> None:
    plain_file = lines_file(tmp_path / "a.jsonl", [line("1"), line("2")])
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain_file.read_bytes()))
    hashes = [build_index([f], tmp_path / f.name[2:]).content_hash for f in (plain_file, packed)]
    assert hashes[0] == hashes[1]


def test_runs_and_merges_smaller_than_the_index_change_nothing(tmp_path: Path) -> None:
    lines = [line(str(n * 7919 % 500), f"red w{n % 13} w{n}") for n in range(500)]
    whole = catalog_of(tmp_path / "whole", lines)
    small = Limits(batch_characters=200, run_postings=64, merge_postings=50, token_cache=10)
    pieces = catalog_of(tmp_path / "pieces", lines, small)
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "pieces" / file.name).read_bytes(), file.name
    assert whole.content_hash == pieces.content_hash


def test_a_build_that_fails_leaves_the_old_index_and_no_half_one(tmp_path: Path) -> None:
    good = lines_file(tmp_path / "good.jsonl", [line("1")])
    bad = lines_file(tmp_path / "bad.jsonl", [line("2"), "{"])
    out = tmp_path / "out" / "index"
    with pytest.raises(CatalogError):
        build_index([bad], out)
    assert not out.exists()
    before = build_index([good], out)
    with pytest.raises(CatalogError):
        build_index([bad], out)
    assert read_manifest(out) == before
    assert sorted(f.name for f in out.parent.iterdir()) == ["index", "index.lock"]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left_over = tmp_path / ".index.building-xyz"
    left_over.mkdir()
    (left_over / "documents.zst").write_bytes(b"half")
    build_index([lines_file(tmp_path / "a.jsonl", [line("1")])], tmp_path / "index")
    assert not left_over.exists()


def test_a_build_replaces_an_index_but_no_other_directory(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    out = tmp_path / "index"
    build_index([file], out)
    lines_file(file, [line("1"), line("2")])
    build_index([file], out)
    assert len(NativeCatalog(out)) == 2
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    with pytest.raises(CatalogError, match="no catalogue index") as caught:
        build_index([file], mine)
    assert caught.value.code == "catalog.output_exists"
    assert (mine / "letter").read_text() == "dear"


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    with pytest.raises(CatalogError, match="cannot be written") as caught:
        build_index([file], file / "index")
    assert caught.value.code == "catalog.unwritable"


def test_skipped_lines_stand_in_the_manifest_by_reason(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1"), "{", line("1"), "{", line("2", price=-1)])
    manifest = build_index([file], tmp_path / "index", on_bad=lambda _: None)
    assert manifest.skipped == {
        "catalog.broken_json": 2,
        "catalog.duplicate_id": 1,
        "catalog.bad_price": 1,
    }
    assert read_manifest(tmp_path / "index") == manifest


def test_a_file_without_products_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no product"):
        build_index([lines_file(tmp_path / "a.jsonl", [])], tmp_path / "index")


def test_a_catalogue_without_any_term_opens_and_finds_nothing(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, [line("1", "the"), line("2", "")])
    assert found(catalog, "the shirt") == []
    assert list(catalog.ids()) == ["1", "2"]


def test_another_format_or_a_cut_file_is_refused_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    catalog_of(tmp_path / "index", [line("1")])
    other = shutil.copytree(tmp_path / "index", tmp_path / "other")
    value = json.loads((other / MANIFEST).read_text())
    (other / MANIFEST).write_text(json.dumps(value | {"format_version": FORMAT_VERSION + 1}))
    with pytest.raises(CatalogError, match="arena catalog build") as caught:
        NativeCatalog(other)
    assert caught.value.code == "catalog.other_version"
    (other / MANIFEST).write_text(json.dumps(value | {"analysis": "old"}))
    with pytest.raises(CatalogError, match="arena catalog build") as caught:
        NativeCatalog(other)
    assert caught.value.code == "catalog.other_version"
    cut = shutil.copytree(tmp_path / "index", tmp_path / "cut")
    (cut / "documents.zst").write_bytes((cut / "documents.zst").read_bytes()[:-1])
    with pytest.raises(CatalogError, match="damaged") as caught:
        NativeCatalog(cut)
    assert caught.value.code == "catalog.damaged_index"
    for text in ("{", "[]", '{"format_version": 1}'):
        (cut / MANIFEST).write_text(text)
        with pytest.raises(CatalogError, match="arena catalog build"):
            NativeCatalog(cut)


def test_a_word_repeated_beyond_counting_is_counted_to_the_limit(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, [line("1", "red " * 70_000), line("2", "red")])
    assert found(catalog, "red") == ["1", "2"]
