from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.catalog.documents import MAX_LINE_BYTES, parse_document, read_documents
from sandbox.exceptions import CatalogError
from scoring.exceptions import Fault
from tests.shared import SHARED, needs_shared
from tests.unit.sandbox.catalog.corpora import line, lines_file

GOOD = json.dumps(line("1"))

BAD: dict[str, tuple[str, str]] = {
    "half an object": ('{"id": "1"', "catalog.broken_json"),
    "not an object": ("[1]", "catalog.bad_field"),
    "not UTF-8": ("\udcff", "catalog.broken_json"),
    "nested too deeply": ("[" * 100_000, "catalog.broken_json"),
    "a number too long": ('{"id": ' + "9" * 5000 + "}", "catalog.broken_json"),
    "no product": (json.dumps({"id": "1", "contents": ""}), "catalog.missing_field"),
    "no id": (
        json.dumps({"contents": "", "product": line("1")["product"]}),
        "catalog.missing_field",
    ),
    "two ids": (json.dumps(line("1") | {"id": "2"}), "catalog.bad_field"),
    "an id with a comma": (json.dumps(line("1,2")), "catalog.bad_field"),
    "an empty id": (json.dumps(line("")), "catalog.bad_field"),
    "an id of a lone surrogate": (json.dumps(line("\ud800")), "catalog.bad_field"),
    "negative price": (json.dumps(line("1", price=-0.01)), "catalog.bad_price"),
    "NaN price": (json.dumps(line("1", price=math.nan)), "catalog.bad_price"),
    "infinite price": (json.dumps(line("1", price=math.inf)), "catalog.bad_price"),
    "overflowing price": (json.dumps(line("1", price=10**400)), "catalog.bad_price"),
    "true price": (json.dumps(line("1", price=True)), "catalog.bad_price"),
    "text price": (json.dumps(line("1", price="12")), "catalog.bad_price"),
    "no price": (json.dumps(line("1", price=None)), "catalog.bad_price"),
    "title of a number": (json.dumps(line("1", title=5)), "catalog.bad_field"),
    "service of numbers": (json.dumps(line("1", service=[5])), "catalog.bad_field"),
    "attributes of a list": (json.dumps(line("1", attributes=["a"])), "catalog.bad_field"),
    "option of numbers": (json.dumps(line("1", sku_options={"1": {"a": 1}})), "catalog.bad_field"),
    "negative sold count": (json.dumps(line("1", sold_count=-1)), "catalog.bad_field"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_with_file_line_and_code(name: str, tmp_path: Path) -> None:
    text, code = BAD[name]
    path = tmp_path / "catalog.jsonl"
    path.write_bytes(f"{GOOD}\n\n{text}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(CatalogError, match=r"catalog\.jsonl, line 3: ") as caught:
        list(read_documents([path]))
    assert caught.value.code == code
    assert caught.value.fault is Fault.CALLER
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 600 + len(str(path))


def test_skipped_lines_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "catalog.jsonl"
    bad = [text for text, _ in BAD.values()]
    path.write_bytes(
        "\n".join([GOOD, *bad, json.dumps(line("2"))]).encode("utf-8", "surrogateescape")
    )
    complaints: list[CatalogError] = []
    read = [d.product.product_id for d in read_documents([path], complaints.append)]
    assert read == ["1", "2"]
    assert [c.code for c in complaints] == [code for _, code in BAD.values()]


def test_a_duplicate_id_is_found_across_files(tmp_path: Path) -> None:
    first = lines_file(tmp_path / "a.jsonl", [line("1"), line("2")])
    second = lines_file(tmp_path / "b.jsonl", [line("3"), line("1", price=5)])
    with pytest.raises(CatalogError, match=r"b\.jsonl, line 2: the id '1' again") as caught:
        list(read_documents([first, second]))
    assert caught.value.code == "catalog.duplicate_id"
    kept = list(read_documents([first, second], lambda _: None))
    prices = {d.product.product_id: d.product.price for d in kept}
    assert prices == {"1": 1.0, "2": 1.0, "3": 1.0}


@pytest.mark.parametrize("cut", [5, 30, -9, -1])
def test_a_gzip_that_breaks_off_is_an_error_even_when_skipping(cut: int, tmp_path: Path) -> None:
    packed = gzip.compress("".join(json.dumps(line(str(n))) + "\n" for n in range(500)).encode())
    path = tmp_path / "catalog.jsonl.gz"
    path.write_bytes(packed[:cut])
    with pytest.raises(CatalogError, match=r"catalog\.jsonl\.gz, after line \d+: ") as caught:
        list(read_documents([path], lambda _: None))
    assert caught.value.code == "catalog.broken_gzip"


def test_a_gzip_with_wrong_bytes_is_an_error(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress((GOOD + "\n").encode() * 50))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "catalog.jsonl.gz"
    path.write_bytes(packed)
    with pytest.raises(CatalogError) as caught:
        list(read_documents([path], lambda _: None))
    assert caught.value.code == "catalog.broken_gzip"


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="No such file") as caught:
        list(read_documents([tmp_path / "none.jsonl"]))
    assert caught.value.code == "catalog.unreadable"


def test_an_endless_line_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "catalog.jsonl"
    with path.open("wb") as file:
        file.truncate(MAX_LINE_BYTES + 2)
    with pytest.raises(CatalogError, match="line 1: longer") as caught:
        list(read_documents([path]))
    assert caught.value.code == "catalog.line_too_long"


def test_absent_and_null_optional_fields_are_empty() -> None:
    nulls: dict[str, Any] = dict.fromkeys(
        ("service", "sold_count", "short_description", "description", "sku_options", "attributes")
    )
    assert parse_document(json.dumps(line("1", **nulls))).product == parse_document(GOOD).product


def test_equal_documents_have_equal_canonical_bytes() -> None:
    value = line("1", title="é", price=2.50)
    backwards = json.dumps(dict(reversed(value.items())), ensure_ascii=False, indent=1)
    assert parse_document(backwards).canonical == parse_document(json.dumps(value)).canonical


@given(st.binary(max_size=200))
def test_any_bytes_are_a_document_or_a_catalog_error(data: bytes) -> None:
    with pytest.raises(CatalogError):
        parse_document(data)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from([*line("1"), "title", "price"]), inner),
                    max_leaves=12))  # fmt: skip
def test_any_json_is_a_document_or_a_catalog_error(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(line("1") | {"product": value})):
        try:
            parse_document(text)
        except CatalogError as error:
            assert error.code.startswith("catalog.")  # noqa: PT017 - any other error fails the test


@needs_shared
def test_every_line_of_the_real_catalogue_is_good() -> None:
    path = SHARED / "shoppingbench" / "documents.jsonl.gz"
    assert sum(1 for _ in read_documents([path])) == 9993
