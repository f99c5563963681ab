"""Whose time an agent runs on."""

from __future__ import annotations

import pytest

from sandbox.exceptions import Fault
from sandbox.isolation.clock import AgentClock
from sandbox.isolation.interface import AGENT_TIMEOUT, HOST_HARD_STOP, SandboxLimits


class World:
    """A clock that stands until it is told."""

    def __init__(self, wall_s: float = 10, hard_wall_s: float = 30) -> None:
        self.now = 1000.0
        self.excused = 0.0
        limits = SandboxLimits(wall_s=wall_s, hard_wall_s=hard_wall_s)
        self.clock = AgentClock(limits, lambda: self.excused, lambda: self.now)

    def judge(self, after_s: float, excused_s: float = 0.0) -> tuple[str, Fault] | None:
        self.clock.start()
        self.now += after_s
        self.excused = excused_s
        error = self.clock.overrun()
        return (error.code, error.fault) if error else None


@pytest.mark.parametrize(
    ("after_s", "excused_s", "verdict"),
    [
        (9.9, 0, None),
        (10, 0, (AGENT_TIMEOUT, Fault.AGENT)),
        (12, 3, None),
        (13, 3, (AGENT_TIMEOUT, Fault.AGENT)),
        (29.9, 25, None),
        (30, 25, (HOST_HARD_STOP, Fault.VALIDATOR)),
        (30, 1000, (HOST_HARD_STOP, Fault.VALIDATOR)),
        (30, 20, (AGENT_TIMEOUT, Fault.AGENT)),
        (5, -100, None),
    ],
)
def test_the_end_of_the_time_and_whose_fault_it_is(
    after_s: float, excused_s: float, verdict: tuple[str, Fault] | None
) -> None:
    assert World().judge(after_s, excused_s) == verdict


def test_a_hard_stop_that_nothing_excused_led_to_is_the_agents() -> None:
    assert World(wall_s=50, hard_wall_s=30).judge(30) == (AGENT_TIMEOUT, Fault.AGENT)


def test_nothing_runs_before_the_start() -> None:
    world = World()
    world.now += 100
    assert world.clock.wall_s == 0
    assert world.clock.overrun() is None


def test_remaining_time_grows_with_what_is_excused_and_ends_at_the_hard_stop() -> None:
    world = World()
    world.clock.start()
    world.now += 4
    assert world.clock.remaining_s() == 6
    world.excused = 3
    assert world.clock.remaining_s() == 9
    world.excused = 1000
    world.now += 22
    assert world.clock.remaining_s() == 4


def test_more_than_has_passed_is_never_excused() -> None:
    world = World()
    world.judge(5, excused_s=100)
    assert world.clock.excused_s() == 5


def test_the_first_stop_decides() -> None:
    world = World()
    world.clock.start()
    world.now += 2
    world.clock.stop()
    world.now += 50
    world.clock.stop()
    assert world.clock.wall_s == 2
    assert world.clock.overrun() is None


def test_an_agent_that_computes_does_not_wait() -> None:
    world, used = World(), [100.0]
    world.clock.start(lambda: used[0])
    world.now, world.excused, used[0] = world.now + 9, 9.0, 108.0
    assert (world.clock.own_s(), world.clock.remaining_s(), world.clock.overrun()) == (8, 2, None)
    world.now, world.excused, used[0] = world.now + 3, 12.0, 110.5
    error = world.clock.overrun()
    assert error is not None
    assert (error.code, error.fault) == (AGENT_TIMEOUT, Fault.AGENT)


def test_processor_time_after_the_stop_does_not_count() -> None:
    world, used = World(), [0.0]
    world.clock.start(lambda: used[0])
    world.now += 1
    world.clock.stop()
    used[0] = 50.0
    assert world.clock.overrun() is None
