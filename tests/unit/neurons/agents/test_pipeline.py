"""The pipeline reads a query by itself. It imports what only a sandbox has on its path."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import sandbox.agent_kit.arena_client
from neurons.cli import SHIPPED_AGENTS


@pytest.fixture(scope="module")
def pipeline() -> Iterator[ModuleType]:
    """The agent, loaded as a sandbox loads it: with `arena_client` in reach."""
    sys.modules["arena_client"] = sandbox.agent_kit.arena_client
    spec = importlib.util.spec_from_file_location("agent", SHIPPED_AGENTS["pipeline"])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["arena_client"]


def test_price_and_services_are_taken_out_of_the_words(pipeline: ModuleType) -> None:
    item = pipeline.read_item("a red mug from LazMall with free shipping, above 1,200 PHP")
    assert item == {
        "words": ["red", "mug"],
        "price": "1200-",
        "services": ["official", "freeShipping"],
    }


def test_a_list_becomes_items_and_a_product_stays_one(pipeline: ModuleType) -> None:
    query = "Find a shop with: (1) a tin drum; (2) a wooden flute in C"
    assert len(pipeline.read_items(query, "Shop")) == 2
    assert len(pipeline.read_items("a drum, a red one, and a big one", "Product")) == 1


def test_a_voucher_is_read(pipeline: ModuleType) -> None:
    query = (
        "My budget is only `500`, but the voucher applies to products from the same shop, over "
        "`300`, with `15%` and a cap of `45`"
    )
    voucher = pipeline.read_voucher(query)
    assert voucher["same_shop"]
    assert pipeline.after_voucher(voucher, [400.0]) == 355.0
    assert pipeline.after_voucher(voucher, [200.0]) == 200.0
    assert pipeline.read_voucher("a drum") is None


@pytest.mark.parametrize("name", sorted(SHIPPED_AGENTS))
def test_a_shipped_agent_is_one_file_that_imports_no_room(name: str) -> None:
    source = Path(SHIPPED_AGENTS[name]).read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    rooms = ("sandbox", "scoring", "arena.", "arena ", "neurons", "judge")
    assert not [line for line in lines if line.split(" ", 1)[1].startswith(rooms)]
