"""From a path to a catalogue: an index is opened, a file is built into the cache first."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from sandbox.catalog import lucene
from sandbox.catalog.analysis import ANALYSIS_VERSION
from sandbox.catalog.builder import build_index
from sandbox.catalog.interface import Catalog
from sandbox.catalog.manifest import FORMAT_VERSION, MANIFEST, read_manifest
from sandbox.catalog.native import ENGINE, NativeCatalog
from sandbox.catalog.stored import StoredCatalog
from sandbox.exceptions import CatalogError

FILE_SUFFIXES = (".jsonl", ".jsonl.gz")


def open_catalog(path: Path | str) -> Catalog:
    """See `sandbox.catalog.open_catalog`."""
    path = Path(path)
    if path.is_dir():
        return open_index(path)
    if not path.name.endswith(FILE_SUFFIXES):
        raise CatalogError(
            f"{path} is neither an index directory nor a .jsonl or .jsonl.gz file",
            code="catalog.unreadable",
        )
    directory = cache_directory(path)
    if not (directory / MANIFEST).exists():
        build_index([path], directory, keep=True)
    return open_index(directory)


def open_index(directory: Path) -> StoredCatalog:
    """Open an index with the engine that it was built for. Raises CatalogError."""
    if read_manifest(directory).engine.startswith(lucene.ENGINE):
        return lucene.LuceneCatalog(directory)
    return NativeCatalog(directory)


def cache_directory(file: Path) -> Path:
    """Where the index of `file` lies: named by the file's bytes and the engine."""
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
    except OSError as error:
        raise CatalogError(f"{file}: {error.strerror}", code="catalog.unreadable") from error
    digest.update(f"{FORMAT_VERSION} {ENGINE} {ANALYSIS_VERSION}".encode())
    data = Path(os.environ.get("ARENA_DATA_DIR", "var"))
    return data / "catalogs" / digest.hexdigest()[:32]
