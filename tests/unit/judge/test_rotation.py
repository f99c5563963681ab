"""Which judge model is asked next."""

from __future__ import annotations

import pytest

from judge.rotation import CAP_S, LASTING_REST_S, Rotation
from sandbox.models import faults


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rotation(*names: str) -> tuple[Rotation, Clock]:
    clock = Clock()
    return Rotation(names, 1.0, clock), clock


def test_healthy_models_are_asked_in_order() -> None:
    models, _ = rotation("a", "b")
    assert models.next() == ("a", 0.0)
    assert models.next({"a"}) == ("b", 0.0)
    assert models.next({"a", "b"}) is None


def test_a_model_that_failed_rests_longer_each_time() -> None:
    models, clock = rotation("a")
    rests = []
    for _ in range(9):
        models.failed("a", faults.TIMEOUT)
        rests.append(models.next())
        clock.now += 1000
    assert rests[:4] == [("a", 1.0), ("a", 2.0), ("a", 4.0), ("a", 8.0)]
    assert rests[-1] == ("a", CAP_S)
    models.worked("a")
    models.failed("a", faults.TIMEOUT)
    assert models.next() == ("a", 1.0)


def test_of_two_awake_the_one_that_failed_less_is_asked() -> None:
    models, clock = rotation("a", "b")
    models.failed("a", faults.RATE_LIMITED)
    clock.now += 10
    assert models.next() == ("b", 0.0)
    models.failed("b", faults.EMPTY_ANSWER)
    assert models.next() == ("a", 0.0)


@pytest.mark.parametrize("code", [faults.KEY_REFUSED, faults.NO_FUNDS, faults.NOT_SERVED])
def test_nobody_waits_for_what_only_the_operator_can_mend(code: str) -> None:
    models, clock = rotation("a")
    models.failed("a", code)
    assert models.next() is None
    clock.now += LASTING_REST_S + 1
    assert models.next() == ("a", 0.0)


def test_a_refused_shape_gets_plainer_and_a_long_trace_shorter_until_nothing_is_left() -> None:
    models, _ = rotation("a")
    assert [models.refuse_shape("a") for _ in range(3)] == [True, True, False]
    assert models.plainness("a") == 2
    assert models.budget("a", 24_000) == 24_000
    assert models.shrink("a", 10_000)
    assert models.budget("a", 24_000) == 5_000
    assert models.shrink("a", 5_000)
    assert not models.shrink("a", 900)
    assert models.budget("a", 24_000) == 1_000
