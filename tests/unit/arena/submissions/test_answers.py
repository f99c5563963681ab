"""What an index of answers finds in a file, and what it leaves alone."""

from __future__ import annotations

import pytest

from arena.submissions.answers import AnswerIndex
from arena.submissions.policy import Policy
from arena.submissions.reading import read_source
from arena.submissions.rules import Rule
from scoring.types import Bucket, Problem, Reward
from tests.shared import SHARED, needs_shared
from tests.unit.arena.submissions.measured import PARTS, bundle

MAIN = "\n\ndef agent_main(problem_data):\n    return []\n"


def rules(code: str, bank: AnswerIndex) -> set[Rule]:
    return {v.rule for v in bank.violations(read_source((code + MAIN).encode(), Policy()))}


def one(
    query: str, title: str = "Hand Forged Copper Samovar Bukhara", pid: str = "7702315548"
) -> AnswerIndex:
    problem = Problem("p", query, Bucket.PRODUCT, (Reward(pid, (title,)),))
    return AnswerIndex.build([problem])


QUERY = "Looking for a hand forged copper samovar from Bukhara, above 900 pesos, with a teapot."


@pytest.mark.parametrize(
    "code",
    [
        "x = '7702315548'",
        "x = 7702315548",
        "x = 7_702_315_548",
        "x = 0x1cb18021c",
        "x = 7702315548.0",
        "x = 'id=7702315548;'",
        "x = '8455132077'",
        "x = '77023' + '15548'",
        "x = 7702310000 + 5548",
        "# 7702315548",
        "def f():\n    '''see 7702315548'''",
        "x = b'7702315548'",
    ],
)
def test_a_known_id_is_found_however_it_is_written(code: str) -> None:
    assert Rule.PRODUCT_ID in rules(code, one(QUERY))


@pytest.mark.parametrize("code", ["x = 77023155480", "x = '7702315549'", "x = 5548"])
def test_another_number_is_none(code: str) -> None:
    assert rules(code, one(QUERY)) == set()


@pytest.mark.parametrize(
    "code",
    [
        f"x = {QUERY!r}",
        "x = 'a hand forged copper samovar from bukhara'",
        f"x = {QUERY[::-1]!r}",
        "x = ('hand forged copper sa' + 'movar from Bukhara, above 900')",
        "x = ['bukhara', 'copper', 'forged', 'samovar', 'teapot']",
        f"# {QUERY}",
    ],
)
def test_parts_of_a_query_are_found(code: str) -> None:
    assert Rule.QUERY in rules(code, one(QUERY))


@pytest.mark.parametrize(
    "code",
    [
        "x = 'Looking for a product above 900 pesos, with free shipping and cash on delivery.'",
        "x = 'My budget is only 300, but I have a voucher with the following rules'",
        "x = ['copper', 'brass', 'steel', 'iron', 'teapot', 'kettle']",
        "x = 'a copper teapot'",
    ],
)
def test_common_wording_is_nobodys(code: str) -> None:
    assert rules(code, one(QUERY)) == set()


def test_wording_that_many_problems_share_is_common() -> None:
    problems = [
        Problem(str(n), f"{QUERY} Number {n}.", Bucket.PRODUCT, (Reward(f"77023155{n}0"),))
        for n in range(5)
    ]
    assert rules(f"x = {QUERY!r}", AnswerIndex.build(problems)) == set()


def test_a_title_is_found() -> None:
    found = rules("x = 'hand forged copper samovar bukhara'", one("show me something"))
    assert found == {Rule.TITLE}


def test_the_key_decides_the_hashes_and_nothing_else() -> None:
    problem = Problem("p", QUERY, Bucket.PRODUCT, (Reward("7702315548"),))
    plain, keyed = AnswerIndex.build([problem]), AnswerIndex.build([problem], key=b"secret")
    assert plain.size == keyed.size
    assert rules("x = 7702315548", keyed) == {Rule.PRODUCT_ID}
    assert not set(plain._ids.tolist()) & set(keyed._ids.tolist())


def test_ids_of_a_catalogue_can_be_added() -> None:
    index = AnswerIndex.build([], product_ids=["4410867766"])
    assert rules("x = '4410867766'", index) == {Rule.PRODUCT_ID}


@needs_shared
def test_honest_agents_know_nothing_of_the_real_problems() -> None:
    from arena.problems.suite import load_suites

    folder = SHARED / "shoppingbench"
    files = [folder / f"{name}.jsonl" for name in ("product", "shop", "voucher")]
    index = AnswerIndex.build(load_suites(files))
    for part in PARTS:
        for case in bundle(f"honest_{part}"):
            assert index.violations(read_source(case.source, Policy())) == [], case.name
