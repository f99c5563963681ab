"""The tools answer what the upstream tools answer, to the last numeric type."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing

import pytest

from sandbox.catalog.builder import build_index
from sandbox.catalog.interface import Catalog
from sandbox.catalog.native import NativeCatalog
from sandbox.gateway import wire
from sandbox.tools import TOOL_NAMES, call_tool
from tests.shared import SHARED, needs_shared

pytestmark = needs_shared


def _lines(name: str) -> list[dict[str, object]]:
    text = (SHARED / "vectors" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    directory = tmp_path_factory.mktemp("catalog") / "index"
    build_index([SHARED / "shoppingbench" / "documents.jsonl.gz"], directory)
    with closing(NativeCatalog(directory)) as opened:
        yield opened


def test_every_tool_answers_as_upstream(catalog: Catalog) -> None:
    wrong = defaultdict(list)
    for line in _lines("tools.jsonl"):
        tool, args = str(line["tool"]), line["args"]
        assert isinstance(args, dict)
        # Through JSON text, so that 5 and 5.0, and True and 1, differ.
        got = json.dumps(call_tool(tool, args, catalog), sort_keys=True)
        if got != json.dumps(line["expected"], sort_keys=True):
            wrong[tool].append((args, got))
    assert not wrong
    assert {line["tool"] for line in _lines("tools.jsonl")} == set(TOOL_NAMES)


def test_the_wire_decodes_once_and_answers_in_lucenes_order(catalog: Catalog) -> None:
    for line in _lines("wire.jsonl"):
        found = wire.answer(wire.parse_target(str(line["get"])), catalog)
        assert isinstance(found, list)
        ids = [item["product_id"] for item in found if isinstance(item, dict)]
        assert ids == line["expected_product_ids"], line["get"]
