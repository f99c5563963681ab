"""Records on disk: one append-only file that survives kill -9 and needs no database.

`arena/runs/frames.py` says how a record lies in the file; `zstdcat records.jsonl.zst` prints
JSON Lines. What a killed process left half written is moved to a file of its own and said;
every record before it is whole, since `put` returns only after the disk has it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arena.exceptions import SealError, SpoolError
from arena.runs.frames import DamagedFrameError, SpooledRecord, encode_frame, read_frame
from arena.runs.ledger import Ledger, sync_directory
from arena.runs.record import EncodedRecord
from arena.runs.seal import Sealed

FILE_NAME = "records.jsonl.zst"


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """Where one record lies in the file."""

    offset: int
    length: int


class SpoolSink:
    """An open spool. One process at a time: the caller holds the directory's lock.

    With a `ledger` every record is sealed as it is written.
    """

    def __init__(self, directory: Path, ledger: Ledger | None = None) -> None:
        self.path = directory / FILE_NAME
        self.torn: Path | None = None
        """Where the half-written end was moved, if there was one."""
        self._ledger = ledger
        self._lock = threading.Lock()
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            sync_directory(directory)
        except OSError as error:
            raise SpoolError(f"{self.path}: {error.strerror}") from error
        self._end: int | None = None

    def load(self) -> Iterator[tuple[SpoolEntry, SpooledRecord]]:
        """Every whole record in the file, oldest first; afterwards the file ends there.

        Must be run to its end before the first `put`: only then is the end known.
        """
        offset, last = 0, None
        own = f'"validator":"{self._ledger.signer.address}"'.encode() if self._ledger else b"\0"
        with suppress(DamagedFrameError):
            while (frame := read_frame(self._fd, offset)) is not None:
                if own in (frame.content.seal_line or b""):
                    last = frame.content.seal_line
                yield SpoolEntry(frame.offset, frame.length), frame.content
                offset = frame.end
        self._cut_torn_end(offset)
        if self._ledger is not None:
            self._ledger.enter(self.path, offset, Sealed.from_line(last) if last else None)
        self._end = offset

    async def put(self, record: EncodedRecord) -> None:
        """Append a record and wait until the disk has it. Raises SpoolError or SealError."""
        await self.append(record)

    async def append(self, record: EncodedRecord) -> SpoolEntry:
        """As `put`, and say where it lies."""
        return await asyncio.shield(asyncio.to_thread(self._append, record))

    async def read(self, entry: SpoolEntry) -> SpooledRecord:
        """A record that was put or loaded before."""
        found = await asyncio.to_thread(read_frame, self._fd, entry.offset)
        if found is None:
            raise SpoolError(f"{self.path}: no record at byte {entry.offset}")
        return found.content

    def close(self) -> None:
        """Close the file."""
        if self._ledger is not None and self._end is not None:
            with suppress(SealError):  # it stays registered, which costs a look at its size
                self._ledger.leave(self.path)
        with suppress(OSError):
            os.close(self._fd)

    def _append(self, record: EncodedRecord) -> SpoolEntry:
        # A lock of threads, not of tasks: a cancelled task's append still runs to its end.
        with self._lock:
            if self._ledger is None:
                return self._write(encode_frame(record, None))
            with self._ledger.turn(self.path) as turn:
                sealed = turn.seal(record).sealed
                entry = self._write(encode_frame(record, sealed))
                turn.keep(sealed, entry.offset + entry.length)
                return entry

    def _write(self, frame: bytes) -> SpoolEntry:
        """Append a frame; when this returns, the disk has it."""
        if self._end is None:
            raise SpoolError(f"{self.path}: not loaded, or its end could not be mended")
        start, view = self._end, memoryview(frame)
        try:
            while view:
                view = view[os.pwrite(self._fd, view, start + len(frame) - len(view)) :]
            os.fsync(self._fd)
        except OSError as error:
            # Whole or gone: what is not confirmed must not turn up later beside the seal
            # that takes its number.
            self._end = None
            with suppress(OSError):
                os.ftruncate(self._fd, start)
                os.fsync(self._fd)
                self._end = start
            raise SpoolError(
                f"{self.path}: {error.strerror}",
                remedy="make room on the disk and start again",
            ) from error
        self._end = start + len(frame)
        return SpoolEntry(start, len(frame))

    def _cut_torn_end(self, end: int) -> None:
        if os.fstat(self._fd).st_size == end:
            return
        self.torn = _free_name(self.path)
        with self.path.open("rb") as source, self.torn.open("xb") as target:
            source.seek(end)
            while chunk := source.read(1 << 20):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        os.ftruncate(self._fd, end)
        os.fsync(self._fd)


def _free_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.torn-{number}")).exists():
        number += 1
    return candidate
