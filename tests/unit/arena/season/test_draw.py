"""The draw is the same for everyone, stratified, and asks no question twice."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.exceptions import DrawError
from arena.season.draw import Candidate, check_pool, draw, draw_seed, secret_hash
from scoring.types import Bucket

SEED = "ab" * 32


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    rows = draw(
        st.lists(st.tuples(st.sampled_from(Bucket), st.sampled_from("abcdefgh")), max_size=14)
    )
    return [Candidate(f"p{i}", bucket, cluster) for i, (bucket, cluster) in enumerate(rows)]


quotas = st.fixed_dictionaries({bucket: st.integers(0, 4) for bucket in Bucket})


def possible(pool: list[Candidate], quota: dict[Bucket, int]) -> bool:
    """Hall's condition over every set of buckets: an oracle that shares no code with the draw."""
    for size in range(1, len(Bucket) + 1):
        for some in combinations(Bucket, size):
            clusters = {row.cluster for row in pool if row.bucket in some}
            if len(clusters) < sum(quota[bucket] for bucket in some):
                return False
    return True


@given(pools(), quotas, st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_a_draw_meets_its_quota_once_a_cluster_or_there_is_none(
    pool: list[Candidate], quota: dict[Bucket, int], number: int, order: random.Random
) -> None:
    seed = f"{number:064x}"
    if not possible(pool, quota):
        with pytest.raises(DrawError) as refused:
            draw(pool, quota, seed)
        assert refused.value.code == "draw.pool_too_small"
        with pytest.raises(DrawError):
            check_pool(pool, quota)
        return
    check_pool(pool, quota)
    drawn = draw(pool, quota, seed)
    rows = {row.name: row for row in pool}
    assert Counter(rows[name].bucket for name in drawn) == Counter(quota)
    assert len({rows[name].cluster for name in drawn}) == len(drawn)
    shuffled = pool[:]
    order.shuffle(shuffled)
    assert draw(shuffled, quota, seed) == drawn


def test_each_problem_is_drawn_about_as_often_as_any_other() -> None:
    pool = [Candidate(f"p{i}", bucket, f"{bucket}{i}") for bucket in Bucket for i in range(20)]
    pool = [Candidate(f"{row.bucket}{row.name}", row.bucket, row.cluster) for row in pool]
    counts: Counter[str] = Counter()
    for i in range(500):
        counts.update(draw(pool, dict.fromkeys(Bucket, 5), f"{i:064x}"))
    # Binomial(500, 1/4): six standard deviations are 58.
    assert len(counts) == 60
    assert all(abs(count - 125) < 58 for count in counts.values())


def test_another_secret_beacon_or_race_gives_another_seed() -> None:
    secret, beacon = "11" * 32, "22" * 32
    seeds = {
        draw_seed("race-1", secret, beacon),
        draw_seed("race-1", beacon, secret),
        draw_seed("race-2", secret, beacon),
        draw_seed("race-1", secret, "23" * 32),
    }
    assert len(seeds) == 4
    assert secret_hash("race-1", secret) != secret_hash("race-2", secret)


@pytest.mark.parametrize("secret", ["", "11" * 31, "XY" * 32, "AB" * 32])
def test_a_secret_of_another_form_is_refused(secret: str) -> None:
    with pytest.raises(DrawError) as refused:
        secret_hash("race-1", secret)
    assert refused.value.code == "draw.bad_secret"


def test_a_problem_in_two_clusters_is_refused() -> None:
    pool = [Candidate("p", Bucket.SHOP, "a"), Candidate("p", Bucket.SHOP, "b")]
    with pytest.raises(DrawError) as refused:
        draw(pool, {Bucket.SHOP: 1}, SEED)
    assert refused.value.code == "draw.twice_listed"
