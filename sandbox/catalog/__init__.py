"""Documents, index and search. `open_catalog` is the door."""

from __future__ import annotations

from pathlib import Path

from sandbox.catalog.interface import Catalog

__all__ = ["Catalog", "open_catalog"]


def open_catalog(path: Path | str) -> Catalog:
    """Open an index directory, or a `.jsonl` or `.jsonl.gz` file.

    A file is built into the data directory (`ARENA_DATA_DIR`, default `var/`) once
    per content of the file and version of the engine, and opened from there.
    Raises CatalogError.
    """
    # Whoever needs only the interface does not wait for the compiler to load.
    from sandbox.catalog import opening

    return opening.open_catalog(path)
