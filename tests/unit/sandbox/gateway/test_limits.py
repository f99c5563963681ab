"""The budget of a run: whatever is asked in whatever order, no limit is passed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sandbox.gateway.interface import GatewayLimits
from sandbox.gateway.limits import RESERVED_TOKENS, Budget, LimitError, Reservation

LIMITS = GatewayLimits(
    requests=40, requests_per_second=5.0, burst=4, body_bytes=100, total_body_bytes=350,
    model_calls=6, completion_tokens=9000, cost_usd=0.01,
)  # fmt: skip


class BudgetMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.budget = Budget(LIMITS, self.now)
        self.admitted: list[float] = []
        self.open: list[tuple[Reservation, int]] = []
        self.calls = 0

    @rule(seconds=st.floats(0, 3))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def request(self) -> None:
        try:
            self.budget.admit_request(self.now)
        except LimitError as error:
            assert error.limit in ("requests", "requests_per_second")  # noqa: PT017
        else:
            self.admitted.append(self.now)

    @rule(size=st.integers(0, 200))
    def body(self, size: int) -> None:
        try:
            self.budget.admit_body(size)
        except LimitError as error:
            assert size > self.budget.body_room(), error.limit  # noqa: PT017
        else:
            assert size <= self.budget.body_room()
            self.budget.take_bytes(size)

    @rule(
        max_tokens=st.none() | st.integers(1, 10_000),
        choices=st.integers(1, 4),
        prompt_usd=st.floats(0, 0.004),
    )
    def call(self, max_tokens: int | None, choices: int, prompt_usd: float) -> None:
        try:
            reservation = self.budget.admit_model_call(
                max_tokens=max_tokens, choices=choices, prompt_usd=prompt_usd, token_usd=1e-7
            )
        except LimitError:
            return
        self.calls += 1
        asked = RESERVED_TOKENS if max_tokens is None else min(max_tokens, RESERVED_TOKENS)
        self.open.append((reservation, asked * choices))

    @rule(share=st.floats(0, 1), failed=st.booleans())
    def answer(self, share: float, failed: bool) -> None:
        if not self.open:
            return
        reservation, _ = self.open.pop()
        tokens = 0 if failed else int(reservation.tokens * share)
        cost = 0.0 if failed else reservation.cost_usd * share
        self.budget.settle(reservation, tokens=tokens, cost_usd=cost)

    @invariant()
    def no_limit_is_passed(self) -> None:
        assert len(self.admitted) <= LIMITS.requests
        assert self.budget.body_bytes <= LIMITS.total_body_bytes
        assert self.calls == self.budget.model_calls <= LIMITS.model_calls
        # Calls that keep to what was set aside for them never pass the limits together.
        assert self.budget.completion_tokens <= LIMITS.completion_tokens
        assert self.budget.cost_usd <= LIMITS.cost_usd + 1e-9
        assert 0 <= self.budget.tokens_left() <= LIMITS.completion_tokens

    @invariant()
    def no_window_holds_more_than_burst_and_rate_allow(self) -> None:
        for first, begin in enumerate(self.admitted):
            for last in range(first, len(self.admitted)):
                window = self.admitted[last] - begin
                allowed = LIMITS.burst + LIMITS.requests_per_second * window
                assert last - first + 1 <= allowed + 1e-6


TestBudget = BudgetMachine.TestCase
TestBudget.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_refused_request_counts_so_that_a_trace_stays_bounded() -> None:
    budget = Budget(GatewayLimits(requests=5, requests_per_second=0.0, burst=1), 0.0)
    limits = []
    for _ in range(6):
        try:
            budget.admit_request(0.0)
        except LimitError as error:
            limits.append(error.limit)
    assert limits == ["requests_per_second"] * 4 + ["requests"]


def test_a_clock_that_stands_or_steps_back_earns_nothing() -> None:
    budget = Budget(GatewayLimits(requests_per_second=1.0, burst=1), 10.0)
    budget.admit_request(10.0)
    for now in (10.0, 5.0, 10.5):
        with pytest.raises(LimitError):
            budget.admit_request(now)
    budget.admit_request(11.1)


@given(st.integers(0, 10**9), st.floats(0, 1))
def test_settling_gives_back_what_was_set_aside(tokens: int, cost: float) -> None:
    budget = Budget(GatewayLimits(), 0.0)
    before = budget.tokens_left()
    reservation = budget.admit_model_call(
        max_tokens=100, choices=1, prompt_usd=0.001, token_usd=1e-6
    )
    assert budget.tokens_left() == before - 100
    budget.settle(reservation, tokens=tokens, cost_usd=cost)
    assert budget.tokens_left() == max(0, before - tokens)
    assert budget.cost_usd == cost
