"""What one run may use of the gateway: a small state machine without a clock of its own.

Every limit has a stable name; a request that meets one is refused with 429 and the
name goes into the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.exceptions import ArenaError, Fault
from sandbox.gateway.interface import GatewayLimits

REQUESTS = "requests"
RATE = "requests_per_second"
BODY = "body_bytes"
TOTAL_BODY = "total_body_bytes"
ANSWERS = "answer_bytes"
MODEL_CALLS = "model_calls"
COMPLETION_TOKENS = "completion_tokens"
COST = "cost_usd"

RESERVED_TOKENS = 4096
"""Completion tokens set aside for a call in flight, unless it asks for fewer. Calls that
run at the same time can pass the limit together by no more than what lies beyond this."""


class LimitError(ArenaError):
    """A limit of the run was met. The agent's: the limits are known beforehand."""

    code = "gateway.limit"
    fault = Fault.AGENT

    def __init__(self, limit: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, code=f"gateway.limit.{limit}")
        self.limit = limit
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a model call in flight has set aside."""

    tokens: int
    cost_usd: float


class Budget:
    """Counts what one run has used. Times are seconds of any monotonic clock."""

    def __init__(self, limits: GatewayLimits, now: float) -> None:
        self.limits = limits
        self.requests = 0
        self.body_bytes = 0
        self.answer_bytes = 0
        self.model_calls = 0
        self.completion_tokens = 0
        self.cost_usd = 0.0
        self._reserved_tokens = 0
        self._reserved_usd = 0.0
        self._tokens = float(limits.burst)
        self._filled_at = now

    def admit_request(self, now: float) -> None:
        """Count a request. Refused ones count too, so that a trace stays bounded.

        Raises LimitError: too many in all, or too many a second (token bucket).
        """
        self.requests += 1
        if self.requests > self.limits.requests:
            raise LimitError(REQUESTS, f"a run has {self.limits.requests:,} requests")
        if self.answer_bytes > self.limits.answer_bytes:
            raise LimitError(
                ANSWERS, f"a run can be answered with {self.limits.answer_bytes:,} bytes"
            )
        rate = self.limits.requests_per_second
        earned = max(0.0, now - self._filled_at) * rate
        self._tokens = min(float(self.limits.burst), self._tokens + earned)
        self._filled_at = max(now, self._filled_at)
        if self._tokens < 1.0:
            raise LimitError(
                RATE,
                f"at most {rate:g} requests a second, {self.limits.burst} at once",
                retry_after_s=(1.0 - self._tokens) / rate if rate > 0 else None,
            )
        self._tokens -= 1.0

    def admit_body(self, size: int) -> None:
        """Count the bytes of a body, or those it has declared. Raises LimitError."""
        if size > self.limits.body_bytes:
            raise LimitError(BODY, f"a body has at most {self.limits.body_bytes:,} bytes")
        if self.body_bytes + size > self.limits.total_body_bytes:
            raise LimitError(
                TOTAL_BODY, f"a run can send {self.limits.total_body_bytes:,} bytes in all"
            )

    def body_room(self) -> int:
        """How many bytes the next body may have."""
        return max(0, min(self.limits.body_bytes, self.limits.total_body_bytes - self.body_bytes))

    def take_bytes(self, size: int) -> None:
        """Book bytes that were read."""
        self.body_bytes += size

    def take_answer(self, size: int) -> None:
        """Book bytes that were answered."""
        self.answer_bytes += size

    def tokens_left(self) -> int:
        """Completion tokens that are neither used nor set aside."""
        left = self.limits.completion_tokens - self.completion_tokens - self._reserved_tokens
        return max(0, left)

    def admit_model_call(
        self, *, max_tokens: int | None, choices: int, prompt_usd: float, token_usd: float
    ) -> Reservation:
        """Count a model call and set aside what it will use at least.

        `prompt_usd` is the estimated price of its prompt, `token_usd` the price of one
        completion token. Raises LimitError; a refused call is not counted.
        """
        if self.model_calls >= self.limits.model_calls:
            raise LimitError(MODEL_CALLS, f"a run has {self.limits.model_calls:,} model calls")
        left = self.tokens_left()
        if left <= 0:
            raise LimitError(
                COMPLETION_TOKENS,
                f"a run has {self.limits.completion_tokens:,} completion tokens",
            )
        asked = RESERVED_TOKENS if max_tokens is None else min(max_tokens, RESERVED_TOKENS)
        tokens = min(asked * choices, left)
        usd = prompt_usd + tokens * token_usd
        if usd > 0 and self.cost_usd + self._reserved_usd + usd > self.limits.cost_usd:
            raise LimitError(COST, f"a run can spend {self.limits.cost_usd:g} USD on models")
        self.model_calls += 1
        self._reserved_tokens += tokens
        self._reserved_usd += usd
        return Reservation(tokens, usd)

    def settle(self, reservation: Reservation, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Replace what was set aside by what was used (nothing when the call failed)."""
        self._reserved_tokens -= reservation.tokens
        self._reserved_usd -= reservation.cost_usd
        self.completion_tokens += tokens
        self.cost_usd += cost_usd
