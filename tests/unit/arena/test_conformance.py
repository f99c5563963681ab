"""`arena conformance` agrees with the shared vectors, and notices when it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from arena.conformance import app
from arena.conformance.judging import judge_files, needs_catalog, same
from arena.conformance.vectors import Kind, read_vectors
from arena.exceptions import ConformanceError
from sandbox.catalog import Catalog, open_catalog
from tests.shared import SHARED, needs_shared

GOOD: dict[Kind, dict[str, Any]] = {
    Kind.ANALYSIS: {"text": "Red hats", "tokens": ["red", "hat"]},
    Kind.COEFFICIENT: {"quality": 0.4, "expected": 0.65},
    Kind.WEIGHTS: {
        "finishers": [],
        "metagraph_hotkeys": ["a", "b"],
        "top_share": 0.25,
        "burn_share": 0.75,
        "expected": {"weights": [65535, 0]},
    },
    Kind.SCORING: {
        "bucket": "product",
        "problem": {"query": "q", "reward": {"product_id": "7"}},
        "products": [],
        "dialogue": [],
        "title_model": None,
        "expected": {"format": 0.0, "length": 0},
        "success": False,
    },
}
WRONG: dict[Kind, dict[str, Any]] = {
    Kind.ANALYSIS: {"tokens": ["red", "hats"]},
    Kind.COEFFICIENT: {"expected": 0.6501},
    Kind.WEIGHTS: {"expected": {"error": True}},
    Kind.SCORING: {"success": True},
}


def written(tmp_path: Path, *lines: Any, name: str = "vectors.jsonl") -> Path:
    path = tmp_path / name
    texts = [text if isinstance(text, str) else json.dumps(text) for text in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def call(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("kind", list(GOOD))
def test_a_kind_is_known_by_its_fields_and_a_wrong_line_is_found(
    tmp_path: Path, kind: Kind
) -> None:
    path = written(tmp_path, GOOD[kind], GOOD[kind] | WRONG[kind], GOOD[kind])
    file = read_vectors(path)
    assert file.kind is kind
    assert not needs_catalog(file)
    tally = judge_files([file], None)[kind]
    assert (tally.passed, tally.failed) == (2, 1)
    assert tally.differences[0].line == 2
    code, out, _ = call(path, "--json", "-")
    assert code == 1
    assert json.loads(out)["kinds"][kind.value]["failed"] == 1


def test_agreement_exits_with_0_and_prints_the_counts(tmp_path: Path) -> None:
    paths = [written(tmp_path, line, name=f"{kind}.jsonl") for kind, line in GOOD.items()]
    code, _, err = call(*paths)
    assert code == 0
    for kind in GOOD:
        assert kind.value in err


def test_only_one_kind_may_be_judged(tmp_path: Path) -> None:
    good = written(tmp_path, GOOD[Kind.COEFFICIENT], name="a.jsonl")
    bad = written(tmp_path, GOOD[Kind.ANALYSIS] | WRONG[Kind.ANALYSIS], name="b.jsonl")
    assert call(good, bad, "--only", "coefficient")[0] == 0
    assert call(good, bad)[0] == 1
    with pytest.raises(ConformanceError, match="weights"):
        call(good, bad, "--only", "weights")


@pytest.mark.parametrize(
    "line",
    [
        {"get": "/search/find_product?q=x", "expected_product_ids": []},
        {"args": {"q": "x"}, "expected_product_ids": []},
        {"tool": "terminate", "args": {}, "expected": "x"},
        {k: v for k, v in GOOD[Kind.SCORING].items() if k != "products"},
    ],
)
def test_a_kind_that_wants_a_catalogue_names_the_option(
    tmp_path: Path, line: dict[str, Any]
) -> None:
    with pytest.raises(ConformanceError, match="--catalog"):
        call(written(tmp_path, line))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "holds no vector"),
        (["{"], "line 1: broken JSON"),
        (["[1]"], "line 1: expected a JSON object"),
        ([{"hello": 1}], "no kind of vector"),
        ([GOOD[Kind.ANALYSIS], GOOD[Kind.WEIGHTS]], "line 2: is no analysis vector"),
        ([{"text": 3, "tokens": []}], "line 1: analysis vector, field text"),
        ([{"quality": "high", "expected": 1}], "field quality"),
        ([GOOD[Kind.SCORING] | {"problem": {"query": "q"}}], "line 1: problem.reward is missing"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, lines: list[Any], words: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        call(written(tmp_path, *lines))
    assert words in caught.value.message
    assert "vectors.jsonl" in caught.value.message


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match="cannot be read"):
        call(tmp_path / "absent.jsonl")


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_a_value_is_the_same_as_its_own_json(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        (0.333333333, 1 / 3, True),
        (0.3333, 1 / 3, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, False),
    ],
)
def test_sameness_is_of_json_and_not_of_python(expected: Any, got: Any, equal: bool) -> None:
    assert same(expected, got) is equal


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        return open_catalog(SHARED / "shoppingbench" / "documents.jsonl.gz")


@needs_shared
@pytest.mark.parametrize("kind", list(Kind))
def test_every_shared_vector_agrees(kind: Kind, catalogue: Catalog) -> None:
    file = read_vectors(SHARED / "vectors" / f"{kind.value}.jsonl")
    tally = judge_files([file], catalogue)[kind]
    assert tally.differences == []
    assert tally.passed == len(file.vectors) > 0
