"""Records on disk: one append-only file that survives kill -9 and needs no database.

Each record is one zstandard frame holding its canonical JSON and a newline, so that
`zstdcat records.jsonl.zst` prints JSON Lines. A frame carries its own checksum. What
a killed process left half written is moved to a file of its own and said; every
record before it is whole, since `put` returns only after the disk has it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zstandard

from arena.exceptions import SpoolError
from arena.runs.record import EncodedRecord

FILE_NAME = "records.jsonl.zst"
MAX_RECORD_BYTES = 256 << 20
"""No record is larger: a frame that claims more is damage."""


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """Where one record lies in the file."""

    offset: int
    length: int


class SpoolSink:
    """An open spool. One process at a time: the caller holds the directory's lock."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self.torn: Path | None = None
        """Where the half-written end was moved, if there was one."""
        self._lock = threading.Lock()
        self._compressor = zstandard.ZstdCompressor(
            level=3, write_checksum=True, write_content_size=True
        )
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            _sync_directory(directory)
        except OSError as error:
            raise SpoolError(f"{self.path}: {error.strerror}") from error
        self._end: int | None = None

    def load(self) -> Iterator[tuple[SpoolEntry, EncodedRecord]]:
        """Every whole record in the file, oldest first; afterwards the file ends there.

        Must be run to its end before the first `put`: only then is the end known.
        """
        offset = 0
        with self.path.open("rb") as file:
            while (found := _next_frame(file.fileno(), offset)) is not None:
                content, length = found
                yield SpoolEntry(offset, length), EncodedRecord(content)
                offset += length
        self._end = offset
        self._cut_torn_end()

    async def put(self, record: EncodedRecord) -> None:
        """Append a record and wait until the disk has it. Raises SpoolError."""
        await self.append(record)

    async def append(self, record: EncodedRecord) -> SpoolEntry:
        """As `put`, and say where it lies."""
        return await asyncio.shield(asyncio.to_thread(self._append, record.content))

    async def read(self, entry: SpoolEntry) -> EncodedRecord:
        """A record that was put or loaded before."""
        found = await asyncio.to_thread(_next_frame, self._fd, entry.offset)
        if found is None:
            raise SpoolError(f"{self.path}: no record at byte {entry.offset}")
        return EncodedRecord(found[0])

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            os.close(self._fd)

    def _append(self, content: bytes) -> SpoolEntry:
        # A lock of threads, not of tasks: a cancelled task's append still runs to its end.
        with self._lock:
            assert self._end is not None, "load() comes before put()"
            frame = self._compressor.compress(content + b"\n")
            start, view = self._end, memoryview(frame)
            try:
                while view:
                    view = view[os.pwrite(self._fd, view, start + len(frame) - len(view)) :]
                os.fsync(self._fd)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._fd, start)
                raise SpoolError(
                    f"{self.path}: {error.strerror}",
                    remedy="make room on the disk and start again",
                ) from error
            self._end = start + len(frame)
        return SpoolEntry(start, len(frame))

    def _cut_torn_end(self) -> None:
        assert self._end is not None
        if os.fstat(self._fd).st_size == self._end:
            return
        self.torn = _free_name(self.path)
        with self.path.open("rb") as source, self.torn.open("xb") as target:
            source.seek(self._end)
            while chunk := source.read(1 << 20):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        os.ftruncate(self._fd, self._end)
        os.fsync(self._fd)


def _next_frame(fd: int, offset: int) -> tuple[bytes, int] | None:
    """The record at `offset` and its frame's length; None at the end or at damage."""
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    parts: list[bytes] = []
    size = position = 0
    try:
        while not decompressor.eof:
            chunk = os.pread(fd, 1 << 16, offset + position)
            if not chunk or size > MAX_RECORD_BYTES:
                return None
            position += len(chunk)
            parts.append(decompressor.decompress(chunk))
            size += len(parts[-1])
    except zstandard.ZstdError:
        return None
    content = b"".join(parts)
    length = position - len(decompressor.unused_data)
    return (content[:-1], length) if content.endswith(b"}\n") else None


def _free_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.torn-{number}")).exists():
        number += 1
    return candidate


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
