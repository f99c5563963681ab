"""Whose a file is: disguises do not help, bases and own versions are nobody else's."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.submissions.copies import CopyIndex
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.policy import Policy
from arena.submissions.reading import read_source
from neurons.cli import SHIPPED_AGENTS
from tests.unit.arena.submissions.disguises import DISGUISES, disguise
from tests.unit.arena.submissions.measured import PARTS, bundle

POLICY = Policy()
ORIGINALS = {case.name: case.source for part in PARTS for case in bundle(f"honest_{part}")} | {
    name: path.read_bytes() for name, path in SHIPPED_AGENTS.items()
}


def printed(source: bytes | str) -> Fingerprint:
    data = source.encode() if isinstance(source, str) else source
    found = read_source(data, POLICY).fingerprint
    assert found is not None
    return found


@pytest.fixture(scope="module")
def prints() -> dict[str, Fingerprint]:
    return {name: printed(source) for name, source in ORIGINALS.items()}


@pytest.fixture(scope="module")
def index(prints: dict[str, Fingerprint]) -> CopyIndex:
    known = CopyIndex()
    for name, found in prints.items():
        known.add(name, f"hotkey of {name}", found)
    return known


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(sorted(ORIGINALS)),
    by=st.lists(
        st.sampled_from(sorted({"rename", "reformat", "reorder", "comment"} & set(DISGUISES))),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    seed=st.integers(0, 2**32),
)
def test_renaming_reformatting_and_reordering_hide_nothing(
    index: CopyIndex, name: str, by: list[str], seed: int
) -> None:
    made = disguise(ORIGINALS[name].decode("utf-8"), tuple(by), random.Random(seed))
    found = printed(made)
    told = {copy.version for copy in index.copied(found, POLICY)}
    assert name in told | {index.identical(found.sha256)}


def test_agents_of_different_authors_are_no_copies(
    index: CopyIndex, prints: dict[str, Fingerprint]
) -> None:
    for name, found in prints.items():
        assert index.copied(found, POLICY, f"hotkey of {name}") == (), name


def test_an_authors_own_earlier_version_is_no_copy() -> None:
    known = CopyIndex()
    source = ORIGINALS["reflexion"]
    known.add("v1", "mine", printed(source))
    assert known.identical(printed(source).sha256, "mine") is None
    assert known.copied(printed(source), POLICY, "mine") == ()
    assert known.identical(printed(source).sha256, "other") == "v1"
    assert known.copied(printed(source), POLICY, "other")[0].version == "v1"


def test_a_public_base_is_nobodys_and_what_is_built_on_it_is() -> None:
    base = SHIPPED_AGENTS["react"].read_text(encoding="utf-8")
    own = ORIGINALS["knapsack_budget"].decode("utf-8").replace("agent_main", "solve_basket")
    own = own.replace("from __future__ import annotations\n", "")
    built = f"{base}\n\n{own}\n\nSOLVERS = [converse, solve_basket]\n"
    known = CopyIndex([printed(base)])
    known.add("theirs", "somebody", printed(base))
    assert known.identical(printed(base).sha256, "me") is None
    assert known.copied(printed(base), POLICY, "me") == ()
    known.add("built", "builder", printed(built))
    renamed = disguise(built, ("rename",), random.Random(1))
    (copy, *_) = known.copied(printed(renamed), POLICY, "me")
    assert copy.version == "built"
    assert known.copied(printed(base), POLICY, "me") == ()


def test_the_first_of_equal_versions_is_named_and_the_lines_are_the_submitters() -> None:
    known = CopyIndex()
    source = ORIGINALS["spec_parser"].decode("utf-8")
    known.add("first", "a", printed(source))
    known.add("second", "b", printed(disguise(source, ("rename",), random.Random(2))))
    padded = "\n" * 500 + source
    copy = known.copied(printed(padded), POLICY, "c")[0]
    assert copy.version == "first"
    assert all(first > 500 for first, _ in copy.lines)


def test_the_prompt_alone_is_found_too(index: CopyIndex) -> None:
    text = ORIGINALS["long_prompt"].decode("utf-8")
    prompt = text[text.index('GUIDE = """') : text.index('"""\n\n\ndef') + 3]
    reworded = disguise(prompt, ("reword",), random.Random(3))
    code = ORIGINALS["terse"].decode("utf-8") + "\n" + reworded
    told = {
        copy.version: copy.what for copy in index.copied(printed(code), POLICY, "hotkey of terse")
    }
    assert told == {"long_prompt": "prose"}


def test_adding_many_at_a_time_or_one_by_one_gives_the_same_answers(
    prints: dict[str, Fingerprint],
) -> None:
    asked_often, asked_once = CopyIndex(), CopyIndex()
    probe = printed(disguise(ORIGINALS["bm25_rerank"].decode(), ("rename",), random.Random(4)))
    for name, found in prints.items():
        for known in (asked_often, asked_once):
            known.add(name, name, found)
        asked_often.closest(probe)
    assert asked_often.copied(probe, POLICY) == asked_once.copied(probe, POLICY)
    assert len(asked_once) == len(ORIGINALS)
