"""Slots: a host user of its own for every sandbox that runs at once on this machine.

A slot is a lock file that holds a note of what its sandbox left on the host. The
kernel drops the lock when its process ends in whatever way, so a free lock with a note
in it is a dead owner's leftover, and a taken one is a living owner's; no process id is
trusted, which another PID namespace would not share. The lock files lie where every
validator of the machine looks, since user ids are the machine's.
"""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sandbox.exceptions import IsolationError

UIDS_A_SLOT: Final = 2
"""The agent's, and the forwarder's, which the agent must not be able to signal."""


class Slot:
    """A locked slot: two host users, and a note that outlives this process."""

    def __init__(self, number: int, uid_base: int, fd: int) -> None:
        self.number = number
        self.uid = uid_base + UIDS_A_SLOT * number
        self.forwarder_uid = self.uid + 1
        self._fd = fd

    @property
    def note(self) -> str:
        """What the last owner wrote, or nothing when it cleaned up."""
        return os.pread(self._fd, 1 << 16, 0).decode("utf-8", errors="replace")

    @note.setter
    def note(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def release(self) -> None:
        """Let others have it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Slots:
    """The slots of this machine."""

    def __init__(self, directory: Path, uid_base: int, count: int) -> None:
        self._directory = directory
        self._uid_base = uid_base
        self._count = count

    def take(self) -> Slot:
        """Lock the first free slot. Raises IsolationError when none is."""
        self._make_directory()
        for number in range(self._count):
            if slot := self._lock(number):
                return slot
        raise IsolationError(
            f"all {self._count} user ids for sandboxes are in use",
            remedy="start fewer workers, or raise ARENA_SANDBOX_UID_SLOTS",
        )

    def abandoned(self) -> Iterator[Slot]:
        """Lock, one after the other, the slots that hold a dead owner's note.

        The caller releases each.
        """
        for number in range(self._count):
            if not self._path(number).exists():
                continue
            slot = self._lock(number)
            if slot is None:
                continue
            if slot.note:
                yield slot
            else:
                slot.release()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.slot"

    def _lock(self, number: int) -> Slot | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path(number), flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return Slot(number, self._uid_base, fd)

    def _make_directory(self) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IsolationError(
                f"{self._directory} cannot be made: {error.strerror}",
                remedy="set ARENA_SANDBOX_RUN_DIR to a folder that this user may write to",
            ) from None
        found = self._directory.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise IsolationError(
                f"{self._directory} belongs to someone else or is open to others",
                remedy=f"remove {self._directory}, or set ARENA_SANDBOX_RUN_DIR",
            )


def require_free_uids(uid_base: int, count: int, subuid: Path = Path("/etc/subuid")) -> None:
    """Raise IsolationError when a host user id that a slot would use is somebody's."""
    owner = _owner(uid_base, uid_base + UIDS_A_SLOT * count, subuid)
    if owner:
        raise IsolationError(
            f"host user ids from {uid_base} on belong to {owner}",
            remedy="set ARENA_SANDBOX_UID_BASE to a range that is free",
        )


def _owner(start: int, end: int, subuid: Path) -> str | None:
    for entry in pwd.getpwall():
        if start <= entry.pw_uid < end:
            return f"user {entry.pw_name}"
    try:
        lines = subuid.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        fields = line.split(":")
        if len(fields) == 3 and fields[1].isdecimal() and fields[2].isdecimal():
            first = int(fields[1])
            if first < end and start < first + int(fields[2]):
                return f"{fields[0]}, by {subuid}"
    return None
