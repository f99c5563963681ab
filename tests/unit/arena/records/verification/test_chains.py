"""Chains: the order in which seals come changes nothing; what is missing is named."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from arena.records.verification.chains import ChainChecker
from arena.records.verification.findings import Check, Report
from arena.runs.seal import Sealed
from arena.runs.signing import KeypairSigner
from tests.unit.arena.builders import problem, record, seal

LENGTH = 9
CHAIN: list[Sealed] = [
    one.sealed for one in seal(*[record(problem(), run_id=str(i)).encode() for i in range(LENGTH)])
]


def checked(order: list[int], *, whole: bool = True, anchors: tuple[int, ...] = ()) -> Report:
    report = Report()
    checker = ChainChecker(report, whole=whole)
    for number in anchors:
        add(checker, number, anchor=True)
    for number in order:
        add(checker, number)
    checker.finish()
    return report


def add(checker: ChainChecker, number: int, *, anchor: bool = False) -> None:
    sealed = CHAIN[number - 1]
    checker.add(f"place {number}", sealed.seal, bytes.fromhex(sealed.hash), anchor=anchor)


def found(report: Report) -> list[str]:
    return [finding.code.value for finding in report.findings]


@given(st.permutations(range(1, LENGTH + 1)))
def test_a_whole_chain_holds_in_whatever_order_it_comes(order: list[int]) -> None:
    report = checked(order)
    assert found(report) == []
    assert report.tallies[Check.CHAIN].passed == LENGTH - 1


@settings(max_examples=200)
@given(st.permutations(range(1, LENGTH + 1)), st.sets(st.integers(1, LENGTH - 1), min_size=1))
def test_every_gap_is_named_once(order: list[int], dropped: set[int]) -> None:
    report = checked([n for n in order if n not in dropped])
    runs = [n for n in dropped if n - 1 not in dropped]
    assert found(report) == ["chain.gap"] * len(runs)
    told = " ".join(finding.detail for finding in report.findings)
    for first in runs:
        last = next(n for n in range(first, LENGTH + 1) if n + 1 not in dropped)
        assert (f"seal {first} of" if first == last else f"seals {first} to {last} of") in told


@given(st.permutations(range(1, LENGTH + 1)), st.integers(1, LENGTH))
def test_a_seal_that_comes_twice_is_named(order: list[int], twice: int) -> None:
    assert found(checked([*order, twice])) == ["chain.duplicate"]


def test_an_anchor_stands_for_what_came_before() -> None:
    assert found(checked([4, 5, 6], anchors=(3,))) == []
    assert found(checked([4, 5, 6])) == ["chain.gap"]
    report = checked([4, 5, 6], whole=False)
    assert found(report) == []
    assert report.tallies[Check.CHAIN].uncheckable.total() == 1
    late = checked([4, 8, 9], anchors=(3, 7))
    assert found(late) == []
    assert late.tallies[Check.CHAIN].uncheckable.total() == 2


def test_an_anchor_that_is_known_already_changes_nothing() -> None:
    report = checked([1, 2, 3], anchors=(2, 3))
    assert "chain.duplicate" in found(report)  # anchors stand before what they anchor
    report = Report()
    checker = ChainChecker(report, whole=True)
    for number in (1, 2, 3):
        add(checker, number)
    add(checker, 2, anchor=True)
    checker.finish()
    assert found(report) == []


def test_chains_of_different_validators_are_apart() -> None:
    report = Report()
    checker = ChainChecker(report, whole=True)
    for who in ("//Alice", "//Bob"):
        for one in seal(record(problem()).encode(), who=who):
            checker.add(who, one.sealed.seal, bytes.fromhex(one.sealed.hash))
    checker.finish()
    assert report.failed == 0
    assert [last for _, _, last in checker.validators()] == [1, 1]
    alice = KeypairSigner("//Alice").address
    assert checker.hash_of(alice, 1) is not None
    assert checker.hash_of(alice, 2) is None
    assert checker.hash_of("nobody", 1) is None
