"""`arena problems`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.problems.cli import app
from arena.problems.suite import load_suite
from scoring.exceptions import ArenaError
from scoring.types import Bucket
from tests.unit.arena.problems.world import World


def catalogue_of(world: World, path: Path) -> Path:
    """Write a world as a catalogue file."""
    with path.open("w", encoding="utf-8") as file:
        for product in world.products(world.ids()).values():
            values = [v for option in product.sku_options.values() for v in option.values()]
            item = {
                "product_id": product.product_id,
                "shop_id": product.shop_id,
                "title": product.title or "untitled",
                "price": product.price,
                "service": list(product.service),
                "sold_count": 1,
                "short_description": "",
                "description": "",
                "sku_options": dict(product.sku_options),
                "attributes": {k: list(v) for k, v in product.attributes.items()},
            }
            contents = f"{product.title}\n{' '.join(values)}\n"
            line = {"id": product.product_id, "contents": contents, "product": item}
            file.write(json.dumps(line) + "\n")
    return path


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue file of the small world."""
    return catalogue_of(World(150), tmp_path_factory.mktemp("catalogue") / "documents.jsonl")


@pytest.fixture(autouse=True)
def data_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path_factory.getbasetemp() / "data"))


def call(*arguments: str | Path) -> str:
    """Standard output of a call that does what was asked; an ArenaError is raised."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_problems_are_made_listed_and_checked(catalogue: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.jsonl"
    made = call(
        *("synthesise", "--catalog", catalogue, "--count", "7", "--seed", "4"),
        *("--out", out, "--json", "-"),
    )
    assert json.loads(made)["by_bucket"] == {"product": 3, "shop": 2, "voucher": 2}
    assert len(load_suite(out).problems) == 7
    listed = json.loads(call("list", out, "--catalog", catalogue, "--json", "-"))
    assert listed["suites"][0]["problems"] == 7


def test_the_buckets_can_be_asked_for_one_by_one(catalogue: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.jsonl"
    call("synthesise", "--catalog", catalogue, "--bucket", "shop=2, voucher=1", "--out", out)
    assert list(load_suite(out).counts().values()) == [0, 2, 1]
    assert load_suite(out).problems[-1].bucket is Bucket.VOUCHER


@pytest.mark.parametrize("bucket", ["basket=3", "shop", "shop=-1", "shop=x", "shop=0", ""])
def test_a_bucket_option_that_is_none_is_named(
    catalogue: Path, tmp_path: Path, bucket: str
) -> None:
    with pytest.raises(ArenaError, match="--bucket"):
        call(
            *("synthesise", "--catalog", catalogue, "--out", tmp_path / "x", "--bucket", bucket),
        )


def test_a_place_that_cannot_be_written_is_named(catalogue: Path, tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="cannot be written"):
        call(
            *("synthesise", "--catalog", catalogue, "--count", "1"),
            *("--out", tmp_path / "absent" / "x.jsonl"),
        )


def test_a_suite_of_another_catalogue_is_refused(catalogue: Path, tmp_path: Path) -> None:
    suite = tmp_path / "s.jsonl"
    suite.write_text('{"query": "q", "reward": {"product_id": "4242424242"}}\n')
    with pytest.raises(ArenaError, match="4242424242"):
        call("list", suite, "--catalog", catalogue)


@pytest.mark.parametrize("command", ["synthesise", "list", "import", "retire", "rotate"])
def test_help_shows_an_example(command: str) -> None:
    assert "Example: arena problems" in call(command, "--help")
