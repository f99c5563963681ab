"""The root that sandboxes share holds what agents may use, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.exceptions import IsolationError
from sandbox.isolation import root
from sandbox.isolation.root import Root, stage

pytestmark = pytest.mark.isolation


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Root:
    try:
        return stage(tmp_path_factory.mktemp("cache"))
    except IsolationError as error:
        pytest.skip(str(error))


def test_it_is_staged_once(staged: Root) -> None:
    made = staged.path.stat().st_mtime_ns
    assert stage(staged.path.parent.parent) == staged
    assert staged.path.stat().st_mtime_ns == made


def test_the_same_content_has_the_same_digest(staged: Root, tmp_path: Path) -> None:
    again = stage(tmp_path)
    assert again.path != staged.path
    assert again.digest == staged.digest


def test_a_root_that_nobody_uses_any_more_is_removed(tmp_path: Path) -> None:
    old = tmp_path / "root-0123"
    (old / "root").mkdir(parents=True)
    (tmp_path / "root-0123.lock").touch()
    kept = stage(tmp_path)
    assert not old.exists()
    assert kept.path.is_dir()


def test_all_of_it_can_be_read_by_all_and_written_by_its_owner_alone(staged: Root) -> None:
    for path in (staged.path, *staged.path.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode & 0o7777
            assert mode == (0o755 if path.is_dir() or mode & 0o100 else 0o644), path


def test_no_program_is_in_it_but_python(staged: Root) -> None:
    assert {path.name for path in (staged.path / "usr/bin").iterdir()} == {
        "python3",
        root.find_interpreter().executable.name,
    }
    assert not list(staged.path.rglob("dist-packages/*"))
    assert sorted(path.name for path in (staged.path / "sandbox/site").iterdir()) == [
        "certifi",
        "charset_normalizer",
        "idna",
        "requests",
        "urllib3",
    ]


def test_no_link_leads_out_of_it(staged: Root) -> None:
    for path in staged.path.rglob("*"):
        if path.is_symlink():
            target = os.readlink(path)
            assert target.startswith("/proc/self/fd") or not target.startswith("/"), path


def test_its_byte_code_is_taken_without_a_look_at_the_source(staged: Root) -> None:
    compiled = next((staged.path / "sandbox/kit/__pycache__").glob("runner.*.pyc")).read_bytes()
    assert int.from_bytes(compiled[4:8], "little") == 0b01  # PEP 552: hash-based, unchecked


def test_an_interpreter_that_is_missing_says_what_mends_it(tmp_path: Path) -> None:
    with pytest.raises(IsolationError) as caught:
        root.find_interpreter(tmp_path / "python3")
    assert "apt-get install" in str(caught.value.remedy)


def test_an_old_interpreter_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho \'[[3, 10, 4], "/usr/bin/python3", "/usr/lib"]\'\n')
    python.chmod(0o755)
    assert subprocess.run([python], check=True, capture_output=True).stdout
    with pytest.raises(IsolationError, match=r"3\.10\.4"):
        root.find_interpreter(python)
