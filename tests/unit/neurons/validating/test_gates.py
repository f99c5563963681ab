"""What keeps runs from being claimed, told once when it begins and once when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from neurons.chain import Peer, Subnet
from neurons.validating.gates import (
    RAO_PER_TAO,
    Gates,
    disk_gate,
    money_gate,
    not_allowed,
    standing_gate,
)
from neurons.validating.spending import Spending
from tests.unit.neurons.validating.wire import Time

PEER = Peer(4, "5Alice", "5Cold", permit=True, stake=700 * RAO_PER_TAO, last_update=0)
SUBNET = Subnet(15, 1_000, 360, (PEER,))


def test_a_gate_is_told_once_each_way() -> None:
    reasons: Iterator[str | None] = iter([None, "full", "full", "fuller", None, None])
    seen: list[bool] = []
    gates = Gates({"disk": lambda: next(reasons)}, lambda name, shut: seen.append(shut))
    with capture_logs() as logs:
        assert [gates.look() for _ in range(6)] == [True, False, False, False, True, True]
    assert [line["event"] for line in logs] == ["no run is claimed", "runs are claimed again"]
    assert logs[0]["reason"] == "full"
    assert seen == [False, True, True, True, False, False]
    assert gates.shut == {}


def test_every_gate_is_looked_at_and_one_is_enough() -> None:
    gates = Gates({"a": lambda: "x", "b": lambda: None, "c": lambda: "y"}, lambda name, shut: None)
    assert not gates.look()
    assert gates.shut == {"a": "x", "c": "y"}


def test_nothing_is_claimed_on_a_nearly_full_disk(tmp_path: Path) -> None:
    free = [3 << 30, 1 << 30, 2 << 30]
    gate = disk_gate(tmp_path, 2.0, lambda path: free.pop(0))
    assert gate() is None
    assert "1.0 GiB are free" in str(gate())
    assert gate() is None


def test_a_disk_that_cannot_be_looked_at_is_a_reason(tmp_path: Path) -> None:
    assert "cannot be looked at" in str(disk_gate(tmp_path / "gone", 0.0)())


def test_the_day_has_a_ceiling_and_ends(tmp_path: Path) -> None:
    time = Time()
    spending = Spending(tmp_path, 1.5, time)
    gate = money_gate(spending, 1.5)
    spending.note(1.0)
    assert gate() is None
    spending.note(0.5)
    assert "1.50 USD are spent of 1.50" in str(gate())
    assert "2026-11-22 00:00 UTC" in str(gate())
    time.now += timedelta(hours=12)
    assert gate() is None


def test_without_a_ceiling_money_keeps_nobody(tmp_path: Path) -> None:
    spending = Spending(tmp_path, None, Time())
    spending.note(1e9)
    assert money_gate(spending, None)() is None


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        (replace(PEER, hotkey="5Other"), "is not registered on subnet 15"),
        (replace(PEER, permit=False), "no validator permit"),
        (replace(PEER, stake=99 * RAO_PER_TAO), "99.00 TAO at stake, and 100 are asked for"),
    ],
)
def test_who_may_not_validate_is_told_why_in_one_line(peer: Peer, words: str) -> None:
    reason = not_allowed(replace(SUBNET, peers=(peer,)), "5Alice", 100.0)
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_a_permit_may_be_revoked_and_come_back() -> None:
    seen: list[Subnet | None] = [None, SUBNET, replace(SUBNET, peers=()), SUBNET]
    gate = standing_gate("5Alice", 0.0, lambda: seen.pop(0))
    assert [gate() is None for _ in range(4)] == [True, True, False, True]
