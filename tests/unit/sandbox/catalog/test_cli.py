from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from neurons.cli import app
from sandbox.catalog.lucene import missing
from tests.unit.sandbox.catalog.corpora import line, lines_file


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["catalog", *(str(arg) for arg in args)])


def output(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    file = lines_file(
        tmp_path / "a.jsonl",
        [
            line("1", "blue shirt", price=5, shop_id="x", service=["COD"], sold_count=3),
            line("2", "blue shirt [bold]\x1b[2J", price=9, shop_id="y"),
        ],
    )
    output(run("build", file, "--out", tmp_path / "index", "--json", "-"))
    return tmp_path / "index"


def test_build_reports_what_is_in_the_index(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1"), line("2", shop_id="t")])
    report = output(run("build", file, "--out", tmp_path / "index", "--json", "-"))
    assert (report["products"], report["shops"], report["skipped"]) == (2, 2, {})
    assert len(report["content_hash"]) == 64


def test_a_bad_line_fails_the_build_in_one_line_that_names_it(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1"), "{"])
    result = run("build", file, "--out", tmp_path / "index")
    assert result.exit_code == 1
    assert "catalog.broken_json" in result.output
    assert "line 2" in result.output.replace("\n", " ")
    assert "--skip-bad" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "index").exists()


def test_skip_bad_counts_by_reason(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1"), *["{"] * 30, line("1")])
    report = output(run("build", file, "--out", tmp_path / "i", "--skip-bad", "--json", "-"))
    assert report["skipped"] == {"catalog.broken_json": 30, "catalog.duplicate_id": 1}


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    assert run("build", file, "--out", tmp_path / "i", "--engine", "magic").exit_code == 1


@pytest.mark.skipif(missing() is None, reason="Lucene is installed here")
def test_lucene_that_is_not_installed_is_named_with_its_remedy(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "a.jsonl", [line("1")])
    result = run("build", file, "--out", tmp_path / "i", "--engine", "lucene")
    assert result.exit_code == 1
    assert "make lucene" in result.output


def test_search_filters_and_sorts(index: Path) -> None:
    def ids(*args: str) -> list[str]:
        return [
            row["product_id"] for row in output(run("search", index, "shirt", *args, "--json", "-"))
        ]

    assert ids() == ["1", "2"]
    assert ids("--sort", "pricedesc") == ["2", "1"]
    assert ids("--price", "6-") == ["2"]
    assert ids("--shop", "x") == ["1"]
    assert ids("--service", "COD") == ["1"]
    assert ids("--page", "2") == []


def test_a_sellers_text_reaches_the_terminal_harmless(index: Path) -> None:
    result = run("search", index, "shirt")
    assert result.exit_code == 0
    assert "\x1b[2J" not in result.output
    assert "[bold]" in result.output


def test_search_in_nothing_is_an_error(tmp_path: Path) -> None:
    assert run("search", tmp_path, "shirt").exit_code == 1


def test_generated_worlds_build_and_search(tmp_path: Path) -> None:
    out = tmp_path / "world.jsonl.gz"
    made = output(run("generate", "--products", 300, "--seed", 3, "--out", out, "--json", "-"))
    assert made["products"] == 300
    report = output(run("build", out, "--out", tmp_path / "index", "--json", "-"))
    assert report["products"] == 300
    assert output(run("search", tmp_path / "index", "shirt bag shoes", "--json", "-"))


@pytest.mark.parametrize("command", ["build", "generate", "search"])
def test_help_shows_an_example(command: str) -> None:
    assert f"arena catalog {command}" in run(command, "--help").output
