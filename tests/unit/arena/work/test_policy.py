"""Waits grow, have a bound, and never overflow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.work.policy import WorkPolicy, in_hand
from tests.unit.arena.work.desk import LEASE, NOON

SECOND = timedelta(seconds=1)


def test_waits_double_up_to_the_longest() -> None:
    policy = WorkPolicy(first_wait=10 * SECOND, longest_wait=60 * SECOND)
    waits = [policy.wait(barren) / SECOND for barren in range(6)]
    assert waits == [10, 10, 20, 40, 60, 60]


@given(st.integers(0, 10**9))
def test_no_number_of_failures_is_too_many(barren: int) -> None:
    policy = WorkPolicy()
    assert policy.first_wait <= policy.wait(barren) <= policy.longest_wait


@pytest.mark.parametrize(
    ("tries", "first", "longest"), [(0, 1, 2), (3, 2, 1), (3, -1, 2), (-1, 1, 1)]
)
def test_a_policy_that_bounds_nothing_is_refused(tries: int, first: int, longest: int) -> None:
    with pytest.raises(ValueError, match="try"):
        WorkPolicy(tries, first * SECOND, longest * SECOND)


def test_a_run_is_in_hand_while_it_is_heard_of() -> None:
    half = LEASE / 2
    assert in_hand(True, NOON, LEASE, NOON + half - SECOND)
    assert not in_hand(True, NOON, LEASE, NOON + half)
    assert not in_hand(False, NOON, LEASE, NOON)
