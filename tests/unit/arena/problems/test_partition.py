"""A partition is what its events say, refuses what must not be, and survives as JSON."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from arena.exceptions import PartitionError
from arena.journal import Event
from arena.problems.partition import (
    BROKEN,
    FROZEN,
    MERGED,
    OPENED,
    PLACED,
    TWO_CLUSTERS,
    TWO_SIDES,
    Partition,
    Reason,
    Shares,
    read_partition,
    write_partition,
)
from arena.problems.pools import Side
from scoring.types import Bucket

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def opened() -> Event:
    return Event(OPENED, NOON, {"seed": "s", "shares": Shares().to_json()})


def placed(
    cluster: str,
    side: Side,
    *problems: str,
    reason: Reason = Reason.NEW_CLUSTER,
    left: dict[str, Any] | None = None,
) -> Event:
    rows: Any = dict.fromkeys(problems, "product")
    data = {"cluster": cluster, "side": side.value, "reason": reason.value, "problems": rows}
    return Event(PLACED, NOON, {**data, "left": left or {}})


def merged(cluster: str, *absorbed: str, left: dict[str, Any] | None = None) -> Event:
    data: Any = {"cluster": cluster, "absorbed": list(absorbed), "left": left or {}}
    return Event(MERGED, NOON, data)


EVENTS = [
    opened(),
    placed("c1", Side.EVALUATION, "a", "b", reason=Reason.CHOSEN),
    placed("c2", Side.TRAINING, "x", "y"),
    placed("c3", Side.NEVER, "s", reason=Reason.SUITE),
    placed("c4", Side.TRAINING, "z"),
    merged("c1", "c2", left={"x": "met_evaluation", "y": "met_evaluation"}),
]


def refused(code: str, *events: Event) -> str:
    with pytest.raises(PartitionError) as caught:
        Partition.folded([*EVENTS, *events])
    assert caught.value.code == code
    return caught.value.message


def test_the_events_say_who_stands_where_and_why() -> None:
    partition = Partition.folded(EVENTS)
    assert partition.problems(Side.EVALUATION) == ("a", "b")
    assert partition.problems(Side.TRAINING) == ("z",)
    assert partition.problems(Side.NEVER) == ("s", "x", "y")
    assert partition.side_of("x") is Side.NEVER
    assert partition.side_of("unknown") is None
    standing = partition.standing_of("x")
    assert standing is not None
    assert (standing.cluster, standing.bucket) == ("c1", Bucket.PRODUCT)
    assert standing.reason is Reason.MET_EVALUATION
    assert partition.members("c2") == partition.members("c1")
    assert partition.clusters()["c1"] == ("a", "b", "x", "y")
    assert "c2" not in partition.clusters()
    assert len(partition) == 6


def test_a_cluster_on_two_sides_is_refused() -> None:
    assert "c4 is on two sides" in refused(
        TWO_SIDES, placed("c4", Side.NEVER, "new", reason=Reason.SUITE)
    )
    refused(TWO_SIDES, merged("c1", "c4"))
    refused(TWO_SIDES, placed("c3", Side.TRAINING, "new"))


def test_a_problem_in_two_clusters_is_refused() -> None:
    refused(TWO_CLUSTERS, placed("c9", Side.TRAINING, "z"))


def test_only_training_problems_leave_and_only_with_their_own_cluster() -> None:
    refused(FROZEN, merged("c1", "c3", left={"a": "met_suite"}))
    refused(FROZEN, merged("c1", "c3", left={"z": "met_suite"}))


def test_evaluation_is_drawn_once() -> None:
    refused(FROZEN, opened())


@pytest.mark.parametrize(
    "event",
    [
        placed("c2", Side.TRAINING, "late"),
        placed("c4", Side.TRAINING, "z"),
        merged("c1", "c1"),
        merged("c1", "nowhere"),
        merged("c2", "c4"),
        Event("partition.unknown", NOON, {}),
        Event(PLACED, NOON, {"cluster": "c9"}),
        Event(PLACED, NOON, {**placed("c9", Side.TRAINING, "n").data, "side": "aside"}),
        Event(MERGED, NOON, {"cluster": "c1", "absorbed": "c3", "left": {}}),
    ],
)
def test_events_that_cannot_be_are_refused(event: Event) -> None:
    refused(BROKEN, event)


def test_json_holds_everything_and_its_order_does_not_matter() -> None:
    partition = Partition.folded(EVENTS)
    value = json.loads(json.dumps(partition.to_json()))
    again = Partition.from_json(value)
    assert again.to_json() == partition.to_json()
    assert again.hash == partition.hash
    assert again.resolve("c2") == "c1"
    assert again.shares == Shares()
    reordered = {key: value[key] for key in reversed(value)}
    assert Partition.from_json(reordered).hash == partition.hash


def test_evaluation_keeps_its_hash_while_the_rest_grows() -> None:
    partition = Partition.folded(EVENTS)
    before, whole = partition.evaluation_hash, partition.hash
    partition.apply(placed("c8", Side.TRAINING, "new"))
    assert partition.evaluation_hash == before
    assert partition.hash != whole


def spoilt(**changes: Any) -> Any:
    return {**deepcopy(Partition.folded(EVENTS).to_json()), **changes}


def test_a_cluster_on_two_sides_is_found_from_the_json_alone() -> None:
    value = spoilt()
    value["clusters"]["c1"]["x"]["side"] = "training"
    with pytest.raises(PartitionError) as caught:
        Partition.from_json(value)
    assert caught.value.code == TWO_SIDES


def test_a_problem_in_two_clusters_is_found_from_the_json_alone() -> None:
    value = spoilt()
    value["clusters"]["c9"] = {"z": value["clusters"]["c4"]["z"]}
    with pytest.raises(PartitionError) as caught:
        Partition.from_json(value)
    assert caught.value.code == TWO_CLUSTERS


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        spoilt(schema="partition-9"),
        spoilt(clusters={"c1": {}}),
        spoilt(clusters={"c1": {"a": {"bucket": "none", "side": "training", "reason": "chosen"}}}),
        spoilt(aliases={"c2": "c0"}),
        spoilt(aliases={"c2": "c5", "c5": "c2"}),
        spoilt(aliases={"c4": "c1"}),
        spoilt(shares={"per_bucket": {"product": -1}, "most": 0.5}),
        spoilt(shares=None),
    ],
)
def test_what_is_no_partition_is_refused(value: Any) -> None:
    with pytest.raises(PartitionError) as caught:
        Partition.from_json(value)
    assert caught.value.code == BROKEN


def test_a_file_holds_it_without_a_database(tmp_path: Path) -> None:
    path = tmp_path / "partition.json"
    partition = Partition.folded(EVENTS)
    write_partition(partition, path)
    assert read_partition(path).hash == partition.hash
    assert [file.name for file in tmp_path.iterdir()] == ["partition.json"]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "partition.json"
    for text in ("{", "[]", "\udcff"):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(PartitionError, match=r"partition\.json"):
            read_partition(path)
    with pytest.raises(PartitionError, match=r"missing\.json"):
        read_partition(tmp_path / "missing.json")
    with pytest.raises(PartitionError, match="cannot be written"):
        write_partition(Partition(), tmp_path / "no" / "partition.json")
