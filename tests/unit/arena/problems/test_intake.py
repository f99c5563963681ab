"""Who may come into the bank, and who must leave for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.exceptions import BankError
from arena.problems.bank import Bank
from arena.problems.decisions import mark_raced, open_clusters, retire
from arena.problems.intake import Intake, LeftOut, clusters_of
from arena.problems.pools import Pool
from tests.unit.arena.problems.banks import FILE, Banked, after, problem


def refused(code: str) -> pytest.RaisesExc[BankError]:
    return pytest.RaisesExc(BankError, check=lambda error: error.code == code)


def test_a_suite_comes_in_and_the_bank_keeps_clear_of_it() -> None:
    world = Banked()
    world.bring(Pool.SUITE_V1, problem("s", "1"))
    taken = world.bring(Pool.OPEN, problem("a", "1"), problem("b", "2"))
    assert taken.left_out == {"a": LeftOut.SUITE}
    assert taken.admitted == ["b"]
    assert "a" not in world.bank
    assert world.bank.need("s").problem.pool == "suite:v1"


def test_problems_of_the_bank_leave_before_a_suite_with_their_clusters() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("h1", "1"), problem("h2", "1"), problem("far", "9"))
    world.bring(Pool.OPEN, problem("o", "2"))
    taken = world.bring(Pool.SUITE_V1, problem("s", "1", "2"), problem("t", "3"))
    assert {left.problem_id for left in taken.left} == {"h1", "h2", "o"}
    assert taken.merged == 1
    assert all(world.pool_of(i) is Pool.RETIRED for i in ("h1", "h2", "o"))
    assert "suite" in world.bank.need("o").history[-1].reason
    assert world.pool_of("far") is Pool.HELD_OUT
    assert {world.bank.need(i).cluster for i in ("h1", "h2", "o", "s")} == {
        world.bank.need("s").cluster
    }


def test_a_suite_takes_the_place_of_the_same_problem_in_the_bank() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("p"))
    taken = world.bring(Pool.SUITE_V2, problem("p"))
    assert [left.problem_id for left in taken.left] == ["p"]
    held = world.bank.need("p")
    assert (held.pool, held.version) == (Pool.SUITE_V2, 2)
    assert [step.pool for step in held.history] == [Pool.HELD_OUT, Pool.RETIRED, Pool.SUITE_V2]


def test_a_problem_in_two_suites_stays_in_the_first() -> None:
    world = Banked()
    world.bring(Pool.SUITE_V1, problem("p", "1"))
    taken = world.bring(Pool.SUITE_V2, problem("p", "1"), problem("q", "1"))
    assert taken.already == ["p"]
    assert world.pool_of("p") is Pool.SUITE_V1
    assert [h.problem_id for h in world.bank.live(Pool.SUITE_V1)] == ["p"]
    assert [h.problem_id for h in world.bank.live(Pool.SUITE_V2)] == ["q"]


@pytest.mark.parametrize(
    ("stands", "comes", "reason"),
    [
        (Pool.OPEN, Pool.HELD_OUT, LeftOut.OPEN),
        (Pool.HELD_OUT, Pool.OPEN, LeftOut.HELD_OUT),
    ],
)
def test_a_cluster_never_stands_on_two_sides(stands: Pool, comes: Pool, reason: LeftOut) -> None:
    world = Banked()
    world.bring(stands, problem("a", "1"))
    assert world.bring(comes, problem("b", "1")).left_out == {"b": reason}
    assert world.bring(stands, problem("c", "1")).admitted == ["c"]


def test_nothing_joins_what_was_open_or_raced_in_held_out() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("raced", "1"))
    world.bring(Pool.OPEN, problem("open", "2"))
    world.apply(mark_raced(world.bank, ["raced"], "r", world.at))
    world.apply(retire(world.bank, ["open"], "old", world.at))
    taken = world.bring(Pool.HELD_OUT, problem("a", "1"), problem("b", "2"))
    assert taken.left_out == {"a": LeftOut.EXPOSED, "b": LeftOut.EXPOSED}


def test_one_that_is_left_out_joins_nobody() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("h", "1"))
    world.bring(Pool.OPEN, problem("o", "2"))
    bridge = problem("bridge", "1", "2")
    for pool in (Pool.HELD_OUT, Pool.OPEN):
        assert not world.bring(pool, bridge).admitted
    assert world.bank.need("h").cluster != world.bank.need("o").cluster
    assert not world.bank.cluster(world.bank.need("h").cluster).exposed  # type: ignore[union-attr]


def test_clusters_of_one_side_merge_over_a_problem_that_joins_them() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("a", "1"), problem("b", "2"))
    old = world.bank.need("b").cluster
    taken = world.bring(Pool.HELD_OUT, problem("c", "1", "2"))
    assert (taken.merged, taken.left) == (1, [])
    assert {world.bank.need(i).cluster for i in "abc"} == {world.bank.need("a").cluster}
    assert world.bank.resolve(old) == world.bank.need("a").cluster
    assert world.bank.problem("b").cluster == world.bank.need("a").cluster


def test_the_same_again_is_no_error_and_changes_nothing() -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("a"))
    taken = world.bring(Pool.OPEN, replace(problem("a"), difficulty="hard"))
    assert (taken.already, taken.events) == (["a"], [])


def test_another_content_needs_the_old_version_retired() -> None:
    world = Banked()
    changed = problem("a", query="Looking for something else altogether.")
    world.bring(Pool.OPEN, problem("a"))
    with refused("bank.other_content"):
        world.bring(Pool.OPEN, changed)
    world.apply(retire(world.bank, ["a"], "a typing error", world.at))
    assert world.bring(Pool.OPEN, problem("a")).left_out == {"a": LeftOut.RETIRED}
    assert world.bring(Pool.OPEN, changed).admitted == ["a"]
    held = world.bank.need("a")
    assert (held.version, held.problem.query) == (2, changed.query)
    assert [step.version for step in held.history] == [1, 1, 2]


def test_what_was_open_does_not_come_back_to_held_out_as_a_new_version() -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("a"))
    world.apply(retire(world.bank, ["a"], "renewed", world.at))
    changed = problem("a", query="Looking for something else altogether.")
    assert world.bring(Pool.HELD_OUT, changed).left_out == {"a": LeftOut.EXPOSED}


def test_a_version_of_another_cluster_is_refused() -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("a", "1"))
    world.apply(retire(world.bank, ["a"], "renewed", world.at))
    with refused("bank.two_clusters"):
        world.bring(Pool.OPEN, problem("a", "2", query="Looking for a thing of another kind."))


def test_a_file_that_names_another_cluster_or_pool_is_refused() -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("a", "1"))
    name = world.bank.need("a").cluster
    assert world.bring(Pool.OPEN, problem("b", "1", cluster=name, pool="bank:open")).admitted
    with refused("bank.two_clusters"):
        world.bring(Pool.OPEN, problem("c", "2", cluster=name))
    with refused("bank.two_pools"):
        world.bring(Pool.OPEN, problem("d", "3", pool="suite:v1"))


@pytest.mark.parametrize(
    ("stands", "comes"), [(Pool.HELD_OUT, Pool.OPEN), (Pool.SUITE_V1, Pool.OPEN)]
)
def test_an_import_moves_nothing_between_pools(stands: Pool, comes: Pool) -> None:
    world = Banked()
    world.bring(stands, problem("a"))
    with refused("bank.other_pool"):
        world.bring(comes, problem("a"))


def test_nothing_comes_to_retired_and_nothing_after_the_clock_went_back() -> None:
    world = Banked()
    with refused("bank.unknown_pool"):
        world.bring(Pool.RETIRED, problem("a"))
    world.bring(Pool.OPEN, problem("a"))
    with refused("bank.clock_back"):
        Intake(world.bank, world.clusters, after(-1))


def test_bank_and_clusters_follow_from_the_journal_alone() -> None:
    world = Banked()
    world.bring(Pool.SUITE_V1, problem("s", "1"))
    world.bring(Pool.HELD_OUT, problem("h", "2"), problem("i", "3"), problem("j", "2", "3"))
    world.bring(Pool.OPEN, problem("o", "4"), problem("left-out", "1"))
    world.apply(retire(world.bank, ["o"], "renewed", world.at))
    world.bring(Pool.OPEN, problem("o", "4", query="Looking for something else altogether."))
    folded = Bank.folded(world.events)
    assert list(folded) == list(world.bank)
    clusters = clusters_of(world.events)
    assert clusters.groups() == world.clusters.groups()
    assert Intake(folded, clusters, world.at).reconcile().events == []


def test_a_newer_program_that_sees_more_merges_by_the_rule() -> None:
    """Held-out stays and is not drawn again, open leaves; before a suite everyone leaves."""
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("h", "1"), problem("k", "5"))
    world.bring(Pool.OPEN, problem("o", "2"))
    world.bring(Pool.SUITE_V1, problem("s", "6"))
    seen = clusters_of(world.events)
    seen.add(problem("bridge", "1", "2"))
    seen.add(problem("other-bridge", "5", "6"))
    taken = Intake(world.bank, seen, world.at).reconcile()
    assert {left.problem_id for left in taken.left} == {"o", "k"}
    assert taken.merged == 2
    assert [world.pool_of(i) for i in "hoks"] == [
        Pool.HELD_OUT,
        Pool.RETIRED,
        Pool.RETIRED,
        Pool.SUITE_V1,
    ]
    assert world.bank.drawable() == ()
    assert list(Bank.folded([*world.events, *taken.events])) == list(world.bank)


def test_opening_takes_the_whole_cluster_along() -> None:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("a", "1"), problem("b", "1"), problem("c", "2"))
    world.apply(open_clusters(world.bank, ["a"], "shown at a meeting", world.at))
    assert [world.pool_of(i) for i in "abc"] == [Pool.OPEN, Pool.OPEN, Pool.HELD_OUT]
    assert open_clusters(world.bank, ["b"], "again", world.at) == []
    world.apply(retire(world.bank, ["c"], "gone", world.at))
    with refused("bank.not_drawable"):
        open_clusters(world.bank, ["c"], "too late", world.at)


def test_provenance_says_where_a_problem_comes_from() -> None:
    world = Banked()
    world.bring(Pool.OPEN, problem("a"))
    assert world.bank.need("a").provenance == {
        "origin": "file",
        "name": FILE.name,
        "sha256": FILE.sha256,
    }
    assert FILE.of(world.bank.need("a").provenance) == FILE
