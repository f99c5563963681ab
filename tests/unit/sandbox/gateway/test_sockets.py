"""Socket directories: locked while their owner lives, reclaimed when it is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sandbox.gateway.sockets import SocketDirectory, reclaim

OWNER = """
import sys
from pathlib import Path
from sandbox.gateway.sockets import SocketDirectory
directory = SocketDirectory(Path(sys.argv[1]))
(directory.path / "1.sock").touch()
print(directory.path, flush=True)
sys.stdin.read()
"""


def test_a_living_owners_directory_stays(tmp_path: Path) -> None:
    first = SocketDirectory(tmp_path)
    second = SocketDirectory(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()
    assert first.path.stat().st_mode & 0o777 == 0o700
    first.remove()
    second.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_owner_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        assert reclaim(tmp_path) == []
        owner.send_signal(signal.SIGKILL)
    assert (left / "1.sock").exists()
    mine = SocketDirectory(tmp_path)
    assert not left.exists()
    mine.remove()


def test_links_and_strangers_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "arena-gateway-link").symlink_to(target)
    (tmp_path / "arena-gateway-file").touch()
    (tmp_path / "other").mkdir()
    if os.geteuid() == 0:
        stranger = tmp_path / "arena-gateway-stranger"
        stranger.mkdir()
        os.chown(stranger, 12345, 12345)
    before = sorted(tmp_path.iterdir())
    assert reclaim(tmp_path) == []
    assert sorted(tmp_path.iterdir()) == before
