"""Problems that give each other away stand in one cluster, whatever order they come in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.exceptions import ClusterError
from arena.problems.clusters import TWO_CONTENTS, Clusters, Rule
from scoring.exceptions import Fault
from scoring.types import Bucket, PriceBand, Problem
from tests.unit.arena.problems.leaks import asked, made_problems, wanted

HOSE = wanted("1", "Garden hose XT500 green 15m expandable", options={"length": "15m"})
MUG = wanted("2", "Enamel camping mug with bamboo lid", attributes={"material": "enamel"})
LAMP = wanted("3", "Bedside reading lamp touch dimmer", options={"color_family": "white"})


def groups(clusters: Clusters) -> set[frozenset[str]]:
    return {frozenset(members) for members in clusters.groups().values()}


def test_a_shared_product_joins_across_buckets() -> None:
    clusters = Clusters()
    first = clusters.add(asked("a", "a hose", HOSE))
    second = clusters.add(asked("b", "something for tea and a lamp", MUG, LAMP))
    joined = clusters.add(asked("c", "a shop with both", replace(HOSE, title=()), LAMP))
    assert (first.links, second.links) == ((), ())
    assert joined.cluster == first.cluster
    assert joined.merged == (second.cluster,)
    assert [(link.rule, link.other) for link in joined.links] == [
        (Rule.PRODUCT, "a"),
        (Rule.PRODUCT, "b"),
    ]
    assert len(clusters) == 1


def test_when_clusters_meet_the_older_name_stays_and_the_other_still_resolves() -> None:
    clusters = Clusters()
    old = clusters.add(asked("a", "", HOSE)).cluster
    young = clusters.add(asked("b", "", MUG)).cluster
    clusters.add(asked("c", "", MUG, HOSE))
    assert clusters.resolve(young) == clusters.resolve(old) == old
    assert clusters.members(young) == clusters.members(old) == ("a", "b", "c")
    assert {clusters.find(i) for i in "abc"} == {old}
    assert clusters.find("z") is None
    assert clusters.resolve("c-unknown") == "c-unknown"


def test_the_same_specific_reward_joins_and_a_weak_one_does_not() -> None:
    options = {"color_family": "coffee brown", "size": "waist:44", "buckle": "western rodeo"}
    attributes = {"belt_material": "buffalo hide", "thickness": "4mm"}
    one = wanted("1", "Cowboy strap", options=options, attributes=attributes)
    other = wanted("2", "Something by another shop", options=options, attributes=attributes)
    clusters = Clusters.of((asked("a", "first words", one), asked("b", "no such text", other)))
    assert [link.rule for link in clusters.links] == [Rule.REWARD]
    weak = [
        asked(name, name, wanted(name, name, service=("freeShipping",)))
        for name in ("steel bottle cap", "wooden coin bank", "brake pad set")
    ]
    assert len(Clusters.of(weak)) == 3


def test_the_same_goods_in_another_listing_join() -> None:
    clusters = Clusters.of(
        (
            asked("a", "one text", HOSE),
            asked(
                "b",
                "other",
                replace(
                    HOSE, product_id="9", title=("HOSE for garden XT500 15 m expandable green",)
                ),
            ),
        )
    )
    assert [link.rule for link in clusters.links] == [Rule.LISTING]


def test_a_color_that_excludes_the_other_keeps_listings_apart() -> None:
    red = wanted("1", "Magnetic strap for band 7", options={"color_family": "red"})
    black = wanted("2", "Magnetic strap for band 7", options={"color_family": "black"})
    assert len(Clusters.of((asked("a", "x", red), asked("b", "y", black)))) == 2


def test_the_same_question_in_other_words_joins() -> None:
    one = asked("a", "I'm looking for brake pads for a yamaha sniper 150, priced above 99 pesos.",
                wanted("1", "Spare part A", price=PriceBand(99.0, None)))  # fmt: skip
    other = asked("b", "Show me yamaha sniper 150 brake pads with free shipping.",
                  wanted("2", "Genuine thing B", service=("freeShipping",)))  # fmt: skip
    assert [link.rule for link in Clusters.of((one, other)).links] == [Rule.WORDING]


def test_whom_a_problem_would_join_can_be_asked_without_adding_it() -> None:
    clusters = Clusters.of((asked("a", "", HOSE), asked("b", "", MUG)))
    links = clusters.links_of(asked("c", "", HOSE, MUG))
    assert [link.other for link in links] == ["a", "b"]
    assert len(clusters) == 2
    assert "c" not in clusters


def test_a_problem_added_twice_changes_nothing_and_another_under_its_id_is_refused() -> None:
    clusters = Clusters()
    first = clusters.add(asked("a", "a hose", HOSE))
    again = clusters.add(replace(asked("a", "a hose", HOSE), pool="bank:open", cluster="x"))
    assert (again.cluster, again.links) == (first.cluster, ())
    with pytest.raises(ClusterError) as caught:
        clusters.add(asked("a", "a mug", MUG))
    assert caught.value.code == TWO_CONTENTS
    assert caught.value.fault is Fault.CALLER
    assert clusters.members(first.cluster) == ("a",)


def test_a_problem_that_says_nothing_stands_alone() -> None:
    empty = [Problem(str(i), "", Bucket.PRODUCT, (wanted(str(i), ""),)) for i in range(3)]
    assert len(Clusters.of(empty)) == 3


MADE = made_problems(50, products=200)
"""A world so small that near-copies abound."""


def test_the_small_world_has_something_to_join() -> None:
    assert 1 < len(Clusters.of(MADE)) < len(MADE)


@settings(max_examples=12, deadline=None)
@given(st.permutations(MADE))
def test_the_groups_do_not_depend_on_the_order(problems: list[Problem]) -> None:
    assert groups(Clusters.of(problems)) == groups(Clusters.of(MADE))


def test_the_same_problems_in_the_same_order_have_the_same_names() -> None:
    one, other = Clusters.of(MADE), Clusters.of(MADE)
    assert one.groups() == other.groups()
    assert one.links == other.links


def test_growing_never_parts_what_was_joined() -> None:
    clusters, seen = Clusters(), dict[str, str]()
    for problem in MADE:
        joined = clusters.add(problem)
        seen[problem.problem_id] = joined.cluster
        for known, name in seen.items():
            assert clusters.resolve(name) == clusters.find(known)
