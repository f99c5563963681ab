"""A disk that dies in the middle: real files, with every write, sync and rename a place to die.

A killed process leaves what it had written, synced or not. A machine without power leaves
what was synced, and of the rest any part: a file's new end may be cut anywhere, a rename
may not have happened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest


class DeadError(BaseException):
    """The process ends here; no handler of errors sees it."""


class FaultyDisk:
    """Stands before `os` while a test runs. Nothing is synced for real, which is slow."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._pwrite, self._replace, self._truncate = os.pwrite, os.replace, os.ftruncate
        self._left: int | None = None
        self._cut = 0.0
        self._sizes: dict[int, int] = {}
        """Inode → how much of it is on the disk for sure."""
        self._renamed: dict[str, bytes | None] = {}
        """Path → what stood there before a rename that is not on the disk for sure."""
        patch.setattr(os, "pwrite", self.pwrite)
        patch.setattr(os, "replace", self.replace)
        patch.setattr(os, "ftruncate", self.ftruncate)
        patch.setattr(os, "fsync", self.fsync)

    def die_at(self, step: int | None, cut: float = 0.0) -> None:
        """End the process at its `step`-th step from now; a write then writes `cut` of it."""
        self._left, self._cut = step, cut

    def lose_power(self, cut: float) -> None:
        """What is not synced is gone, but for `cut` of it."""
        self._left = None
        for path, before in self._renamed.items():
            if cut < 0.5:
                if before is None:
                    Path(path).unlink()
                else:
                    Path(path).write_bytes(before)
                    self._sizes[os.stat(path).st_ino] = len(before)
        self._renamed.clear()

    def cut_unsynced(self, path: Path, cut: float) -> None:
        """Of one file's unsynced end, `cut` of it stays."""
        if not path.exists():
            return
        found = path.stat()
        synced = min(self._sizes.get(found.st_ino, 0), found.st_size)
        os.truncate(path, synced + int(cut * (found.st_size - synced)))

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        if self._dies():
            self._pwrite(fd, data[: int(self._cut * len(data))], offset)
            raise DeadError
        return self._pwrite(fd, data, offset)

    def replace(self, source: Any, target: Any) -> None:
        if self._dies():
            raise DeadError
        new = Path(source)
        assert self._sizes.get(new.stat().st_ino) == new.stat().st_size, "renamed before synced"
        path = Path(target)
        before = path.read_bytes() if path.exists() else None
        self._renamed.setdefault(os.fspath(path), before)
        self._replace(source, target)
        if self._dies():
            raise DeadError

    def ftruncate(self, fd: int, length: int) -> None:
        if self._dies():
            raise DeadError
        self._truncate(fd, length)

    def fsync(self, fd: int) -> None:
        if self._dies():
            raise DeadError
        found = os.fstat(fd)
        self._sizes[found.st_ino] = found.st_size
        folder = os.readlink(f"/proc/self/fd/{fd}")
        for path in [path for path in self._renamed if os.path.dirname(path) == folder]:
            del self._renamed[path]
        if self._dies():
            raise DeadError

    def _dies(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        return self._left < 0
