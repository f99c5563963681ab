from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.training.evaluation.builders import CRASH, result
from training.evaluation.results import ResultFile, latest, read_results
from training.exceptions import EvaluationError


def test_results_are_read_back_as_they_were(tmp_path: Path) -> None:
    made = [
        result("a", True),
        result("a", None, 1),
        result("b\ud800\n", False, failure=CRASH, price=None),
    ]
    file = ResultFile(tmp_path / "results.jsonl")
    for one in made:
        file.add(one)
    file.close()
    found = read_results(tmp_path / "results.jsonl")
    assert found[:2] == tuple(made[:2])
    assert found[2].outcome == made[2].outcome


@given(cut=st.integers(0, 400))
@settings(max_examples=40, deadline=None)
def test_a_half_written_last_line_is_dropped_and_the_file_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("r") / "results.jsonl"
    file = ResultFile(path)
    file.add(result("a", True))
    whole = path.stat().st_size
    file.add(result("b", False))
    file.close()
    path.write_bytes(path.read_bytes()[: whole + cut])
    ids = ["a", "b"] if path.read_bytes().count(b"\n") == 2 else ["a"]
    again = ResultFile(path)
    assert [r.problem_id for r in again.loaded] == ids
    again.add(result("c", True))
    again.close()
    assert [r.problem_id for r in read_results(path)] == [*ids, "c"]


def test_a_sample_run_again_counts_once() -> None:
    kept = latest([result("a", None), result("a", True), result("a", False, 1)])
    assert len(kept) == 2
    assert kept["a", 0].success


@pytest.mark.parametrize("content", [b"{}\n", b"\xff\n", b'{"schema": 2}\n', b"[]\n"])
def test_what_is_no_result_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.jsonl").write_bytes(content)
    with pytest.raises(EvaluationError, match="no file of evaluation results"):
        read_results(tmp_path / "results.jsonl")
