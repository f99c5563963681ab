"""The `arena` command itself: its errors, its help, its options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from neurons.cli import COMMANDS, app
from sandbox.exceptions import ArenaError


def arena(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command.help or ""


def test_every_command_has_an_example_and_takes_json() -> None:
    root: Any = get_command(app)
    root.commands = {name: root.get_command(None, name) for name in COMMANDS}
    for path, text in _commands(root):
        assert f"Example: arena {path[0]}" in " ".join(text.split()), path
        assert "--json" in arena(*path, "--help").output, path


def test_an_error_is_one_line_and_its_remedy(tmp_path: Path) -> None:
    result = arena("catalog", "build", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "i"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error catalog.unreadable:")
    assert "Traceback" not in result.output


def test_debug_raises_the_error_of_any_command(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.jsonl")
    for command in (
        ("catalog", "search", missing, "x"),
        ("race", "run", "react", "--suite", missing, "--catalog", missing),
        ("conformance", missing),
    ):
        result = arena("--debug", *command)
        assert isinstance(result.exception, ArenaError), command


@pytest.mark.parametrize("place", ["no/such/place.json", "."])
def test_json_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = arena("catalog", "generate", "--products", "3", "--out", "w.jsonl", "--json", place)
    assert result.exit_code == 1
    assert "arena.unwritable_output" in result.stderr
    assert not (tmp_path / "w.jsonl").exists()


def test_json_on_standard_output_stands_alone(tmp_path: Path) -> None:
    out = str(tmp_path / "w.jsonl")
    result = arena("catalog", "generate", "--products", "3", "--out", out, "--json", "-")
    assert json.loads(result.stdout)["products"] == 3


def test_a_wrong_option_ends_with_2() -> None:
    assert arena("demo", "--problems", "0").exit_code == 2
    assert arena("nothing").exit_code == 2


def test_it_tells_its_version() -> None:
    assert arena("--version").stdout.startswith("arena ")
