"""What a person is shown when something goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.exceptions import ArenaError
from sandbox.terminal import one_line_errors, write_json


def test_what_nobody_foresaw_is_one_line_that_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left, one_line_errors():
        raise KeyError("a\nb\x1b[31m")
    assert left.value.code == 1
    shown = capsys.readouterr().err
    assert "KeyError" in shown
    assert "arena --debug" in shown
    assert "\x1b[31m" not in shown
    assert "Traceback" not in shown


def test_an_error_of_the_system_names_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), one_line_errors():
        (tmp_path / "none").read_bytes()
    assert f"{tmp_path / 'none'}: No such file" in capsys.readouterr().err.replace("\n", "")


def test_debug_lets_everything_through() -> None:
    with pytest.raises(KeyError), one_line_errors(debug=lambda: True):
        raise KeyError("x")


def test_json_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="Is a directory"):
        write_json({}, tmp_path)
