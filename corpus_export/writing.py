"""The files of an export: on the disk before anything says so, and never half.

Everything is written into a directory beside the one asked for and takes its name in the
end, when every byte is on the disk: a directory with that name is a whole export.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from corpus_export.exceptions import CorpusError, DiskError
from corpus_export.rows import SCHEMA
from scoring.types import JsonObject

ROW_GROUP = 128
"""Rows of a Parquet row group, and so of memory."""
_LEVEL = 9


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file as the manifest names it. `rows` is None where it holds none."""

    path: str
    sha256: str
    bytes: int
    rows: int | None = None

    def to_json(self) -> JsonObject:
        """As the manifest holds it."""
        value: JsonObject = {"sha256": self.sha256, "bytes": self.bytes}
        return value if self.rows is None else value | {"rows": self.rows}


class Workplace:
    """The two directories that an export is made in, and the lock on them."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.work = out.parent / f".{out.name}.work"
        self.partial = out.parent / f".{out.name}.partial"
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Workplace:
        with disk(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
            self._lock = (self.work / "lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise CorpusError(
                f"another process exports to {self.out}",
                remedy="wait for it, or give another --out",
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._lock is not None
        self._lock.close()

    def fresh_partial(self) -> Path:
        """An empty directory to write into."""
        with disk(self.partial):
            shutil.rmtree(self.partial, ignore_errors=True)
            self.partial.mkdir(parents=True)
        return self.partial

    def publish(self) -> None:
        """Give the written directory its name: the last step."""
        with disk(self.out):
            for directory in (*(p for p in self.partial.rglob("*") if p.is_dir()), self.partial):
                _sync(directory)
            self.partial.rename(self.out)
            _sync(self.out.parent)

    def clear(self) -> None:
        """Remove what is only of use to an unfinished export."""
        shutil.rmtree(self.partial, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)


class TableWriter:
    """Rows into a Parquet file and the same rows as lines of JSON."""

    def __init__(self, directory: Path, name: str) -> None:
        self._names = (f"{name}.parquet", f"{name}.jsonl.zst")
        self._paths = tuple(directory / part for part in self._names)
        with disk(directory):
            self._paths[0].parent.mkdir(exist_ok=True)
            self._parquet = pq.ParquetWriter(
                self._paths[0], SCHEMA, compression="zstd", compression_level=_LEVEL
            )
        self._lines = LinesWriter(directory, self._names[1])
        self._rows: list[JsonObject] = []
        self.count = 0

    def write(self, row: bytes) -> None:
        """One row, as JSON."""
        self._lines.write(row)
        self._rows.append(orjson.loads(row))
        self.count += 1
        if len(self._rows) == ROW_GROUP:
            self._flush()

    def close(self) -> list[WrittenFile]:
        """Write the rest; on the disk when this returns."""
        with disk(self._paths[0]):
            if self._rows or not self.count:
                self._flush()
            self._parquet.close()
        first = on_disk(self._paths[0], self._names[0], self.count)
        return [first, self._lines.close()]

    def abandon(self) -> None:
        """Close the files of an export that failed."""
        with suppress(OSError, pa.ArrowException, DiskError):
            self._parquet.close()
        self._lines.abandon()

    def _flush(self) -> None:
        with disk(self._paths[0]):
            self._parquet.write_table(pa.Table.from_pylist(self._rows, SCHEMA))
        self._rows = []


class LinesWriter:
    """Lines of JSON into one zstandard frame with a checksum."""

    def __init__(self, directory: Path, name: str) -> None:
        self._name = name
        self._path = directory / name
        with disk(self._path):
            self._file = self._path.open("wb")
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._stream = compressor.stream_writer(self._file, closefd=False)
        self.count = 0

    def write(self, line: bytes) -> None:
        """One line, without its end."""
        with disk(self._path):
            self._stream.write(line + b"\n")
        self.count += 1

    def close(self) -> WrittenFile:
        """On the disk when this returns."""
        with disk(self._path):
            self._stream.flush(zstandard.FLUSH_FRAME)
            self._file.close()
        return on_disk(self._path, self._name, self.count)

    def abandon(self) -> None:
        """Close the file of an export that failed."""
        with suppress(OSError, zstandard.ZstdError):
            self._file.close()


def write_file(directory: Path, name: str, content: bytes) -> WrittenFile:
    """A whole file; on the disk when this returns."""
    path = directory / name
    with disk(path):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return on_disk(path, name)


def on_disk(path: Path, name: str, rows: int | None = None) -> WrittenFile:
    """Wait until the disk has a file, and read it again for its hash."""
    with disk(path), path.open("rb+") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return WrittenFile(name, digest, path.stat().st_size, rows)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """What the disk says, in one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        remedy = None
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "make room on the disk and start the same command again: it goes on"
        said = getattr(error, "strerror", None) or " ".join(str(error).split())[:300]
        raise DiskError(f"{path}: {said}", remedy=remedy) from error


def lines_of(rows: Sequence[JsonObject]) -> bytes:
    """Lines of JSON."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
