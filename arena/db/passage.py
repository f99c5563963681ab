"""Let one user, and nobody else, through the directories above a path.

Run by root, the embedded Postgres is another user, who must reach its program and its
data, often below a home directory that is closed to others. An access control list
lets that one user pass: he may go through, not list, and others see no change.
"""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

from arena.exceptions import DatabaseError, Fault

_ACL = "system.posix_acl_access"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_PASS = 0o1


def let_through(path: Path, uid: int) -> None:
    """Let `uid` pass through every directory above `path` that is closed to it.

    Raises DatabaseError where the file system keeps no access control lists.
    """
    for directory in path.resolve().parents:
        # Both bits: the user may also be in the directory's group, whose bits then count.
        if directory.stat().st_mode & 0o011 != 0o011:
            try:
                _admit(directory, uid)
            except OSError as error:
                raise DatabaseError(
                    f"the embedded database's user may not pass through {directory}"
                    f" ({error.strerror})",
                    fault=Fault.CALLER,
                    remedy="work below a directory that is open to others, or set"
                    " ARENA_DATABASE_URL",
                ) from error


def _admit(directory: Path, uid: int) -> None:
    entries = _read(directory)
    if entries.get((_USER, uid), 0) & entries.get((_MASK, _NOBODY), 0) & _PASS:
        return
    mask = entries.get((_MASK, _NOBODY), entries[_GROUP_OBJ, _NOBODY])
    entries[_USER, uid] = entries.get((_USER, uid), 0) | _PASS
    entries[_MASK, _NOBODY] = mask | _PASS
    packed = (_ENTRY.pack(tag, rights, who) for (tag, who), rights in sorted(entries.items()))
    os.setxattr(directory, _ACL, _VERSION + b"".join(packed))


def _read(directory: Path) -> dict[tuple[int, int], int]:
    """(tag, who) → rights; from the mode where there is no list (acl(5))."""
    try:
        raw = os.getxattr(directory, _ACL)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        mode = directory.stat().st_mode
        tags = (_USER_OBJ, 6), (_GROUP_OBJ, 3), (_OTHER, 0)
        return {(tag, _NOBODY): mode >> shift & 0o7 for tag, shift in tags}
    return {(tag, who): rights for tag, rights, who in _ENTRY.iter_unpack(raw[len(_VERSION) :])}
