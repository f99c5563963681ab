"""A race stops when the host is broken, and not when some runs are."""

from __future__ import annotations

import pytest

from arena.exceptions import Fault, RaceError
from arena.races.race import GIVE_UP_AFTER, HostHealth
from tests.unit.arena import builders
from tests.unit.arena.builders import AGENT_FAULT, HOST_FAULT

PROBLEM = builders.problem()


def test_a_host_that_fails_again_and_again_stops_the_race_with_the_reason() -> None:
    host = HostHealth()
    for _ in range(GIVE_UP_AFTER - 1):
        host.watch(builders.record(PROBLEM, failure=HOST_FAULT))
    with pytest.raises(RaceError, match="no sandbox") as caught:
        host.watch(builders.record(PROBLEM, failure=HOST_FAULT))
    assert caught.value.fault is Fault.VALIDATOR


def test_agents_that_fail_never_stop_a_race() -> None:
    host = HostHealth()
    for _ in range(3 * GIVE_UP_AFTER):
        host.watch(builders.record(PROBLEM, failure=AGENT_FAULT))


def test_one_run_with_an_outcome_shows_that_the_host_works() -> None:
    host = HostHealth()
    for _ in range(3):
        for _ in range(GIVE_UP_AFTER - 1):
            host.watch(builders.record(PROBLEM, failure=HOST_FAULT))
        host.watch(builders.record(PROBLEM))
