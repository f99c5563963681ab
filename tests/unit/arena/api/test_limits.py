"""Token buckets, and what they take for one client."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arena.api.limits import RateLimit, address_key


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_burst_then_the_rate() -> None:
    hand = Hand()
    limit = RateLimit(2.0, 3.0, now=hand)
    assert [limit.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take("a") == 0.5
    hand.at = 0.5
    assert limit.take("a") == 0.0
    assert limit.take("a") > 0
    assert limit.take("b") == 0.0


@given(st.lists(st.floats(0, 10), max_size=200), st.floats(0.1, 50), st.integers(1, 20))
def test_no_more_than_burst_and_rate_allow(steps: list[float], rate: float, burst: int) -> None:
    hand = Hand()
    limit = RateLimit(rate, burst, now=hand)
    passed = 0
    for step in steps:
        hand.at += step
        passed += limit.take("a") == 0.0
    assert passed <= burst + rate * hand.at + 1e-6


def test_a_clock_that_goes_back_gives_nothing() -> None:
    hand = Hand()
    hand.at = 100.0
    limit = RateLimit(1.0, 1.0, now=hand)
    assert limit.take("a") == 0.0
    hand.at = 0.0
    assert limit.take("a") > 0


def test_memory_is_bounded() -> None:
    limit = RateLimit(1.0, 1.0, now=Hand(), max_keys=10)
    for i in range(100):
        limit.take(str(i))
    assert len(limit._buckets) == 10


def test_an_ipv6_client_is_its_network() -> None:
    assert address_key("2001:db8::1") == address_key("2001:db8::2:3") == "2001:db8::/64"
    assert address_key("::ffff:10.0.0.1") == address_key("10.0.0.1") == "10.0.0.1"
    assert address_key(None) == "?"
    assert len(address_key("x" * 1_000)) == 64
