"""The embedded server: shared, restarted, and clean after a crash."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import open_database
from arena.exceptions import DatabaseError, Fault
from arena.settings import ArenaSettings

pytestmark = pytest.mark.database


@pytest.fixture
def data_dir() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="arena-test-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def _server_pid(directory: Path) -> int:
    return int((directory / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def _alive(pid: int) -> bool:
    """Whether it runs; a zombie that nobody collects does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def test_it_starts_in_the_data_directory_and_stops_with_its_last_user(
    data_dir: Path,
) -> None:
    async with open_database(ArenaSettings(database_url=None, data_dir=data_dir)) as database:
        await database.ready()
        pid = _server_pid(data_dir)
        assert _alive(pid)
        assert str(data_dir) in database.where
    assert not _alive(pid)


async def test_it_runs_until_the_last_user_of_one_process_leaves(data_dir: Path) -> None:
    settings = ArenaSettings(database_url=None, data_dir=data_dir)
    async with open_database(settings) as outer:
        await outer.ready()
        async with open_database(settings) as inner:
            await inner.ready()
        pid = _server_pid(data_dir)
        assert _alive(pid)
        await outer.ready()
        assert _server_pid(data_dir) == pid
    assert not _alive(pid)


async def test_it_is_started_again_when_it_went_away(data_dir: Path) -> None:
    async with open_database(ArenaSettings(database_url=None, data_dir=data_dir)) as database:
        await database.ready()
        first = _server_pid(data_dir)
        os.kill(first, 3)  # SIGQUIT: Postgres stops at once, as after a crash
        _wait_until_gone(first)
        await database.ready()
        assert _server_pid(data_dir) != first


async def test_one_that_was_killed_outright_is_started_again_by_whoever_comes(
    data_dir: Path,
) -> None:
    """Nobody may have collected it, and its socket's lock names it."""
    async with open_database(ArenaSettings(database_url=None, data_dir=data_dir)) as database:
        await database.ready()
        first = _server_pid(data_dir)
        os.kill(first, 9)
        _wait_until_gone(first)
        other = EmbeddedPostgres(data_dir)
        other.start()
        assert _server_pid(data_dir) != first
        await database.ready()
        other.stop()


def test_users_that_were_killed_do_not_keep_it_running(data_dir: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path;"
        "from arena.db.embedded import EmbeddedPostgres;"
        "EmbeddedPostgres(Path(sys.argv[1])).start(); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(data_dir)])
    assert killed.returncode == -9
    pid = _server_pid(data_dir)
    assert _alive(pid)
    server = EmbeddedPostgres(data_dir)
    server.start()
    assert _server_pid(data_dir) == pid
    server.stop()
    assert not _alive(pid)


def test_a_folder_that_was_removed_after_the_server_stopped_stays_away(data_dir: Path) -> None:
    script = (
        "import shutil, sys; from pathlib import Path;"
        "from arena.db.embedded import EmbeddedPostgres;"
        "servers = [EmbeddedPostgres(Path(sys.argv[1])) for _ in range(2)];"
        "[server.start() for server in servers]; [server.stop() for server in servers];"
        "shutil.rmtree(sys.argv[1])"
    )
    command = [sys.executable, "-W", "ignore", "-c", script, str(data_dir)]
    assert subprocess.run(command).returncode == 0
    assert not data_dir.exists()


def test_a_stale_pid_file_that_names_another_program_is_not_taken_for_a_server(
    data_dir: Path,
) -> None:
    server = EmbeddedPostgres(data_dir)
    server.start()
    pid_file = data_dir / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    (data_dir / "postgres" / ".handle_pids.json").write_text(json.dumps([2**22 + 1]))
    server = EmbeddedPostgres(data_dir)
    server.start()
    assert _server_pid(data_dir) != os.getpid()
    server.stop()


def test_a_path_too_long_for_a_socket_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        EmbeddedPostgres(tmp_path / ("x" * 100)).start()
    assert caught.value.fault is Fault.CALLER
    assert "ARENA_DATA_DIR" in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
async def test_the_directories_above_it_stay_closed_to_others(data_dir: Path) -> None:
    home = data_dir / "home"
    below = home / "work" / "var"
    below.mkdir(parents=True)
    home.chmod(0o700)
    (home / "work").chmod(0o750)
    async with open_database(ArenaSettings(database_url=None, data_dir=below)) as database:
        await database.ready()
    for directory in (data_dir, home, home / "work"):
        assert directory.stat().st_mode & 0o007 == 0, directory
        assert directory.stat().st_mode & 0o020 == 0, directory


def _wait_until_gone(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        select.select([descriptor], [], [], 30)
    finally:
        os.close(descriptor)
