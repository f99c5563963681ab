"""Catalogue lines: reading, checking, and their canonical form.

A line is `{"id", "contents", "product": {...}}`, the public ShoppingBench form.
Reads the files it is given and writes nothing. Every complaint names file and line
and carries a stable code.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Never, cast

from sandbox.exceptions import CatalogError
from scoring.types import Json, JsonObject, Product

MAX_LINE_BYTES = 16 << 20
"""Longest line that is read; keeps memory bounded whatever the file."""

MAX_ID_BYTES = 256

_REPORT_EVERY = 500

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

OnBad = Callable[[CatalogError], None]
OnRead = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Document:
    """A checked catalogue line.

    `canonical` is the line's JSON object written again with sorted keys and no
    spaces, ASCII with escapes: equal documents have equal bytes, however their lines
    were written. The index stores it and the content hash is made of it.
    """

    product: Product
    contents: str
    canonical: bytes


def read_documents(
    paths: Iterable[Path], on_bad: OnBad | None = None, on_read: OnRead | None = None
) -> Iterator[Document]:
    """The documents of `.jsonl` and `.jsonl.gz` files, streaming.

    `on_bad` receives the error of each line that is skipped; without it the first one
    is raised. `on_read` receives the number of compressed bytes read so far (for
    progress). A duplicate id is a bad line: the first one stays.
    Raises CatalogError for what cannot be skipped: a missing file, a broken gzip.
    """
    seen: set[str] = set()
    before = 0
    for path in paths:
        with _opened(path) as raw:
            for number, line in _lines(raw, path):
                if on_read and number % _REPORT_EVERY == 0:
                    on_read(before + raw.tell())
                if not line.strip():
                    continue
                try:
                    document = parse_document(line)
                    if document.product.product_id in seen:
                        _bad("duplicate_id", f"the id {_shown(document.product.product_id)} again")
                except CatalogError as error:
                    placed = CatalogError(
                        f"{path}, line {number}: {error.message}", code=error.code
                    )
                    if on_bad is None:
                        placed.remedy = "mend the line, or build with --skip-bad"
                        raise placed from None
                    on_bad(placed)
                    continue
                seen.add(document.product.product_id)
                yield document
            before += raw.tell()


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise CatalogError(f"{path}: {error.strerror}", code="catalog.unreadable") from error


def _lines(raw: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, from 1. Names the last good line when a gzip breaks off."""
    packed = raw.peek(2)[:2] == b"\x1f\x8b" if hasattr(raw, "peek") else False
    stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
    number = 0
    while True:
        try:
            line = stream.readline(MAX_LINE_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise CatalogError(
                f"{path}, after line {number}: the gzip stream is cut off or broken ({error})",
                code="catalog.broken_gzip",
                remedy="fetch the file again",
            ) from error
        if not line:
            return
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise CatalogError(
                f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes",
                code="catalog.line_too_long",
            )
        yield number, line


def parse_document(line: bytes | str) -> Document:
    """One line as a document. Raises CatalogError with a code and without a place."""
    try:
        value = json.loads(line)
        canonical = _canonical(value).encode("ascii")
    except (ValueError, RecursionError) as error:
        _bad("broken_json", f"not a JSON object ({_reason(error)})")
    fields = _object(value, "the line")
    product = product_from_json(_object(_required(fields, "product"), "product"))
    if _text(fields, "id") != product.product_id:
        _bad("bad_field", "id and product.product_id differ")
    return Document(product, _text(fields, "contents"), canonical)


def product_from_json(value: JsonObject) -> Product:
    """The catalogue's product object as a `Product`.

    `product_id`, `shop_id`, `title` and `price` must be there; the rest may be missing
    or null. Raises CatalogError (missing_field, bad_field, bad_price).
    """
    product_id = _text(value, "product_id")
    if not _usable_id(product_id):
        _bad("bad_field", f"product_id must be 1 to {MAX_ID_BYTES} bytes of UTF-8, no comma")
    return Product(
        product_id=product_id,
        shop_id=_text(value, "shop_id"),
        title=_text(value, "title"),
        price=_price(_required(value, "price")),
        service=_texts(value.get("service"), "service"),
        sold_count=_count(value.get("sold_count")),
        short_description=_optional_text(value, "short_description"),
        description=_optional_text(value, "description"),
        sku_options={
            name: _mapping_of_text(option, f"sku_options.{name}")
            for name, option in _object(value.get("sku_options") or {}, "sku_options").items()
        },
        attributes={
            key: _texts(values, f"attributes.{key}")
            for key, values in _object(value.get("attributes") or {}, "attributes").items()
        },
    )


def _usable_id(text: str) -> bool:
    """Ids are sorted as UTF-8 and travel in comma lists."""
    try:
        return 0 < len(text.encode()) <= MAX_ID_BYTES and "," not in text
    except UnicodeEncodeError:
        return False


def _bad(code: str, message: str) -> Never:
    raise CatalogError(message, code=f"catalog.{code}")


def _shown(text: str) -> str:
    return ascii(text[:80])


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


def _required(value: JsonObject, name: str) -> Json:
    if name not in value:
        _bad("missing_field", f"{name} is missing")
    return value[name]


def _object(value: Json, name: str) -> JsonObject:
    if not isinstance(value, dict):
        _bad("bad_field", f"{name} is not an object")
    return value


def _text(value: JsonObject, name: str) -> str:
    found = _required(value, name)
    if not isinstance(found, str):
        _bad("bad_field", f"{name} is not text")
    return found


def _optional_text(value: JsonObject, name: str) -> str:
    return "" if value.get(name) is None else _text(value, name)


def _texts(value: Json, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        _bad("bad_field", f"{_shown(name)} is not a list of texts")
    texts = tuple(item for item in value if isinstance(item, str))
    if len(texts) != len(value):
        _bad("bad_field", f"{_shown(name)} is not a list of texts")
    return texts


def _mapping_of_text(value: Json, name: str) -> dict[str, str]:
    found = {k: v for k, v in _object(value, _shown(name)).items() if isinstance(v, str)}
    if len(found) != len(cast("JsonObject", value)):
        _bad("bad_field", f"a value in {_shown(name)} is not text")
    return found


def _price(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _bad("bad_price", "price is not a number")
    try:
        price = float(value)
    except OverflowError:
        price = math.inf
    if not (math.isfinite(price) and price >= 0):
        _bad("bad_price", f"price is {value!s:.40}, not a number from 0 up")
    return price


def _count(value: Json) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        _bad("bad_field", "sold_count is not a count")
    return value
