"""The one model client: gateway, judge, rewording and training all ask through it.

It knows the operator's table, spreads calls over healthy servers, lets failing ones
rest, tries again within a bound, and says whose fault a failure was. It never logs or
keeps a key, and it never logs a prompt.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sandbox.exceptions import Fault, ModelError
from sandbox.models import faults
from sandbox.models.faults import ProviderError
from sandbox.models.openai_wire import OpenAIWire
from sandbox.models.request import ChatRequest
from sandbox.models.routes import ModelRoute, Wire
from sandbox.trace import Usage, speaks
from scoring.types import Json, JsonObject

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient the client is with providers."""

    tries: int = 4
    base_s: float = 0.5
    """The first back-off; it doubles with every failure in a row."""
    cap_s: float = 20.0
    jitter: float = 0.25
    """Back-off times are spread by this share in both directions."""
    rest_after: int = 3
    """Failures in a row after which a server rests for everyone."""
    lasting_rest_s: float = 300.0
    """Rest of a server whose key, account or table entry is wrong."""


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer in the OpenAI chat schema, with all that the provider added to it."""

    body: JsonObject
    route: ModelRoute
    usage: Usage
    cost_usd: float
    failures: tuple[str, ...] = field(default=())
    """Codes of the tries that failed before, in order."""

    @property
    def choices(self) -> list[JsonObject]:
        """The choices, each with a message."""
        return _objects(self.body.get("choices"))

    @property
    def text(self) -> str:
        """The text of the first choice, empty when it has none."""
        message = self.choices[0]["message"]
        content = message.get("content") if isinstance(message, dict) else None
        return content if isinstance(content, str) else ""

    @property
    def empty(self) -> bool:
        """Neither text nor tool calls in any choice."""
        return not any(speaks(choice) for choice in self.choices)


class Provider(Protocol):
    """A way to one server."""

    async def complete(self, body: JsonObject, timeout_s: float) -> JsonObject:
        """One completion in the OpenAI schema. Raises ProviderError."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class ModelClient:
    """Asks models by name. Safe for many tasks of one event loop."""

    def __init__(
        self,
        routes: Iterable[ModelRoute],
        *,
        retry: RetryPolicy | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._lanes: dict[str, list[_Lane]] = {}
        for route in routes:
            self._lanes.setdefault(route.model, []).append(_Lane(route, self._retry, self._rng))

    @property
    def names(self) -> tuple[str, ...]:
        """The model names that can be asked for."""
        return tuple(self._lanes)

    def routes(self, model: str) -> tuple[ModelRoute, ...]:
        """The servers of one name. Raises ModelError (AGENT) when there are none."""
        return tuple(lane.route for lane in self._named((model,)))

    async def complete(
        self,
        request: ChatRequest,
        *,
        models: Sequence[str] = (),
        timeout_s: float = 300.0,
        tries: int | None = None,
    ) -> Completion:
        """Ask for a completion; queue, tries and back-off together take `timeout_s` at most.

        `models` names alternatives to rotate over, in order of preference; by default
        only `request.model`. Raises ModelError: with Fault.AGENT when the request is
        wrong (never tried again), else Fault.VALIDATOR after the last try.
        """
        lanes = self._named(tuple(models) or (request.model,))
        deadline = time.monotonic() + timeout_s
        body: JsonObject = request.params | {"messages": list[Json](request.messages)}
        failures: list[ProviderError] = []
        for attempt in range(tries or self._retry.tries):
            lane = min(lanes, key=lambda lane: lane.rank())
            if not await self._pause(lane, attempt, deadline):
                break
            try:
                answer = await lane.ask(body, deadline)
                completion = _completion(answer, lane.route, failures)
                _refuse_empty(completion, request)
            except ProviderError as error:
                if error.fault is Fault.AGENT:
                    raise
                lane.failed(error)
                failures.append(error)
                if error.lasting and all(lane.lasting for lane in lanes):
                    break
                continue
            lane.worked(empty=completion.empty)
            return completion
        raise _final(request.model, failures)

    async def close(self) -> None:
        """Close all connections."""
        for lanes in self._lanes.values():
            for lane in lanes:
                await lane.close()

    def _named(self, models: Sequence[str]) -> list[_Lane]:
        lanes = [lane for name in models for lane in self._lanes.get(name, ())]
        if not lanes:
            known = ", ".join(self._lanes) or "none"
            raise ModelError(
                f"there is no model {models[0][:100]!r}; there are: {known}",
                code=faults.UNKNOWN_MODEL,
                fault=Fault.AGENT,
            )
        return lanes

    async def _pause(self, lane: _Lane, attempt: int, deadline: float) -> bool:
        """Wait until the lane may be asked; False when that is after the deadline."""
        now = time.monotonic()
        # What only the operator can mend does not mend itself while a caller waits.
        wait = 0.0 if lane.lasting else max(lane.rests_until - now, 0.0)
        if attempt > 0 and lane.failures_in_row > 0:
            wait = max(wait, lane.backoff_s(attempt))
        if now + wait >= deadline:
            # The first try is always made: a caller with little time gets a true answer.
            return attempt == 0
        if wait > 0:
            await asyncio.sleep(wait)
        return True


class _Lane:
    """One route with its connections, its queue and its health."""

    def __init__(self, route: ModelRoute, retry: RetryPolicy, rng: random.Random) -> None:
        self.route = route
        self._retry = retry
        self._rng = rng
        self._wire = _wire(route.wire)
        self._provider: Provider | None = None
        self._slots = asyncio.Semaphore(route.concurrency)
        self._in_flight = 0
        self.failures_in_row = 0
        self.rests_until = 0.0
        self.lasting = False

    def rank(self) -> tuple[float, int, int]:
        """Lower is asked first: awake, healthy, idle."""
        rest = max(self.rests_until - time.monotonic(), 0.0)
        return rest, self.failures_in_row, self._in_flight

    async def ask(self, body: JsonObject, deadline: float) -> JsonObject:
        """Wait for a slot and ask once. Raises ProviderError."""
        if self._provider is None:
            self._provider = self._wire(self.route)
        self._in_flight += 1
        try:
            async with asyncio.timeout_at(_loop_time(deadline)), self._slots:
                left = min(self.route.timeout_s, max(0.05, deadline - time.monotonic()))
                # The SDK's time-out is between bytes; a server may trickle.
                async with asyncio.timeout(left):
                    return await self._provider.complete(body, left)
        except TimeoutError:
            raise ProviderError("no answer in time", code=faults.TIMEOUT) from None
        finally:
            self._in_flight -= 1

    def failed(self, error: ProviderError) -> None:
        """Note a failure; rest when the server asks for it or keeps failing."""
        self.failures_in_row += 1
        self.lasting = error.lasting
        rest = 0.0
        if error.lasting:
            rest = self._retry.lasting_rest_s
        elif error.code == faults.RATE_LIMITED or error.retry_after_s is not None:
            rest = error.retry_after_s or self.backoff_s(self.failures_in_row)
        elif self.failures_in_row >= self._retry.rest_after:
            rest = self.backoff_s(self.failures_in_row)
        self.rests_until = max(self.rests_until, time.monotonic() + rest)
        _log.warning(
            "model server failed",
            server=self.route.server,
            model=self.route.model,
            code=error.code,
            in_row=self.failures_in_row,
            rests_s=round(rest, 1),
        )

    def worked(self, *, empty: bool) -> None:
        """Note a success. An empty answer counts a little against the server: another
        one is preferred next time, and nobody waits."""
        self.failures_in_row = 1 if empty else 0
        if self.lasting:  # it is mended, or one request alone was refused: nobody waits
            self.lasting = False
            self.rests_until = 0.0

    def backoff_s(self, failures: int) -> float:
        """Exponential back-off with jitter."""
        spread = 1.0 + self._retry.jitter * self._rng.uniform(-1.0, 1.0)
        doubled = self._retry.base_s * 2.0 ** (failures - 1)
        return min(self._retry.cap_s, doubled) * spread

    async def close(self) -> None:
        """Close its connections."""
        if self._provider is not None:
            await self._provider.close()
            self._provider = None


def _wire(wire: Wire) -> Callable[[ModelRoute], Provider]:
    """What speaks a wire. Anthropic's SDK takes a second to load: only who uses it waits."""
    if wire is Wire.OPENAI:
        return OpenAIWire
    from sandbox.models.anthropic_wire import AnthropicWire

    return AnthropicWire


def _loop_time(monotonic: float) -> float:
    return asyncio.get_running_loop().time() + monotonic - time.monotonic()


def _completion(
    body: JsonObject, route: ModelRoute, failures: Sequence[ProviderError]
) -> Completion:
    usage = _usage(body.get("usage"))
    codes = tuple(error.code for error in failures)
    return Completion(body, route, usage, route.cost_usd(usage), codes)


def _refuse_empty(completion: Completion, request: ChatRequest) -> None:
    if completion.empty and not request.accept_empty:
        raise ProviderError("its answer is empty", code=faults.EMPTY_ANSWER)


def _usage(value: Json) -> Usage:
    counts = value if isinstance(value, dict) else {}
    return Usage(_count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _final(model: str, failures: Sequence[ProviderError]) -> ModelError:
    if not failures:
        return ModelError(f"{model}: no server was free in time", code=faults.TIMEOUT)
    last = failures[-1]
    tries = f"{len(failures)} tries" if len(failures) > 1 else "1 try"
    return ModelError(f"{model}: {last.message} ({tries})", code=last.code, remedy=last.remedy)
