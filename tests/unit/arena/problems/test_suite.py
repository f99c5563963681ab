"""Suites: both shapes are read, and whatever is wrong is named with its place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.problems import suite
from arena.problems.suite import check_against, load_suite, load_suites, write_suite
from scoring.exceptions import ProblemError
from scoring.types import Bucket, Product
from tests.shared import SHARED, needs_shared

VOUCHER = {
    "voucher_type": "platform",
    "threshold": 100,
    "discount_type": "fixed",
    "face_value": 30,
    "budget": 90,
}


def line(query: str = "a red hat", **fields: Any) -> dict[str, Any]:
    return {"query": query, "reward": {"product_id": "591486855", "title": ["Red hat"]}} | fields


def written(tmp_path: Path, *lines: Any, name: str = "s.jsonl") -> Path:
    path = tmp_path / name
    texts = [text if isinstance(text, str) else json.dumps(text) for text in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def code_and_message(path: Path) -> tuple[str, str]:
    with pytest.raises(ProblemError) as caught:
        load_suite(path)
    return caught.value.code, caught.value.message


def test_json_lines_and_a_json_array_give_the_same_problems(tmp_path: Path) -> None:
    lines = [line(), line("two", reward=[line()["reward"]]), line("three", voucher=VOUCHER)]
    array = tmp_path / "s.json"
    array.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    packed = tmp_path / "s.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    loaded = load_suite(written(tmp_path, *lines))
    assert loaded.problems == load_suite(array).problems == load_suite(packed).problems
    assert [p.bucket for p in loaded.problems] == [Bucket.PRODUCT, Bucket.SHOP, Bucket.VOUCHER]
    assert loaded.counts() == dict.fromkeys(Bucket, 1)


def test_an_id_is_made_from_the_content_and_the_key_and_tells_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, line())
    (first,) = load_suite(path).problems
    (again,) = load_suite(written(tmp_path, line(difficulty="easy"), name="t.jsonl")).problems
    (keyed,) = load_suite(path, key=b"another").problems
    (other,) = load_suite(written(tmp_path, line("another"), name="u.jsonl")).problems
    assert first.problem_id == again.problem_id
    assert len({first.problem_id, keyed.problem_id, other.problem_id}) == 3
    assert "591486855" not in first.problem_id


def test_an_agent_is_told_id_query_and_category_only(tmp_path: Path) -> None:
    (problem,) = load_suite(written(tmp_path, line())).problems
    assert set(problem.for_agent().to_json()) == {"problem_id", "query", "category"}


@pytest.mark.parametrize(
    ("bad", "code", "words"),
    [
        ('{"query": "x",', suite.BROKEN_JSON, "broken JSON"),
        ("[1, 2", suite.BROKEN_JSON, "broken JSON"),
        ("17", "problem.bad_field", "JSON object"),
        (line(category="Basket"), "problem.unknown_bucket", "Basket"),
        (line(category="Shop"), "problem.unknown_bucket", "Product"),
        (line(category="Voucher"), "problem.voucher_incomplete", "voucher is missing"),
        (line(voucher=VOUCHER | {"budget": None}), "problem.voucher_incomplete", "voucher.budget"),
        (
            line(voucher=VOUCHER | {"face_value": None}),
            "problem.voucher_incomplete",
            "voucher.face_value",
        ),
        (
            line(voucher=VOUCHER | {"discount_type": "percentage", "discount": 0.1}),
            "problem.voucher_incomplete",
            "voucher.cap",
        ),
        (line(voucher=VOUCHER | {"budget": float("nan")}), suite.BROKEN_JSON, "NaN"),
        (line(voucher=VOUCHER | {"budget": True}), "problem.bad_field", "voucher.budget"),
        (line(voucher=VOUCHER | {"budget": -1}), "problem.bad_field", "voucher.budget"),
        (line(voucher=VOUCHER | {"voucher_type": "gift"}), "problem.bad_field", "voucher_type"),
        (line(voucher=[]), "problem.bad_field", "voucher"),
        ({"reward": {}}, "problem.missing_field", "query"),
        ({"query": "x"}, "problem.missing_field", "reward"),
        (line("  "), "problem.bad_field", "query"),
        (line(reward={"title": ["x"]}), "problem.missing_field", "reward.product_id"),
        (line(reward=[]), "problem.bad_field", "reward"),
        (line(reward=[line()["reward"], 3]), "problem.bad_field", "reward[1]"),
        (
            line(reward={"product_id": "1", "price": [{"between": [1]}]}),
            "problem.bad_field",
            "reward.price[0].between",
        ),
        (
            line(reward={"product_id": "1", "price": [{"about": [1, 2]}]}),
            "problem.bad_field",
            "about",
        ),
        (
            line(reward={"product_id": "1", "price": [{"between": [1, 10**400]}]}),
            "problem.bad_field",
            "finite",
        ),
        (line("\ud800"), suite.BROKEN_JSON, "surrogate"),
        (line("a\0b"), suite.BROKEN_JSON, "NUL"),
        (line(problem_id="for-591486855"), suite.REVEALING_ID, "product_id"),
        (line(problem_id="../../x\n"), "problem.bad_field", "problem_id"),
    ],
)
def test_a_bad_line_is_named_with_file_line_and_field(
    tmp_path: Path, bad: Any, code: str, words: str
) -> None:
    found, message = code_and_message(written(tmp_path, line("fine"), "", bad))
    assert found == code
    assert f"{tmp_path / 's.jsonl'}, line 3" in message
    assert words in message


def test_a_bad_item_of_an_array_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps([line(), {"query": "x"}]), encoding="utf-8")
    assert code_and_message(path) == (
        "problem.missing_field",
        f"{path}, item 2: problem.reward is missing",
    )


def test_a_problem_that_stands_twice_is_named_with_both_places(tmp_path: Path) -> None:
    code, message = code_and_message(written(tmp_path, line(), line("other"), line()))
    assert code == suite.DUPLICATE
    assert "line 3" in message
    assert "line 1" in message


def test_a_problem_in_two_files_is_an_error(tmp_path: Path) -> None:
    paths = [written(tmp_path, line()), written(tmp_path, line(), name="t.jsonl")]
    with pytest.raises(ProblemError, match=r"t\.jsonl.*stands already in .*s\.jsonl"):
        load_suites(paths)


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    assert code_and_message(tmp_path / "absent.jsonl")[0] == suite.UNREADABLE
    assert code_and_message(written(tmp_path, ""))[0] == suite.EMPTY
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(json.dumps(line()).encode() * 50)[:-20])
    assert code_and_message(cut)[0] == suite.UNREADABLE
    raw = tmp_path / "latin.jsonl"
    raw.write_bytes(b'{"query": "x"}\n\xff\xfe\n')
    assert "line 2: not UTF-8" in code_and_message(raw)[1]


def test_a_text_may_name_the_escape_of_a_nul_byte(tmp_path: Path) -> None:
    text = "a cap with the print \\u0000"
    (problem,) = load_suite(written(tmp_path, line(text))).problems
    assert problem.query == text


def test_a_text_may_hold_unicode_line_separators(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(line("a\u2028b"), ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert load_suite(path).problems[0].query == "a\u2028b"


class OneProduct:
    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        known = Product("591486855", "1", "Red hat", 5.0)
        return {i: known for i in product_ids if i == "591486855"}


def test_a_reward_that_the_catalogue_lacks_is_named(tmp_path: Path) -> None:
    check_against(load_suite(written(tmp_path, line())).problems, OneProduct())
    unknown = load_suite(written(tmp_path, line("b", reward={"product_id": "42424242"})))
    with pytest.raises(ProblemError, match="42424242") as caught:
        check_against(unknown.problems, OneProduct())
    assert caught.value.code == suite.UNKNOWN_PRODUCT


@needs_shared
@pytest.mark.parametrize(
    "name", ["product.jsonl", "shop.jsonl", "voucher.jsonl", "suite_sample.json"]
)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_what_is_written_is_read_back_the_same(tmp_path: Path, name: str, suffix: str) -> None:
    problems = load_suite(SHARED / "shoppingbench" / name).problems
    path = tmp_path / f"out{suffix}"
    assert write_suite(problems, path) == len(problems)
    assert load_suite(path).problems == problems
    first = path.read_bytes()
    write_suite(problems, path)
    assert path.read_bytes() == first


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_file_is_read_or_refused_with_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    with pytest.raises(ProblemError, match=r"any\.jsonl"):
        load_suite(path)


LINES = st.sampled_from(
    [json.dumps(line()), '{"query": "b", "reward": {}}', "", "\ufeff", "[", "]"]
)


@given(st.lists(LINES, max_size=4))
def test_any_mixture_of_lines_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mixed.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        assert len(load_suite(path).problems) == 1
    except ProblemError as error:
        assert "mixed.jsonl" in error.message  # noqa: PT017 - both ways are right
