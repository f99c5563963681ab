"""The bank refuses events that cannot be, and keeps its rules whatever happens to it."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.bank import MERGED, OPENED, RACED, RETIRED, ROTATED, Bank
from arena.problems.decisions import mark_raced, open_clusters, retire
from arena.problems.holdings import Holding
from arena.problems.pools import Pool
from arena.problems.rotation import RotationRule, rotate
from scoring.types import Json, JsonObject
from tests.unit.arena.problems.banks import START, Banked, problem

LIVE = (Pool.OPEN, Pool.HELD_OUT)


def a_bank() -> Banked:
    world = Banked()
    world.bring(Pool.HELD_OUT, problem("h1", "1"), problem("h2", "1"), problem("h3", "2"))
    world.bring(Pool.OPEN, problem("o1", "3"), problem("o2", "4"))
    world.bring(Pool.SUITE_V1, problem("s", "5"))
    return world


def grown(world: Banked, name: str, **changes: Json) -> Event:
    """The event that would bring `name`, with changes."""
    other = Banked()
    other.bring(Pool.OPEN, problem(name))
    event = other.events[0]
    return dataclasses.replace(event, data=event.data | changes)


def test_counts_and_places_are_read_back() -> None:
    world = a_bank()
    assert [h.problem_id for h in world.bank.live(Pool.HELD_OUT)] == ["h1", "h2", "h3"]
    assert [h.problem_id for h in world.bank.drawable()] == ["h1", "h2", "h3"]
    assert len(world.bank) == 6
    assert world.bank.entries == 6
    assert world.bank.clock == START
    found = world.bank.product_cluster("1")
    assert found is not None
    assert list(found.live) == ["h1", "h2"]
    assert world.bank.product_cluster("unknown") is None
    drawn = world.bank.problem("h1")
    assert (drawn.pool, drawn.cluster) == ("bank:held_out", found.name)
    assert dataclasses.replace(drawn, pool=None, cluster=None) == problem("h1", "1")


def test_a_draw_spends_the_whole_cluster_and_may_have_two_of_it() -> None:
    world = a_bank()
    world.apply(mark_raced(world.bank, ["h1", "h2"], "r1", START))
    assert [h.problem_id for h in world.bank.drawable()] == ["h3"]
    assert mark_raced(world.bank, ["h1", "h2"], "r1", START) == []
    assert world.bank.need("h1").raced == ("r1",)
    with pytest.raises(BankError, match="cannot be raced") as caught:
        mark_raced(world.bank, ["h3", "h2"], "r2", START)
    assert caught.value.code == "bank.not_drawable"


@pytest.mark.parametrize("name", ["o1", "s"])
def test_only_held_out_problems_are_raced(name: str) -> None:
    with pytest.raises(BankError) as caught:
        mark_raced(a_bank().bank, [name], "r", START)
    assert caught.value.code == "bank.not_drawable"


def test_a_problem_retires_once_with_a_reason_and_its_mates_stay() -> None:
    world = a_bank()
    world.apply(retire(world.bank, ["h1", "h1"], " its product is gone ", START))
    held = world.bank.need("h1")
    assert (held.retired, held.history[-1].reason) == (True, "its product is gone")
    assert retire(world.bank, ["h1"], "again", START) == []
    assert world.pool_of("h2") is Pool.HELD_OUT
    with pytest.raises(BankError, match="for a reason"):
        retire(world.bank, ["h2"], " ", START)
    for name, code in (("s", "bank.meets_suite"), ("nobody", "bank.unknown_problem")):
        with pytest.raises(BankError) as caught:
            retire(world.bank, [name], "why not", START)
        assert caught.value.code == code


def test_a_clock_that_goes_back_is_refused_by_every_decision_and_by_the_bank() -> None:
    world, early = a_bank(), START - timedelta(seconds=1)
    rule = RotationRule(held_out_min=0)
    for decide in (
        lambda: retire(world.bank, ["h1"], "why not", early),
        lambda: mark_raced(world.bank, ["h1"], "r", early),
        lambda: open_clusters(world.bank, ["h1"], "why not", early),
        lambda: rotate(world.bank, rule, seed="s", at=early).events(early),
        lambda: world.bank.apply(Event(RETIRED, early, {"problems": ["h1"], "reason": "x"})),
    ):
        with pytest.raises(BankError) as caught:
            decide()
        assert caught.value.code == "bank.clock_back"


H = "bank:held_out"


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("something.else", {}, "bank.bad_event"),
        (RETIRED, {"problems": "h1", "reason": "x"}, "bank.bad_event"),
        (RETIRED, {"problems": ["h1", "h1"], "reason": "x"}, "bank.bad_event"),
        (RETIRED, {"problems": ["h1"]}, "bank.bad_event"),
        (RETIRED, {"problems": ["s"], "reason": "x"}, "bank.other_pool"),
        (RETIRED, {"problems": ["nobody"], "reason": "x"}, "bank.unknown_problem"),
        (OPENED, {"problems": ["h1"], "reason": "x"}, "bank.breaks_cluster"),
        (OPENED, {"problems": ["o1"], "reason": "x"}, "bank.other_pool"),
        (RACED, {"problems": ["o1"], "race_id": "r"}, "bank.not_drawable"),
        (RACED, {"problems": ["s"], "race_id": "r"}, "bank.not_drawable"),
        (MERGED, {"cluster": "C(h1)", "absorbed": ["C(o1)"]}, "bank.other_pool"),
        (MERGED, {"cluster": "C(h1)", "absorbed": ["C(s)"]}, "bank.meets_suite"),
        (MERGED, {"cluster": "C(h1)", "absorbed": ["C(h1)"]}, "bank.bad_event"),
        (MERGED, {"cluster": "C(h1)", "absorbed": ["nobody"]}, "bank.bad_event"),
        (ROTATED, {"opened": {"C(h1)": ["h1"]}, "retired": {}}, "bank.breaks_cluster"),
        (ROTATED, {"opened": {}, "retired": {"C(h1)": ["h2"]}}, "bank.breaks_cluster"),
    ],
)
def test_events_that_cannot_be_are_refused(kind: str, data: JsonObject, code: str) -> None:
    world = a_bank()

    def named(value: object) -> object:
        """`C(x)` is the cluster of x."""
        if isinstance(value, str) and value.startswith("C("):
            return world.bank.need(value[2:-1]).cluster
        if isinstance(value, list):
            return [named(item) for item in value]
        if isinstance(value, dict):
            return {named(k): named(v) for k, v in value.items()}
        return value

    with pytest.raises(BankError) as caught:
        world.bank.apply(Event(kind, START, named(data)))  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_problem_that_cannot_stand_there_is_refused() -> None:
    cases: tuple[tuple[JsonObject, str], ...] = (
        ({"pool": "bank:cellar"}, "bank.unknown_pool"),
        ({"pool": "bank:retired"}, "bank.bad_event"),
        ({"version": 2}, "bank.bad_event"),
        ({"cluster": "C(s)"}, "bank.meets_suite"),
        ({"cluster": "C(h1)"}, "bank.other_pool"),
        ({"cluster": "C(o1)", "pool": H}, "bank.was_exposed"),
        ({"problem": {}}, "bank.bad_event"),
    )
    for changes, code in cases:
        world = a_bank()
        cluster = str(changes.get("cluster", ""))
        if cluster.startswith("C("):
            changes["cluster"] = world.bank.need(cluster[2:-1]).cluster
        with pytest.raises(BankError) as caught:
            world.bank.apply(grown(world, "new", **changes))
        assert caught.value.code == code, changes


def test_a_problem_stands_once_and_in_one_cluster() -> None:
    world = a_bank()
    with pytest.raises(BankError, match="stands already") as caught:
        world.bank.apply(grown(world, "o1"))
    assert caught.value.code == "bank.stands_already"
    world = a_bank()
    world.apply(retire(world.bank, ["o1"], "renewed", START))
    with pytest.raises(BankError, match="two clusters") as caught:
        world.bank.apply(grown(world, "o1", version=2, cluster="another"))
    assert caught.value.code == "bank.two_clusters"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(BankError, match="time zone"):
        a_bank().bank.apply(Event(RETIRED, datetime(2027, 1, 1), {}))


class Life(RuleBasedStateMachine):
    """Anything that may happen to a bank, in any order; what is refused changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Banked()
        self.made = 0
        self.exposed: set[str] = set()
        """Problems that were ever open or drawn, by our own book."""
        self.steps: dict[str, tuple[Pool, ...]] = {}

    def _any(self, number: int) -> str | None:
        ids = [holding.problem_id for holding in self.world.bank]
        return ids[number % len(ids)] if ids else None

    @initialize()
    def begin(self) -> None:
        self.world.bring(Pool.HELD_OUT, problem("first", "0"), problem("second", "1"))

    @rule(
        products=st.lists(st.integers(0, 25), min_size=1, max_size=2, unique=True),
        pool=st.sampled_from([Pool.HELD_OUT, Pool.HELD_OUT, Pool.OPEN, Pool.SUITE_V1]),
    )
    def bring(self, products: list[int], pool: Pool) -> None:
        self.made += 1
        self.world.bring(pool, problem(f"p{self.made}", *map(str, products)))

    @rule(number=st.integers(0, 999))
    def retire(self, number: int) -> None:
        name = self._any(number)
        assert name is not None
        if not self.world.pool_of(name).is_suite:
            self.world.apply(retire(self.world.bank, [name], "why not", self.world.at))

    @rule(count=st.integers(1, 3))
    def race(self, count: int) -> None:
        drawn = [holding.problem_id for holding in self.world.bank.drawable()[:count]]
        assert not self.exposed.intersection(drawn)
        self.world.apply(mark_raced(self.world.bank, drawn, f"r{self.world.at}", self.world.at))
        self.exposed.update(drawn)

    @rule(seed=st.text(max_size=3), opens=st.integers(0, 3), retires=st.integers(0, 3))
    def rotate(self, seed: str, opens: int, retires: int) -> None:
        limits = RotationRule(opens=opens, retires=retires, held_out_min=0, open_min=0)
        rotation = rotate(self.world.bank, limits, seed=seed, at=self.world.at, early=True)
        self.world.apply(rotation.events(self.world.at))

    @rule(hours=st.integers(1, 48))
    def wait(self, hours: int) -> None:
        self.world.at += timedelta(hours=hours)

    def _holdings(self, pool: Pool) -> list[Holding]:
        return [holding for holding in self.world.bank if holding.pool is pool]

    @invariant()
    def clusters_stand_on_one_side(self) -> None:
        places: dict[str, set[Pool]] = {}
        for holding in self.world.bank:
            if not holding.retired:
                places.setdefault(holding.cluster, set()).add(holding.pool)
        assert all(len(pools) == 1 for pools in places.values())

    @invariant()
    def products_tie_problems_to_one_cluster(self) -> None:
        clusters: dict[str, str] = {}
        for holding in self.world.bank:
            for product in holding.products:
                assert clusters.setdefault(product, holding.cluster) == holding.cluster

    @invariant()
    def what_was_seen_is_never_drawn_again(self) -> None:
        self.exposed.update(h.problem_id for h in self._holdings(Pool.OPEN))
        seen = {self.world.bank.need(i).cluster for i in self.exposed}
        assert not seen & {holding.cluster for holding in self.world.bank.drawable()}

    @invariant()
    def nobody_comes_back(self) -> None:
        order = {Pool.HELD_OUT: 0, Pool.OPEN: 1, Pool.RETIRED: 2, Pool.SUITE_V1: 3}
        for holding in self.world.bank:
            ranks = [order[step.pool] for step in holding.history]
            assert ranks == sorted(ranks)
            assert holding.history[-1].pool is holding.pool

    @invariant()
    def indices_agree_with_the_holdings(self) -> None:
        for pool in LIVE:
            assert {h.problem_id for h in self.world.bank.live(pool)} == {
                h.problem_id for h in self._holdings(pool)
            }

    def teardown(self) -> None:
        """The journal alone gives the same bank."""
        assert list(Bank.folded(self.world.events)) == list(self.world.bank)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
