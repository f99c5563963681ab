"""Makes an index directory out of catalogue files: streaming, bounded, atomic.

The index grows in a temporary directory beside its place and is renamed into it when
it is whole. A lock file beside it lets one builder work at a time and lets the next
one remove what a killed one left.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import numpy as np

from sandbox.catalog import lucene, native
from sandbox.catalog.analysis import ANALYSIS_VERSION
from sandbox.catalog.bm25 import norm_bytes
from sandbox.catalog.columns import NORMS, ColumnsWriter
from sandbox.catalog.documents import Document, OnBad, OnRead, read_documents
from sandbox.catalog.manifest import FORMAT_VERSION, MANIFEST, Manifest, read_manifest
from sandbox.catalog.postings import DEFAULT_LIMITS, Limits, PostingsWriter
from sandbox.catalog.store import DocumentReader, DocumentWriter
from sandbox.exceptions import CatalogError


class Engine(StrEnum):
    """What ranks."""

    NATIVE = "native"
    LUCENE = "lucene"


_DIGEST = hashlib.sha256().digest_size


def build_index(
    files: Iterable[Path],
    directory: Path,
    *,
    on_bad: OnBad | None = None,
    on_read: OnRead | None = None,
    keep: bool = False,
    engine: Engine = Engine.NATIVE,
) -> Manifest:
    """Build an index of `files` in `directory`, replacing an index that is there.

    With `keep` an index that is there once the lock is held stays as it is. With
    `on_bad` bad lines are passed to it and skipped; without, the first one is raised.
    Raises CatalogError; nothing half built is left where it could be opened.
    """
    skipped: Counter[str] = Counter()

    def count(error: CatalogError) -> None:
        skipped[error.code] += 1
        if on_bad:
            on_bad(error)

    try:
        with exclusive(directory):
            if keep and (directory / MANIFEST).exists():
                return read_manifest(directory)
            with _fresh(directory) as fresh:
                documents = read_documents(files, count if on_bad else None, on_read)
                return write_index(documents, fresh, skipped, engine)
    except OSError as error:
        raise CatalogError(
            f"{directory} cannot be written: {error.strerror or error}",
            code="catalog.unwritable",
            remedy="make room or name another place",
        ) from error


def write_index(
    documents: Iterable[Document],
    directory: Path,
    skipped: Counter[str] | None = None,
    engine: Engine = Engine.NATIVE,
    limits: Limits = DEFAULT_LIMITS,
) -> Manifest:
    """Write an index of `documents`, whose ids are distinct, into an empty directory.

    Raises CatalogError when there is no document.
    """
    store, columns, postings = (
        DocumentWriter(directory),
        ColumnsWriter(directory),
        PostingsWriter(directory, limits),
    )
    digests = bytearray()
    try:
        for document in documents:
            store.append(document.canonical)
            columns.append(document.product)
            postings.append(document.contents)
            digests += hashlib.sha256(document.canonical).digest()
    finally:
        store.close()
    if not columns.ids:
        raise CatalogError("there is no product to index", code="catalog.empty")
    if engine is Engine.LUCENE:
        lucene.write_lucene_index(_texts(directory, len(columns.ids)), directory)
    order = columns.order()
    lengths = postings.lengths()[order]
    np.save(directory / NORMS, norm_bytes(lengths))
    numbers = np.empty_like(order)
    numbers[order] = np.arange(order.size, dtype=np.uint32)
    shops = columns.finish(order)
    terms, total_postings = postings.finish(numbers)
    content = hashlib.sha256()
    for position in order.tolist():
        content.update(digests[position * _DIGEST : (position + 1) * _DIGEST])
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        engine=lucene.engine_version() if engine is Engine.LUCENE else native.ENGINE,
        analysis=ANALYSIS_VERSION,
        documents=int(order.size),
        terms=terms,
        postings=total_postings,
        shops=shops,
        total_terms=int(lengths.sum()),
        documents_with_terms=int(np.count_nonzero(lengths)),
        content_hash=content.hexdigest(),
        files={
            str(file.relative_to(directory)): file.stat().st_size
            for file in sorted(directory.rglob("*"))
            if file.is_file()
        },
        skipped=dict(skipped or {}),
    )
    manifest.write(directory)
    return manifest


def _texts(directory: Path, count: int) -> Iterator[tuple[str, str]]:
    """What the reference engine indexes, read back from the store."""
    store = DocumentReader(directory)
    for position in range(count):
        document = json.loads(store.read(position))
        yield document["id"], document["contents"]
    store.close()


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold the lock of an index's place; waits for another builder to finish."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_name(directory.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _fresh(directory: Path) -> Iterator[Path]:
    """An empty directory that becomes `directory` when the block ends well."""
    if directory.exists() and not (directory / MANIFEST).exists() and not _empty(directory):
        raise CatalogError(
            f"{directory} exists and is no catalogue index",
            code="catalog.output_exists",
            remedy="name another --out",
        )
    prefix = f".{directory.name}.building-"
    for left_over in directory.parent.glob(f"{prefix}*"):  # the lock is ours: nobody's
        shutil.rmtree(left_over, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=directory.parent))
    try:
        fresh.chmod(0o755)
        yield fresh
        if directory.exists():
            retired = Path(tempfile.mkdtemp(prefix=prefix, dir=directory.parent))
            directory.rename(retired / "old")
            fresh.rename(directory)
            shutil.rmtree(retired, ignore_errors=True)
        else:
            fresh.rename(directory)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _empty(directory: Path) -> bool:
    return directory.is_dir() and not any(directory.iterdir())
