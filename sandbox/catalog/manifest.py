"""The manifest of an index: what is in it, made how. Touches `manifest.json` alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.exceptions import CatalogError

FORMAT_VERSION = 2
"""Layout of the files of an index. Another number cannot be opened."""

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """`files` holds the size of every file; a cut one is found before it is used.

    `content_hash` is the SHA-256 over the SHA-256 digests (32 bytes each) of the
    documents' canonical bytes, in ascending order of product id. It depends on what
    the documents say, not on their order, spelling or compression.
    """

    format_version: int
    engine: str
    analysis: str
    documents: int
    terms: int
    postings: int
    shops: int
    total_terms: int
    documents_with_terms: int
    content_hash: str
    files: dict[str, int]
    skipped: dict[str, int]

    def write(self, directory: Path) -> None:
        """Write it; the last file of an index."""
        text = json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"
        (directory / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Read and check the manifest of `directory`.

    Raises CatalogError: catalog.not_an_index, catalog.other_version,
    catalog.damaged_index.
    """
    path = directory / MANIFEST
    rebuild = f"arena catalog build FILE --out {directory}"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CatalogError(
            f"{directory} holds no catalogue index", code="catalog.not_an_index", remedy=rebuild
        ) from error
    version = value.get("format_version") if isinstance(value, dict) else None
    if version != FORMAT_VERSION:
        raise CatalogError(
            f"{directory} has index format {version!r}, this program reads {FORMAT_VERSION}",
            code="catalog.other_version",
            remedy=rebuild,
        )
    try:
        manifest = Manifest(**value)
        cut = [n for n, size in manifest.files.items() if (directory / n).stat().st_size != size]
    except (TypeError, AttributeError, OSError) as error:
        raise CatalogError(
            f"{directory} is damaged ({error})", code="catalog.damaged_index", remedy=rebuild
        ) from error
    if cut:
        raise CatalogError(
            f"{directory} is damaged ({', '.join(cut)} of another size)",
            code="catalog.damaged_index",
            remedy=rebuild,
        )
    return manifest
