"""`arena corpus`: what it says, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neurons.cli import main
from tests.unit.corpus_export.days import Day, full_day


def arena(*arguments: str) -> int:
    """Run a command line; its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(["corpus", *arguments])
    return int(stopped.value.code or 0)


def exported(day: Day, out: Path, *more: str) -> int:
    where = ("--race", str(day.write()), "--catalog", str(day.catalog), "--out", str(out))
    return arena("export", *where, "--workers", "1", *more)


@pytest.mark.parametrize("command", ["export", "verify", "stats"])
def test_every_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert arena(command, "--help") == 0
    assert f"Example: arena corpus {command}" in capsys.readouterr().out


def test_export_verify_and_stats_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert exported(full_day(tmp_path / "day"), out, "--json", str(tmp_path / "a.json")) == 0
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["made"] is True
    assert told["manifest"]["funnel"]["rows"] == 18
    assert arena("verify", str(out), "--json", str(tmp_path / "b.json")) == 0
    assert json.loads((tmp_path / "b.json").read_text())["findings"] == []
    assert arena("stats", str(out), "--json", str(tmp_path / "c.json")) == 0
    assert json.loads((tmp_path / "c.json").read_text())["kept"]["trajectories"] == 18
    assert "distinct sequences of tools" in capsys.readouterr().err


def test_verify_fails_on_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    exported(full_day(tmp_path / "day"), out)
    (out / "extra").write_text("")
    assert arena("verify", str(out), "--json", str(tmp_path / "found.json")) == 1
    assert "file.unknown" in capsys.readouterr().err
    (finding,) = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert (finding["code"], finding["where"]) == ("file.unknown", "extra")


@pytest.mark.parametrize("command", ["verify", "stats"])
def test_no_export_is_one_line(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert arena(command, str(tmp_path)) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--day", "2031-01-01"), "corpus.empty_day"),
        (("--tokenizer", "/nowhere"), "corpus.bad_tokenizer"),
        (("--partition", "/nowhere/partition.json"), "partition"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exported(full_day(tmp_path / "day"), tmp_path / "out", *more) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_the_database_needs_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = Day(tmp_path / "day")
    assert arena("export", "--catalog", str(day.catalog), "--out", str(tmp_path / "out")) == 1
    assert "--day" in capsys.readouterr().err


def test_a_directory_without_records_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = Day(tmp_path / "day")
    where = ("--catalog", str(day.catalog), "--out", str(tmp_path / "out"))
    assert arena("export", "--race", str(tmp_path), *where) == 1
    assert "no race's directory" in capsys.readouterr().err
