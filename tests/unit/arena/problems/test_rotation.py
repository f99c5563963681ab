"""Rotation moves whole clusters, by rule and seed, and never starves the races."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.decisions import mark_raced
from arena.problems.pools import Pool
from arena.problems.rotation import Moves, Rotation, RotationRule, due_at, rotate
from scoring.types import Bucket
from tests.unit.arena.problems.banks import START, Banked, after, problem

RULE = RotationRule(opens=3, retires=2, held_out_min=4, open_min=1)


def a_bank(held_out: int = 12, opened: int = 4) -> Banked:
    """That many clusters of each bucket, every third of two problems."""
    return Banked(_events(held_out, opened))


@cache
def _events(held_out: int, opened: int) -> tuple[Event, ...]:
    world = Banked()
    for pool, count in ((Pool.HELD_OUT, held_out), (Pool.OPEN, opened)):
        for bucket in Bucket:
            for i in range(count):
                products = [f"{pool.value}{bucket}{i}"]
                products += [f"{products[0]}more"] if bucket is not Bucket.PRODUCT else []
                for mate in range(1 + (i % 3 == 0)):
                    world.bring(pool, problem(f"{products[0]}-{mate}", *products, bucket=bucket))
    return tuple(world.events)


def plan(world: Banked, seed: str = "s", rule: RotationRule = RULE) -> dict[Bucket, Moves]:
    return {m.bucket: m for m in rotate(world.bank, rule, seed=seed, at=world.at).moves}


def test_each_bucket_opens_and_retires_whole_clusters() -> None:
    world = a_bank()
    rotation = rotate(world.bank, RULE, seed="s", at=world.at)
    for moves in rotation.moves:
        assert (len(moves.opened), len(moves.retired)) == (3, 2)
        assert (moves.drawable_after, moves.open_after) == (9, 5)
    world.apply(rotation.events(world.at))
    for moves in rotation.moves:
        for name, members in moves.opened.items():
            cluster = world.bank.cluster(name)
            assert cluster is not None
            assert (cluster.pool, tuple(cluster.live)) == (Pool.OPEN, members)
        retired = [i for members in moves.retired.values() for i in members]
        assert retired
        assert all(world.pool_of(i) is Pool.RETIRED for i in retired)
    assert len(world.bank.drawable()) == sum(
        holding.pool is Pool.HELD_OUT for holding in world.bank
    )


def test_the_same_seed_gives_the_same_moves_and_another_one_others() -> None:
    assert plan(a_bank()) == plan(a_bank())
    assert plan(a_bank(), "s") != plan(a_bank(), "t")


def test_one_cluster_more_does_not_reshuffle_the_others() -> None:
    """So nobody can steer what opens by adding problems until it suits."""
    world = a_bank()
    before = plan(world)[Bucket.PRODUCT].opened
    world.bring(Pool.HELD_OUT, problem("one more"))
    opened = plan(world)[Bucket.PRODUCT].opened
    assert len(before.keys() & opened.keys()) >= 2


def test_seed_rule_and_moves_stand_in_the_event() -> None:
    world = a_bank()
    rotation = rotate(world.bank, RULE, seed="the seed", at=world.at)
    (event,) = rotation.events(world.at)
    assert event.data["seed"] == "the seed"
    assert event.data["rule"] == RULE.to_json()
    world.apply([event])
    assert list(Bank.folded(world.events)) == list(world.bank)


def test_what_races_have_drawn_opens_first_and_all_of_it() -> None:
    world = a_bank()
    drawn = [h for h in world.bank.drawable() if h.bucket is Bucket.SHOP][:6]
    clusters = {holding.cluster for holding in drawn}
    world.apply(mark_raced(world.bank, [h.problem_id for h in drawn], "r", world.at))
    moves = plan(world)
    assert moves[Bucket.SHOP].opened.keys() == clusters
    assert len(moves[Bucket.PRODUCT].opened) == 3


def test_those_that_have_been_open_longest_retire_and_some_stay_open() -> None:
    world = a_bank()
    first = {h.problem_id for h in world.bank.live(Pool.OPEN)}
    rule = RotationRule(opens=1, retires=2, held_out_min=0, open_min=2)
    retired: list[set[str]] = []
    for day in range(1, 4):
        world.at = after(24 * day)
        world.apply(rotate(world.bank, rule, seed="s", at=world.at).events(world.at))
        retired.append({h.problem_id for h in world.bank if h.retired})
    # Four to begin with and one more a day; two a day retire as long as two remain.
    assert retired[0] < retired[1] == first < retired[2]
    assert {b: len(_open_clusters(world, b)) for b in Bucket} == dict.fromkeys(Bucket, 2)


def _open_clusters(world: Banked, bucket: Bucket) -> set[str]:
    return {h.cluster for h in world.bank.live(Pool.OPEN) if h.bucket is bucket}


def test_too_small_a_stock_is_refused_and_says_what_to_grow() -> None:
    world = a_bank(held_out=6)
    with pytest.raises(BankError, match="3 product, 3 shop, 3 voucher clusters") as caught:
        rotate(world.bank, RULE, seed="s", at=world.at)
    assert caught.value.code == "bank.held_out_too_small"
    assert caught.value.remedy is not None
    assert "--to held_out --bucket product=1,shop=1,voucher=1" in caught.value.remedy
    world.bring(Pool.HELD_OUT, *(problem(f"grown{b}", f"1{b}", bucket=b) for b in Bucket))
    assert rotate(world.bank, RULE, seed="s", at=world.at).moves


def test_drawn_clusters_do_not_count_as_stock() -> None:
    world = a_bank(held_out=8)
    drawn = [holding.problem_id for holding in world.bank.drawable()]
    clusters = {world.bank.need(i).cluster for i in drawn if "shop" in i}
    half = set(sorted(clusters)[:5])
    drawn = [i for i in drawn if world.bank.need(i).cluster in half]
    world.apply(mark_raced(world.bank, drawn, "r", world.at))
    with pytest.raises(BankError, match="3 shop clusters"):
        rotate(world.bank, RULE, seed="s", at=world.at)


def test_a_rotation_waits_for_its_time_unless_it_is_asked_for() -> None:
    world = a_bank()
    assert due_at(world.bank, RULE) is None
    world.apply(rotate(world.bank, RULE, seed="s", at=START).events(START))
    assert due_at(world.bank, RULE) == START + timedelta(days=1)
    later = START + timedelta(hours=23)
    rule = RotationRule(opens=1, held_out_min=0)
    with pytest.raises(BankError, match="due at 2026-01-02T12:00") as caught:
        rotate(world.bank, rule, seed="s", at=later)
    assert caught.value.code == "bank.rotation_not_due"
    assert isinstance(rotate(world.bank, rule, seed="s", at=later, early=True), Rotation)
    assert isinstance(rotate(world.bank, rule, seed="s", at=after(24)), Rotation)


def test_a_decided_rotation_keeps_its_counts_after_it_is_applied() -> None:
    world = a_bank()
    rotation = rotate(world.bank, RULE, seed="s", at=world.at)
    before = [moves.to_json() for moves in rotation.moves]
    world.apply(rotation.events(world.at))
    assert [moves.to_json() for moves in rotation.moves] == before
