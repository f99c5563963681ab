"""The work file: pages are stored whole, or not at all; what came twice counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus_export.exceptions import DiskError
from corpus_export.types import Reason, Reject
from corpus_export.workfile import Found, WorkFile
from tests.unit.corpus_export.builders import features_like


def found(number: int, **more: object) -> Found:
    values = {"run_id": f"run{number}", "problem_id": "p", "bucket": "shop", "axis": "A"}
    return Found(f"{number:064x}", **{**values, "features": features_like(), **more})  # type: ignore[arg-type]


@pytest.fixture
def work(tmp_path: Path) -> WorkFile:
    return WorkFile(tmp_path / "work.sqlite")


def test_a_page_that_fails_half_way_leaves_nothing(work: WorkFile) -> None:
    work.add([(found(1), b"row")], "one", {"read": 1})

    def page() -> Iterator[tuple[Found, bytes]]:
        yield found(2), b"row"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.add(page(), "two", {"read": 2})
    assert (work.cursor, work.state("read")) == ("one", "1")
    assert work.count("1") == 1


def test_it_is_found_again_when_it_is_opened_again(work: WorkFile, tmp_path: Path) -> None:
    work.add([(found(1), b"row")], "one", {})
    work.close()
    again = WorkFile(tmp_path / "work.sqlite")
    assert again.cursor == "one"
    assert [c.record_hash for p in again.problems() for c in p] == [found(1).record_hash]


def test_the_first_record_of_a_run_stays(work: WorkFile) -> None:
    other = Found("ff" * 32, run_id="run1", problem_id="p", features=features_like())
    work.add([(found(1), b"row"), (found(1), b"row"), (other, b"row")], "one", {})
    reasons = [(r.record_hash, r.reason) for r in work.rejects()]
    hashes = (found(1).record_hash, other.record_hash)
    assert reasons == [(digest, Reason.DUPLICATE) for digest in hashes]
    assert work.count("reason IS NULL") == 1


def test_records_without_a_run_are_no_duplicates(work: WorkFile) -> None:
    broken = [Found(f"{n:064x}", reason=Reason.UNREADABLE) for n in range(3)]
    work.add([(one, None) for one in broken], "one", {})
    assert [r.reason for r in work.rejects()] == [Reason.UNREADABLE] * 3


def test_problems_come_in_the_order_of_their_ids(work: WorkFile) -> None:
    page = [(found(n, problem_id=f"p{n % 3}"), b"row") for n in range(9)]
    work.add(page, "one", {})
    hashes = [[c.record_hash for c in problem] for problem in work.problems()]
    assert hashes == [[f"{n:064x}" for n in (k, k + 3, k + 6)] for k in range(3)]


def test_a_selection_can_be_made_again(work: WorkFile) -> None:
    work.add([(found(n, side="training"), b"%d" % n) for n in range(3)], "one", {})
    for _ in range(2):
        work.begin_selection()
        (candidates,) = list(work.problems())
        assert len(candidates) == 3
        work.keep(candidates[1].number, 1)
        work.keep(candidates[0].number, 2)
        work.refuse(candidates[2].number, Reject(Reason.RANKED_OUT, "third"))
        assert [packed for _, packed in work.selected("training", "A")] == [b"1", b"0"]
        assert [r.detail for r in work.rejects()] == ["third"]


def test_a_place_that_takes_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="nowhere"):
        WorkFile(tmp_path / "nowhere" / "work.sqlite")
