"""Documents on disk: compressed blocks of a few, read one at a time.

Blocks keep a document's neighbours out of memory and its repetitions out of the file.
Reading uses positioned reads and no memory map, so that resident memory does not grow
with what was looked at. Touches the two files it is given.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import zstandard

PER_BLOCK = 16
"""Documents in a block."""

DOCUMENTS = "documents.zst"
BLOCKS = "blocks.npy"

_LEVEL = 3
_MAX_BLOCK = 1 << 30


class DocumentWriter:
    """Appends documents; `close` writes the block table."""

    def __init__(self, directory: Path) -> None:
        self._file: IO[bytes] = (directory / DOCUMENTS).open("wb")
        self._table = directory / BLOCKS
        self._compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self._pending: list[bytes] = []
        self._ends = [0]

    def append(self, canonical: bytes) -> None:
        """Add one document: a line of JSON without line breaks."""
        self._pending.append(canonical)
        if len(self._pending) == PER_BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._file.write(self._compress(b"\n".join(self._pending)))
            self._ends.append(self._file.tell())
            self._pending.clear()

    def close(self) -> None:
        """Write what is left and the block table. Safe to call twice."""
        if self._file.closed:
            return
        self._flush()
        self._file.close()
        np.save(self._table, np.array(self._ends, np.int64))


class DocumentReader:
    """Reads documents by position, from any thread."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / DOCUMENTS, os.O_RDONLY | os.O_CLOEXEC)
        # Catalogues live as long as somebody holds one; nobody has to close them.
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self._starts: npt.NDArray[np.int64] = np.load(directory / BLOCKS, mmap_mode="r")
        self._local = threading.local()

    def read(self, position: int) -> bytes:
        """The canonical bytes of the document that was appended as number `position`."""
        if not self.close.alive:
            raise ValueError("the catalogue is closed")
        block, within = divmod(position, PER_BLOCK)
        start, end = int(self._starts[block]), int(self._starts[block + 1])
        packed = os.pread(self._descriptor, end - start, start)
        decompress = getattr(self._local, "decompress", None)
        if decompress is None:  # one per thread: the decompressor is not shareable
            decompress = zstandard.ZstdDecompressor().decompress
            self._local.decompress = decompress
        lines: list[bytes] = decompress(packed, max_output_size=_MAX_BLOCK).split(b"\n")
        return lines[within]
