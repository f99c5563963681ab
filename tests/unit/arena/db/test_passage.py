"""One user passes through closed directories, and nobody else does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from arena.db.passage import let_through

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other users")

GUEST, STRANGER = 54321, 54322


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A file that everyone may read below a directory that nobody may enter."""
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o700)
    file = tmp_path / "file"
    file.write_text("text")
    file.chmod(0o644)
    return file


def _may(uid: int, *command: str) -> bool:
    done = subprocess.run(
        command, user=uid, group=uid, extra_groups=[], capture_output=True, check=False
    )
    return done.returncode == 0


def test_the_guest_reads_below_and_a_stranger_does_not(closed: Path) -> None:
    assert not _may(GUEST, "cat", str(closed))
    let_through(closed, GUEST)
    assert _may(GUEST, "cat", str(closed))
    assert not _may(STRANGER, "cat", str(closed))


def test_the_guest_cannot_list_what_it_passes(closed: Path) -> None:
    let_through(closed, GUEST)
    assert not _may(GUEST, "ls", str(closed.parent))


def test_a_second_guest_is_added_to_the_first(closed: Path) -> None:
    let_through(closed, GUEST)
    let_through(closed, STRANGER)
    let_through(closed, STRANGER)
    assert _may(GUEST, "cat", str(closed))
    assert _may(STRANGER, "cat", str(closed))


def test_an_open_directory_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    let_through(tmp_path / "x", GUEST)
    assert os.listxattr(tmp_path) == []
