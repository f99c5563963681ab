"""The directory that a gateway's sockets lie in, and what killed gateways left of theirs.

The owner holds a file lock on its directory, which the kernel drops with the process,
however that ends. A directory whose lock is free is therefore nobody's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "arena-gateway-"
_UNFINISHED = "arena-new-"


class SocketDirectory:
    """A locked directory of this process, which only this user can enter."""

    def __init__(self, parent: Path | None = None) -> None:
        """Make one in `parent` (default: the system's temporary directory), and remove
        those of dead owners beside it. Raises OSError when none can be made."""
        home = parent or Path(tempfile.gettempdir())
        reclaim(home)
        fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=home))
        self._lock = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It gets the name that others reclaim by only once it is locked.
        self.path = fresh.with_name(PREFIX + fresh.name.removeprefix(_UNFINISHED))
        fresh.rename(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def reclaim(home: Path) -> list[Path]:
    """Remove the socket directories of this user in `home` whose owner is dead; say which."""
    removed = []
    for path in sorted(home.glob(PREFIX + "*")):
        with contextlib.suppress(OSError):  # someone else's, in use, or gone meanwhile
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
                    removed.append(path)
            finally:
                os.close(lock)
    return removed
