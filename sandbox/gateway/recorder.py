"""The recorder: what a run did, written outside its sandbox, before it is answered.

It keeps events and nothing else: no headers (so no `Authorization`), no clock but a
monotonic one. Its memory is bounded by the limits of the run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from sandbox.exceptions import ErrorInfo
from sandbox.trace import Event, HttpEvent, LlmEvent, ToolEvent, Trace, Usage
from scoring.types import Json, JsonObject

Clock = Callable[[], float]


class Stopwatch:
    """Sums time during which at least one of several activities is going on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running = 0
        self._since = 0.0
        self._total = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside; activities that overlap count once."""
        if self._running == 0:
            self._since = self._clock()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._total += self._clock() - self._since

    def seconds(self) -> float:
        """The sum so far, what is still running included."""
        return self._total + (self._clock() - self._since if self._running else 0.0)


class Recorder:
    """Collects the events of one run."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._messages: list[JsonObject] = []
        self._index: dict[bytes, int] = {}
        self._events: list[Event] = []
        self._limits_hit: dict[str, None] = {}
        self._unrecorded = 0
        self.waited = Stopwatch(clock)
        """Queue and provider time: the validator's."""
        self.model_failure: ErrorInfo | None = None
        """The last model call that failed by the validator's fault; None once one succeeds."""
        self.own_failure: ErrorInfo | None = None
        """What broke inside the gateway; nothing that comes later mends it."""

    def now_ms(self) -> float:
        """Milliseconds since the run began, to the microsecond."""
        return round((self._clock() - self._began) * 1000.0, 3)

    def intern(self, messages: Sequence[JsonObject]) -> tuple[int, ...]:
        """The places of `messages` in the trace's table; new ones are added."""
        places = []
        for message in messages:
            text = json.dumps(message, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
            key = hashlib.blake2b(text.encode(), digest_size=16).digest()
            place = self._index.get(key)
            if place is None:
                place = self._index[key] = len(self._messages)
                self._messages.append(message)
            places.append(place)
        return tuple(places)

    def limit_hit(self, limit: str) -> None:
        """Note that `limit` turned a request away."""
        self._limits_hit[limit] = None

    def not_kept(self) -> int:
        """Count a request that is refused and not kept; how many there are now."""
        self._unrecorded += 1
        return self._unrecorded

    def begin(self) -> Draft:
        """Start the event of a request that has arrived."""
        return Draft(self, self.now_ms())

    def append(self, make: Callable[[int], Event]) -> None:
        """Record the event that `make` builds from its number."""
        self._events.append(make(len(self._events)))

    def trace(self) -> Trace:
        """What was recorded so far."""
        return Trace(
            messages=tuple(self._messages),
            events=tuple(self._events),
            limits_hit=tuple(self._limits_hit),
            unrecorded=self._unrecorded,
        )


class Draft:
    """An event whose answer is still to come. Exactly one of its methods is called."""

    def __init__(self, recorder: Recorder, started_ms: float) -> None:
        self._recorder = recorder
        self._started_ms = started_ms

    def _elapsed_ms(self) -> float:
        return round(self._recorder.now_ms() - self._started_ms, 3)

    def http(
        self,
        method: str,
        path: str,
        status: int,
        *,
        body_bytes: int = 0,
        error: ErrorInfo | None = None,
    ) -> None:
        """Record any request that is neither a tool's nor a model's."""
        self._recorder.append(
            lambda seq: HttpEvent(
                seq=seq,
                started_ms=self._started_ms,
                elapsed_ms=self._elapsed_ms(),
                method=method,
                path=path,
                status=status,
                body_bytes=body_bytes,
                error=error,
            )
        )

    def tool(
        self,
        via: Literal["search", "tools"],
        name: str,
        arguments: JsonObject,
        status: int,
        result: Json,
        *,
        query: str | None = None,
        error: ErrorInfo | None = None,
    ) -> None:
        """Record a tool call with its full answer."""
        self._recorder.append(
            lambda seq: ToolEvent(
                seq=seq,
                started_ms=self._started_ms,
                elapsed_ms=self._elapsed_ms(),
                via=via,
                name=name,
                arguments=arguments,
                status=status,
                result=result,
                query=query,
                error=error,
            )
        )

    def llm(
        self,
        prompt: tuple[int, ...],
        params: JsonObject,
        status: int,
        *,
        waited_ms: float = 0.0,
        server: str = "",
        standin: bool = False,
        choices: Sequence[JsonObject] = (),
        usage: Usage | None = None,
        cost_usd: float = 0.0,
        error: ErrorInfo | None = None,
        extras: JsonObject | None = None,
    ) -> None:
        """Record a model call with its full answer."""
        model = params.get("model")
        self._recorder.append(
            lambda seq: LlmEvent(
                seq=seq,
                started_ms=self._started_ms,
                elapsed_ms=self._elapsed_ms(),
                waited_ms=waited_ms,
                model=model if isinstance(model, str) else "",
                server=server,
                standin=standin,
                prompt=prompt,
                params=params,
                status=status,
                choices=tuple(choices),
                usage=usage,
                cost_usd=cost_usd,
                error=error,
                extras=extras or {},
            )
        )
