"""Suites are never touched, evaluation is drawn once and frozen, the rest is trained on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from arena.exceptions import JournalConflictError, PartitionError
from arena.journal import Entry, Event, MemoryJournal
from arena.problems.clusters import Clusters
from arena.problems.partition import (
    FROZEN,
    MERGED,
    OPENED,
    STREAM,
    TWO_CLUSTERS,
    Partition,
    Reason,
    Shares,
)
from arena.problems.placement import decide, extend, partition_of
from arena.problems.pools import Side
from scoring.types import Bucket, Problem, Reward
from tests.unit.arena.problems.leaks import asked, wanted

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TITLES = ("Garden hose", "Brake pads", "Coin bank", "Reading lamp", "Chili powder")


@dataclass
class Names:
    """Clusters as a test has them: the name of each problem's cluster."""

    of: dict[str, str] = field(default_factory=dict)

    def find(self, problem_id: str) -> str | None:
        return self.of.get(problem_id)

    def resolve(self, cluster: str) -> str:
        return cluster


def problem(name: str, bucket: Bucket = Bucket.PRODUCT, pool: str | None = None) -> Problem:
    return Problem(name, "query", bucket, (Reward(name),), pool=pool)


def bank(count: int) -> list[Problem]:
    return [problem(f"{bucket}-{i:03}", bucket) for bucket in Bucket for i in range(count)]


def alone(problems: Iterable[Problem]) -> Names:
    return Names({p.problem_id: f"c-{p.problem_id}" for p in problems})


def after(
    partition: Partition,
    problems: Iterable[Problem],
    names: Names,
    *,
    seed: str = "s",
    shares: Shares | None = None,
    top_up: bool = False,
) -> list[Event]:
    """Decide and take in; returns the events."""
    events = decide(partition, problems, names, seed=seed, at=NOON, shares=shares, top_up=top_up)
    for event in events:
        partition.apply(event)
    return events


def evaluated(partition: Partition) -> Mapping[Bucket, int]:
    found = (partition.standing_of(i) for i in partition.problems(Side.EVALUATION))
    return Counter(standing.bucket for standing in found if standing)


def test_evaluation_takes_its_count_of_each_bucket_and_training_the_rest() -> None:
    partition, problems = Partition(), bank(200)
    after(partition, problems, alone(problems))
    assert evaluated(partition) == dict.fromkeys(Bucket, 30)
    assert len(partition.problems(Side.TRAINING)) == 600 - 90
    assert partition.problems(Side.NEVER) == ()


def test_a_small_bank_keeps_most_for_training_and_has_an_evaluation_set() -> None:
    partition, problems = Partition(), bank(3)
    after(partition, problems, alone(problems))
    assert evaluated(partition) == dict.fromkeys(Bucket, 1)


def test_a_bank_too_small_for_an_evaluation_set_is_not_frozen_without_one() -> None:
    partition, problems = Partition(), bank(1)
    after(partition, problems, alone(problems))
    assert (partition.seed, partition.problems(Side.EVALUATION)) == (None, ())
    problems = bank(4)
    after(partition, problems, alone(problems))
    assert evaluated(partition) == dict.fromkeys(Bucket, 1)


def test_the_seed_decides_and_the_order_of_the_problems_does_not() -> None:
    problems = bank(40)
    drawn: list[str] = []
    for seed in ("s", "s", "t"):
        random.Random(len(drawn)).shuffle(problems)
        partition = Partition()
        after(partition, problems, alone(problems), seed=seed)
        drawn.append(partition.hash if seed == "s" else partition.evaluation_hash)
    assert drawn[0] == drawn[1]
    other = Partition()
    after(other, problems, alone(problems), seed="s")
    assert other.evaluation_hash != drawn[2]


def test_whole_clusters_are_drawn_and_none_that_overfills_a_bucket() -> None:
    problems = bank(40)
    names = alone(problems)
    for p in problems[:15]:
        names.of[p.problem_id] = "c-heap"
    partition = Partition()
    after(partition, problems, names, shares=Shares(dict.fromkeys(Bucket, 8)))
    assert {partition.side_of(p.problem_id) for p in problems[:15]} == {Side.TRAINING}
    assert evaluated(partition) == dict.fromkeys(Bucket, 8)


def test_suites_and_what_comes_in_their_clusters_are_never_touched() -> None:
    problems = [*bank(4), problem("suite", pool="suite:v2"), problem("later", pool="suite:v9")]
    names = alone(problems)
    names.of["product-000"] = names.of["suite"]
    partition = Partition()
    after(partition, problems, names)
    reasons = {i: partition.standing_of(i) for i in partition.problems(Side.NEVER)}
    assert {i: s.reason for i, s in reasons.items() if s} == {
        "suite": Reason.SUITE,
        "later": Reason.SUITE,
        "product-000": Reason.SUITE_CLUSTER,
    }


def test_suites_alone_do_not_draw_evaluation() -> None:
    partition = Partition()
    suite = problem("suite", pool="suite:v1")
    events = after(partition, [suite], alone([suite]))
    assert OPENED not in {event.kind for event in events}
    problems = [suite, *bank(10)]
    after(partition, problems, alone(problems))
    assert len(partition.problems(Side.EVALUATION)) == 6


def test_what_stands_is_left_out_and_nothing_new_means_no_event() -> None:
    partition, problems = Partition(), bank(10)
    after(partition, problems, alone(problems))
    assert after(partition, problems, alone(problems)) == []


def test_new_clusters_are_trained_on_and_evaluation_stays_as_it_is() -> None:
    partition, problems = Partition(), bank(10)
    after(partition, problems, alone(problems))
    before = partition.evaluation_hash
    problems = bank(50)
    after(partition, problems, alone(problems))
    assert partition.evaluation_hash == before
    assert len(partition.problems(Side.TRAINING)) == 150 - 6


def test_a_short_bucket_is_topped_up_on_request_and_from_new_clusters_only() -> None:
    partition, problems = Partition(), bank(10)
    after(partition, problems, alone(problems))
    first = set(partition.problems(Side.EVALUATION))
    trained = set(partition.problems(Side.TRAINING))
    problems = bank(200)
    after(partition, problems, alone(problems), top_up=True)
    now = set(partition.problems(Side.EVALUATION))
    assert evaluated(partition) == dict.fromkeys(Bucket, 30)
    assert first < now
    assert not now & trained


def test_what_joins_a_frozen_cluster_is_not_trained_on_and_does_not_move_in() -> None:
    partition, problems = Partition(), bank(10)
    names = alone(problems)
    after(partition, problems, names)
    chosen = partition.problems(Side.EVALUATION)[0]
    trained = partition.problems(Side.TRAINING)[0]
    names.of |= {"new": names.of[chosen], "fine": names.of[trained]}
    after(partition, [*problems, problem("new"), problem("fine")], names)
    new, fine = partition.standing_of("new"), partition.standing_of("fine")
    assert new is not None
    assert fine is not None
    assert (new.side, new.reason) == (Side.NEVER, Reason.FROZEN_CLUSTER)
    assert (fine.side, fine.reason) == (Side.TRAINING, Reason.TRAINING_CLUSTER)


def test_when_clusters_meet_training_leaves_and_the_event_says_so() -> None:
    partition, problems = Partition(), bank(10)
    names = alone(problems)
    after(partition, problems, names)
    chosen = partition.problems(Side.EVALUATION)[0]
    trained = partition.problems(Side.TRAINING)[0]
    before = partition.evaluation_hash
    absorbed = names.of[trained]
    names.of[trained] = names.of[chosen]
    (event,) = after(partition, problems, names)
    assert event.kind == MERGED
    assert event.data["absorbed"] == [absorbed]
    assert event.data["left"] == {trained: Reason.MET_EVALUATION.value}
    assert partition.side_of(trained) is Side.NEVER
    assert partition.evaluation_hash == before


def test_a_suite_that_comes_late_makes_training_leave_and_evaluation_stay() -> None:
    partition, problems = Partition(), bank(10)
    names = alone(problems)
    after(partition, problems, names)
    chosen = partition.problems(Side.EVALUATION)[0]
    trained = partition.problems(Side.TRAINING)[0]
    late = [problem("s1", pool="suite:v3"), problem("s2", pool="suite:v3")]
    names.of |= {"s1": names.of[chosen], "s2": names.of[trained]}
    after(partition, [*problems, *late], names)
    left = partition.standing_of(trained)
    assert left is not None
    assert (left.side, left.reason) == (Side.NEVER, Reason.MET_SUITE)
    assert partition.side_of(chosen) is Side.EVALUATION


def test_one_problem_that_bridges_two_clusters_merges_them() -> None:
    def named(name: str, *products: str) -> Problem:
        return asked(name, name, *(wanted(p, TITLES[int(p)]) for p in products))

    problems = [named(str(i), str(i)) for i in range(4)]
    clusters = Clusters.of(problems)
    partition = Partition()
    for event in decide(partition, problems, clusters, seed="s", at=NOON):
        partition.apply(event)
    (chosen,) = partition.problems(Side.EVALUATION)
    other = next(i for i in "0123" if i != chosen)
    bridge = named("bridge", chosen, other)
    clusters.add(bridge)
    for event in decide(partition, [bridge], clusters, seed="s", at=NOON):
        partition.apply(event)
    assert partition.side_of(other) is Side.NEVER
    assert partition.side_of("bridge") is Side.NEVER
    assert partition.side_of(chosen) is Side.EVALUATION


def test_clusters_rebuilt_in_another_order_change_names_and_nothing_else() -> None:
    problems = [asked(str(i), TITLES[i], wanted("7", TITLES[i])) for i in range(3)]
    partition = Partition()
    for order in (problems, problems[::-1], problems):
        for event in decide(partition, order, Clusters.of(order), seed="s", at=NOON):
            partition.apply(event)
        assert len(partition.clusters()) == 1
        assert len(partition) == 3


def refused(code: str, partition: Partition, problems: list[Problem], names: Names) -> None:
    with pytest.raises(PartitionError) as caught:
        after(partition, problems, names)
    assert caught.value.code == code


def test_a_problem_with_two_clusters_is_refused() -> None:
    partition, problems = Partition(), bank(2)
    names = alone(problems)
    names.of["product-001"] = names.of["product-000"]
    after(partition, problems, names)
    names.of["product-001"] = "c-elsewhere"
    refused(TWO_CLUSTERS, partition, problems, names)
    twice = [*bank(1), problem("product-000", Bucket.SHOP)]
    refused(TWO_CLUSTERS, Partition(), twice, alone(twice))
    with pytest.raises(PartitionError, match="has no cluster"):
        after(Partition(), bank(1), Names())


def test_another_seed_or_other_shares_are_refused_once_evaluation_is_drawn() -> None:
    partition, problems = Partition(), bank(5)
    after(partition, problems, alone(problems))
    for seed, shares in (("t", None), ("s", Shares(most=0.5))):
        with pytest.raises(PartitionError) as caught:
            decide(partition, problems, alone(problems), seed=seed, at=NOON, shares=shares)
        assert caught.value.code == FROZEN


async def test_a_journal_keeps_it() -> None:
    journal, problems = MemoryJournal(), bank(10)
    first = await extend(journal, problems[:20], alone(problems), seed="s", at=NOON)
    second = await extend(journal, problems, alone(problems), seed="s", at=NOON)
    assert (await partition_of(journal)).hash == second.hash != first.hash
    assert second.evaluation_hash == first.evaluation_hash
    entries = await journal.read(STREAM)
    again = await extend(journal, problems, alone(problems), seed="s", at=NOON)
    assert (await journal.read(STREAM)) == entries
    assert again.hash == second.hash


class _Overtaken(MemoryJournal):
    """Somebody else appends between the read and the append."""

    async def read(self, stream: str, *, after: int = 0) -> list[Entry]:
        entries = await super().read(stream, after=after)
        shares = Shares().to_json()
        event = Event(OPENED, NOON, {"seed": "other", "shares": shares})
        await self.append(stream, [event], after=len(entries))
        return entries


async def test_two_who_extend_at_once_do_not_both_write() -> None:
    problems = bank(5)
    with pytest.raises(JournalConflictError):
        await extend(_Overtaken(), problems, alone(problems), seed="s", at=NOON)


class Growing(RuleBasedStateMachine):
    """Problems come, clusters merge, suites appear: evaluation never changes, sides never mix."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[Problem] = []
        self.names = Names()
        self.partition = Partition()
        self.events: list[Event] = []
        self.frozen: frozenset[str] | None = None
        self.never: frozenset[str] = frozenset()

    @rule(
        bucket=st.sampled_from(Bucket),
        suite=st.integers(0, 9),
        cluster=st.integers(0, 30),
        count=st.integers(1, 4),
    )
    def come(self, bucket: Bucket, suite: int, cluster: int, count: int) -> None:
        for _ in range(count):
            name = f"p{len(self.problems)}"
            pool = "suite:v1" if suite == 0 else "bank:open"
            self.problems.append(problem(name, bucket, pool))
            known = sorted(set(self.names.of.values()))
            self.names.of[name] = known[cluster] if cluster < len(known) else f"c-{name}"

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        known = sorted(set(self.names.of.values()))
        if len(known) < 2:
            return
        one, other = data.draw(st.lists(st.sampled_from(known), min_size=2, max_size=2))
        for name, cluster in self.names.of.items():
            self.names.of[name] = one if cluster == other else cluster

    @rule()
    def extend(self) -> None:
        self.events += after(self.partition, self.problems, self.names)
        if self.frozen is None and self.partition.seed is not None:
            self.frozen = frozenset(self.partition.problems(Side.EVALUATION))
            assert self.frozen
        assert self.never <= frozenset(self.partition.problems(Side.NEVER))
        self.never = frozenset(self.partition.problems(Side.NEVER))
        # Everybody stands, in the cluster that the names say.
        assert len(self.partition) == len(self.problems)
        for p in self.problems:
            standing = self.partition.standing_of(p.problem_id)
            assert standing is not None
            assert standing.cluster == self.names.of[p.problem_id]

    @invariant()
    def evaluation_never_changes(self) -> None:
        evaluation = frozenset(self.partition.problems(Side.EVALUATION))
        assert evaluation == (self.frozen or frozenset())

    @invariant()
    def no_cluster_is_trained_on_and_held_back(self) -> None:
        self.partition.check()
        for members in self.partition.clusters().values():
            sides = {self.partition.side_of(i) for i in members}
            assert Side.TRAINING not in sides or len(sides) == 1

    @invariant()
    def suites_are_never_touched(self) -> None:
        for p in self.problems:
            if p.pool == "suite:v1" and p.problem_id in self.partition:
                assert self.partition.side_of(p.problem_id) is Side.NEVER

    @invariant()
    def the_events_and_the_file_lead_to_the_same(self) -> None:
        assert Partition.folded(self.events).hash == self.partition.hash
        assert Partition.from_json(self.partition.to_json()).hash == self.partition.hash


TestGrowing = Growing.TestCase
TestGrowing.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
