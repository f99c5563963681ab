"""A corpus is proven before it is learnt from, and nothing of evaluation reaches a gradient."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from arena.problems.partition import Partition, read_partition
from arena.problems.pools import Side
from tests.unit.training.small import row
from training.corpus import Guard, hold_out, matched, open_corpora, open_corpus
from training.exceptions import CorpusRefusedError, GuardError


def copied(corpus: Path, to: Path) -> Path:
    return shutil.copytree(corpus, to / "copy")


def test_training_rows_are_those_of_the_training_side(day_corpus: Path) -> None:
    corpus = open_corpus(day_corpus)
    partition = read_partition(day_corpus / "partition.json")
    learnt = {str(r["problem_id"]) for r in corpus.train()}
    measured = {str(r["problem_id"]) for r in corpus.evaluation()}
    assert learnt
    assert measured
    assert learnt <= set(partition.problems(Side.TRAINING))
    assert measured <= set(partition.problems(Side.EVALUATION))
    assert len(corpus.hash) == 64


def test_a_corpus_of_another_schema_is_refused_by_its_schema(
    day_corpus: Path, tmp_path: Path
) -> None:
    copy = copied(day_corpus, tmp_path)
    manifest = copy / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"corpus-1"', b'"corpus-9"'))
    with pytest.raises(CorpusRefusedError, match=r"corpus-9.*corpus-1") as caught:
        open_corpus(copy)
    assert caught.value.remedy


def test_a_corpus_that_does_not_verify_is_refused_with_the_first_finding(
    day_corpus: Path, tmp_path: Path
) -> None:
    copy = copied(day_corpus, tmp_path)
    path = copy / "train" / "axis_a.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorpusRefusedError, match=r"train/axis_a\.parquet") as caught:
        open_corpus(copy)
    assert "arena corpus verify" in str(caught.value)
    assert "\n" not in caught.value.message


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusRefusedError):
        open_corpus(tmp_path)


def guard_of(corpus: Path) -> tuple[Guard, Partition]:
    partition = read_partition(corpus / "partition.json")
    guard = Guard()
    guard.add(partition)
    return guard, partition


def test_a_problem_of_evaluation_is_refused_by_name(day_corpus: Path) -> None:
    guard, partition = guard_of(day_corpus)
    problem = partition.problems(Side.EVALUATION)[0]
    standing = partition.standing_of(problem)
    assert standing is not None
    with pytest.raises(GuardError, match=f"{problem}.*evaluation"):
        guard.admit(problem, standing.cluster)
    with pytest.raises(GuardError, match=standing.cluster):
        guard.admit("another", standing.cluster)
    with pytest.raises(GuardError, match=standing.cluster):
        guard.admit_sample(standing.cluster, "row")


def test_a_problem_that_nobody_placed_is_refused(day_corpus: Path) -> None:
    guard, _ = guard_of(day_corpus)
    with pytest.raises(GuardError, match="no partition"):
        guard.admit("never heard of", "c")


def test_what_one_partition_forbids_another_does_not_allow(day_corpus: Path) -> None:
    guard, partition = guard_of(day_corpus)
    problem = partition.problems(Side.TRAINING)[0]
    standing = partition.standing_of(problem)
    assert standing is not None
    guard.admit(problem, standing.cluster)
    guard.forbidden_problems[problem] = Side.NEVER
    with pytest.raises(GuardError, match="never_touch"):
        guard.admit(problem, standing.cluster)


def test_a_later_partition_refuses_rows_that_a_corpus_still_holds(
    day_corpus: Path, tmp_path: Path
) -> None:
    """The corpus proves right by its own partition; a newer one holds a row for evaluation."""
    rows = list(open_corpus(day_corpus).train())
    problem = str(rows[0]["problem_id"])
    text = (day_corpus / "partition.json").read_text()
    assert problem in text
    (corpus,) = open_corpora([day_corpus])
    corpus.guard.forbidden_clusters[str(rows[0]["cluster"])] = Side.EVALUATION
    with pytest.raises(GuardError):
        list(corpus.train())


def test_held_out_rows_are_whole_clusters_whatever_else_is_there() -> None:
    rows = [row(n, cluster=f"c{n // 2}") for n in range(200)]
    learnt, held = hold_out(rows, 0.3, seed=1)
    assert 30 < len(held) < 90
    assert not {str(r["cluster"]) for r in learnt} & {str(r["cluster"]) for r in held}
    again = hold_out(reversed(rows[:100]), 0.3, seed=1)[1]
    assert {str(r["cluster"]) for r in again} == {str(r["cluster"]) for r in held[: len(again)]}
    assert hold_out(rows, 0.3, seed=2)[1] != held


def test_matched_rows_are_as_many_of_each_bucket() -> None:
    one = [row(n, bucket="product" if n < 8 else "shop") for n in range(10)]
    other = [row(100 + n, bucket="product" if n < 3 else "voucher") for n in range(9)]
    left, right = matched(one, other, seed=0)
    assert [r["bucket"] for r in left] == [r["bucket"] for r in right] == ["product"] * 3
    assert matched(list(reversed(one)), other, seed=0)[0] == left


def test_matched_rows_are_of_the_same_problems_when_a_race_is_run_again() -> None:
    one, few = [row(n) for n in range(10)], [row(100 + n) for n in range(3)]
    # Another run has other times, and so other hashes.
    again = [r | {"record_hash": hashlib.sha256(str(r).encode()).hexdigest()} for r in one]
    left, _ = matched(one, few, seed=0)
    anew, _ = matched(again, few, seed=0)
    assert [r["problem_id"] for r in anew] == [r["problem_id"] for r in left]
