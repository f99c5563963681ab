"""The bar that the gate is held to, on the set that was made for it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from arena.submissions.admission import check
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from tests.unit.arena.submissions.measured import PARTS, bundle, copies

MAX_FALSE_ALARMS = 0.02


def test_the_set_is_large_enough() -> None:
    honest = [case for part in PARTS for case in bundle(f"honest_{part}")]
    cheats = [case for part in PARTS for case in bundle(f"cheats_{part}")]
    assert len(honest) >= 35
    assert len(cheats) >= 50
    names = [case.name for case in (*honest, *cheats)]
    assert len(names) == len(set(names))
    assert all(case.honest for case in honest)
    assert not any(case.honest for case in cheats)


def test_every_cheat_is_caught_by_a_rule_of_its_class(reader: Reader, bank: AnswerIndex) -> None:
    missed = defaultdict(list)
    for part in PARTS:
        for case in bundle(f"cheats_{part}"):
            admission = check(
                case.source, name=case.name, policy=Policy(), bank=bank, reader=reader
            )
            if not {str(v.rule) for v in admission.violations} & set(case.rules):
                missed[case.kind].append(case.name)
    assert not missed


def test_honest_agents_are_admitted(reader: Reader, bank: AnswerIndex) -> None:
    cases = [case for part in PARTS for case in bundle(f"honest_{part}")]
    known = CopyIndex()
    refused = {}
    for case in cases:
        admission = check(
            case.source, name=case.name, policy=Policy(), known=known, bank=bank, reader=reader
        )
        if not admission.admitted:
            refused[case.name] = [(v.rule, v.line, v.found) for v in admission.violations]
        assert admission.fingerprint is not None
        known.add(case.name, case.name, admission.fingerprint)
    assert len(refused) <= MAX_FALSE_ALARMS * len(cases), refused


@pytest.fixture(scope="module")
def originals(reader: Reader) -> dict[str, Fingerprint]:
    """Fingerprints of all honest agents."""
    found = {}
    for part in PARTS:
        for case in bundle(f"honest_{part}"):
            print_of = reader.read(case.source, Policy()).fingerprint
            assert print_of is not None
            found[case.name] = print_of
    return found


def test_copies_are_traced_to_their_originals(
    reader: Reader, originals: dict[str, Fingerprint]
) -> None:
    """Every agent of the fresh part in every disguise; of the others some."""
    known = CopyIndex()
    for name, found in originals.items():
        known.add(name, name, found)
    cases = [*copies("fresh"), *list(copies("dev"))[::13], *list(copies("held_out"))[::13]]
    missed = []
    for case in cases:
        admission = check(case.source, name="copy", policy=Policy(), known=known, reader=reader)
        told = [copy.version for copy in admission.copies]
        exact = known.identical(admission.sha256)
        if admission.admitted or not ({*told, exact} & set(case.of)):
            missed.append((case.of, case.by, told))
    assert not missed
