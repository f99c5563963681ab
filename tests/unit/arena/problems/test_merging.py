"""When clusters of different places meet, what is held back stays, what is learnt from leaves."""

from __future__ import annotations

import pytest

from arena.problems.merging import POOLS, SIDES
from arena.problems.pools import Pool, Side


def test_training_leaves_before_evaluation_and_never_touch() -> None:
    members = {"b": Side.TRAINING, "a": Side.TRAINING, "e": Side.EVALUATION}
    assert SIDES.leavers(members) == ("a", "b")
    assert SIDES.leavers({"a": Side.TRAINING, "n": Side.NEVER}) == ("a",)


def test_nobody_leaves_a_cluster_of_one_side_or_one_that_is_held_back() -> None:
    assert SIDES.leavers({"a": Side.TRAINING, "b": Side.TRAINING}) == ()
    assert SIDES.leavers({"e": Side.EVALUATION, "n": Side.NEVER}) == ()
    assert SIDES.leavers({}) == ()


@pytest.mark.parametrize("stays", [Pool.HELD_OUT, Pool.SUITE_V1, Pool.SUITE_V3])
def test_open_leaves_before_held_out_and_suites(stays: Pool) -> None:
    members = {"o": Pool.OPEN, "s": stays, "r": Pool.RETIRED}
    assert POOLS.leavers(members) == ("o",)


def test_a_retired_problem_is_in_nobodys_way() -> None:
    assert POOLS.leavers({"o": Pool.OPEN, "r": Pool.RETIRED}) == ()
    assert POOLS.leavers({"h": Pool.HELD_OUT, "r": Pool.RETIRED}) == ()
