"""The frames of a spool: how a record and its seal lie in the file, and reading them there.

A frame is one zstandard frame with a checksum. Its plain text is a line with the record's
canonical JSON and, when the record is sealed, a line with the seal (`Sealed.to_line`), so
that `zstdcat` prints JSON Lines and content and seal are on disk together or not at all.

Reading here changes nothing: another process may be writing the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from arena.exceptions import SealError, SpoolError
from arena.runs.record import EncodedRecord
from arena.runs.seal import Sealed, SealedRecord

MAX_RECORD_BYTES = 256 << 20
"""No record is larger: a frame that claims more is damage."""
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """A record as a file holds it. `seal_line` is None when nobody sealed it."""

    record: EncodedRecord
    seal_line: bytes | None = None

    @property
    def sealed(self) -> SealedRecord:
        """The record with its seal. Raises SealError without one, or with a broken one."""
        if self.seal_line is None:
            raise SealError("the record has no seal")
        return SealedRecord(self.record, Sealed.from_line(self.seal_line))


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame: where it lies, in bytes, and what it holds."""

    offset: int
    length: int
    content: SpooledRecord

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.offset + self.length


class DamagedFrameError(SpoolError):
    """Bytes in a spool that are no frame, and not the beginning of one either."""

    code = "spool.damaged"


def encode_frame(record: EncodedRecord, sealed: Sealed | None) -> bytes:
    """The bytes of a frame."""
    lines = [record.content] if sealed is None else [record.content, sealed.to_line()]
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True)
    return compressor.compress(b"".join(line + b"\n" for line in lines))


def read_frame(fd: int, offset: int) -> Frame | None:
    """The frame at `offset`; None at the file's end, or where the rest is cut off.

    Raises DamagedFrameError on anything else, OSError when the disk cannot read.
    """
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    parts: list[bytes] = []
    size = position = 0
    try:
        while not decompressor.eof:
            chunk = os.pread(fd, _CHUNK_BYTES, offset + position)
            if not chunk:
                return None
            position += len(chunk)
            parts.append(decompressor.decompress(chunk))
            size += len(parts[-1])
            if size > MAX_RECORD_BYTES:
                raise DamagedFrameError(f"a frame of more than {MAX_RECORD_BYTES} bytes")
    except zstandard.ZstdError as error:
        raise DamagedFrameError(f"no frame at byte {offset}: {error}") from error
    length = position - len(decompressor.unused_data)
    return Frame(offset, length, _read_lines(b"".join(parts), offset))


def read_spool(path: Path, offset: int = 0) -> Iterator[Frame]:
    """Every whole frame of a spool from `offset` on, oldest first, for reading only.

    Ends where the file does; what a process is just writing, or left half written, is not
    there yet. Go on later from the last frame's `end`. Raises SpoolError where the file
    cannot be read, and DamagedFrameError, naming the byte, where something else lies in it.
    """
    try:
        with path.open("rb") as file:
            while (frame := read_frame(file.fileno(), offset)) is not None:
                yield frame
                offset = frame.end
    except DamagedFrameError as error:
        raise DamagedFrameError(
            f"{path} is damaged at byte {offset}: {error.message}",
            remedy="what comes before it is whole; take the rest from a backup or the database",
        ) from error
    except OSError as error:
        raise SpoolError(f"{path}: {error.strerror}") from error


def _read_lines(plain: bytes, offset: int) -> SpooledRecord:
    lines = plain.split(b"\n")
    if not 2 <= len(lines) <= 3 or lines[-1] or not all(x.endswith(b"}") for x in lines[:-1]):
        raise DamagedFrameError(f"no record in the frame at byte {offset}")
    return SpooledRecord(EncodedRecord(lines[0]), lines[1] if len(lines) == 3 else None)
