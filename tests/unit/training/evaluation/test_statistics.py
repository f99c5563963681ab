from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.evaluation.statistics import bootstrap, compare, pass_at_k, permutation_p

RATES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_pass_at_k_is_worked_out_by_hand() -> None:
    # 4 samples, 1 success; of the 6 pairs 3 hold it.
    assert pass_at_k(4, 1, 2) == pytest.approx(0.5)
    assert pass_at_k(4, 1, 1) == pytest.approx(0.25)
    assert pass_at_k(4, 0, 4) == 0
    assert pass_at_k(4, 3, 2) == 1


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_is_the_share_of_all_choices_of_k_samples(counts: tuple[int, int]) -> None:
    samples, successes = counts
    drawn = [True] * successes + [False] * (samples - successes)
    for k in range(1, samples + 1):
        choices = list(itertools.combinations(drawn, k))
        share = sum(any(choice) for choice in choices) / len(choices)
        assert pass_at_k(samples, successes, k) == pytest.approx(share)


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_never_falls_with_k(counts: tuple[int, int]) -> None:
    rates = [pass_at_k(*counts, k) for k in range(1, counts[0] + 1)]
    assert rates == sorted(rates)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (0, 0, 1)])
def test_pass_at_k_of_too_few_samples_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        pass_at_k(n, c, k)


@given(RATES)
@settings(max_examples=30, deadline=None)
def test_an_interval_holds_its_estimate_and_stays_among_the_values(values: list[float]) -> None:
    found = bootstrap(values, resamples=400)
    tiny = 1e-9
    assert min(values) - tiny <= found.low <= found.high <= max(values) + tiny
    assert found.estimate == pytest.approx(sum(values) / len(values))


def test_an_interval_of_a_rate_is_about_two_standard_errors_wide() -> None:
    # 100 problems, half solved: standard error 0.05.
    found = bootstrap([1.0, 0.0] * 50)
    assert found.low == pytest.approx(0.40, abs=0.02)
    assert found.high == pytest.approx(0.60, abs=0.02)


def test_one_seed_gives_one_interval() -> None:
    values = [0.0, 1.0, 1.0, 0.5]
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)


def test_strata_keep_the_number_of_problems_of_each_bucket() -> None:
    values, strata = [1.0] * 10 + [0.0] * 10, ["product"] * 10 + ["shop"] * 10
    found = bootstrap(values, strata=strata)
    assert found.low == found.high == 0.5
    assert bootstrap(values).low < 0.5


def test_nothing_has_no_rate() -> None:
    with pytest.raises(ValueError, match="no problem"):
        bootstrap([])


def test_the_permutation_test_is_exact_over_few_problems() -> None:
    # Three problems, all better: of 8 sign patterns 2 give a sum as large.
    assert permutation_p([1.0, 1.0, 1.0]) == pytest.approx(2 / 8)
    # 1 + 1 - 1: every pattern gives |sum| of 1 or 3.
    assert permutation_p([1.0, 1.0, -1.0]) == 1
    assert permutation_p([0.0, 0.0]) == 1


def test_random_flips_agree_with_all_of_them() -> None:
    better, worse = [1.0] * 14, [-1.0] * 6
    # Sign test, two-sided: P(|X - 10| >= 4) for X ~ Bin(20, 1/2) is 0.1153.
    assert permutation_p(better + worse) == pytest.approx(0.1153, abs=0.01)


@given(st.lists(st.floats(-1, 1), max_size=12))
def test_a_p_value_is_the_same_for_the_opposite_and_is_never_zero(values: list[float]) -> None:
    p = permutation_p(values)
    assert 0 < p <= 1
    assert permutation_p([-value for value in values]) == pytest.approx(p)


def test_two_runs_are_compared_problem_by_problem() -> None:
    first = {f"p{n}": 0.0 for n in range(20)}
    second = {**first, **{f"p{n}": 1.0 for n in range(12)}}
    found = compare(first, second)
    assert (found.difference.estimate, found.better, found.worse) == (0.6, 12, 0)
    assert found.p_value == pytest.approx(2 / 2**12)
    assert found.separated
    opposite = compare(second, first)
    assert opposite.difference.estimate == -0.6
    assert (opposite.better, opposite.worse) == (0, 12)


def test_a_run_does_not_differ_from_itself() -> None:
    run = {"a": 0.25, "b": 1.0}
    found = compare(run, run)
    assert found.p_value == 1
    assert not found.separated


def test_runs_on_other_problems_are_not_compared() -> None:
    with pytest.raises(ValueError, match="not in both runs, such as b"):
        compare({"a": 1.0}, {"a": 1.0, "b": 0.0})
