from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.catalog import open_catalog
from sandbox.catalog.opening import cache_directory
from sandbox.exceptions import CatalogError
from tests.unit.sandbox.catalog.corpora import catalog_of, line, lines_file


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_DATA_DIR", str(tmp_path / "data"))
        yield tmp_path / "data"


def test_an_index_directory_is_opened(tmp_path: Path) -> None:
    made = catalog_of(tmp_path / "index", [line("1")])
    assert open_catalog(tmp_path / "index").content_hash == made.content_hash
    assert len(open_catalog(str(tmp_path / "index"))) == 1


def test_a_file_is_built_once_and_opened(tmp_path: Path, data: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    assert len(open_catalog(file)) == 1
    manifest = cache_directory(file) / "manifest.json"
    assert manifest.is_relative_to(data)
    before = manifest.stat().st_mtime_ns
    assert len(open_catalog(file)) == 1
    assert manifest.stat().st_mtime_ns == before


def test_a_changed_file_is_built_anew(tmp_path: Path, data: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    open_catalog(file)
    lines_file(file, [line("1"), line("2")])
    assert len(open_catalog(file)) == 2


def test_a_bad_file_leaves_nothing_that_opens(tmp_path: Path, data: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1"), "{"])
    for _ in range(2):
        with pytest.raises(CatalogError, match="line 2"):
            open_catalog(file)


def test_builders_at_the_same_time_agree(tmp_path: Path, data: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line(str(n)) for n in range(300)])
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        hashes = pool.map(_content_hash, [str(file)] * 6)
        pool.close()
        pool.join()
    assert len(set(hashes)) == 1
    assert not [n for n in os.listdir(data / "catalogs") if "building" in n]


def _content_hash(file: str) -> str:
    return open_catalog(file).content_hash


@pytest.mark.parametrize("name", ["none", "none.jsonl", "letter.txt"])
def test_what_is_no_catalogue_is_refused(tmp_path: Path, data: Path, name: str) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(CatalogError):
        open_catalog(tmp_path / name)


def test_a_directory_without_an_index_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="arena catalog build") as caught:
        open_catalog(tmp_path)
    assert caught.value.code == "catalog.not_an_index"


def test_a_catalogue_built_for_lucene_needs_it(tmp_path: Path) -> None:
    catalog_of(tmp_path / "index", [line("1")])
    manifest = tmp_path / "index" / "manifest.json"
    value = json.loads(manifest.read_text()) | {"engine": "lucene-anserini/1.7.1"}
    manifest.write_text(json.dumps(value))
    with pytest.raises(CatalogError, match="arena catalog build FILE --engine lucene"):
        open_catalog(tmp_path / "index")
