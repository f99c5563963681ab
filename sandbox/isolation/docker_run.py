"""One container's life from its start to its verdict.

The caller creates the container and removes it; this module attaches to it, hands in
the job, listens, keeps the time, and says how it ended and whose fault that was.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from sandbox.exceptions import AgentError, ErrorInfo, Fault, IsolationError
from sandbox.isolation import interface
from sandbox.isolation.clock import AgentClock
from sandbox.isolation.docker_engine import Engine, EngineError, Stdio
from sandbox.isolation.docker_usage import Meter
from sandbox.isolation.frames import Answer, FrameReader, agent_error, read_dialogue
from sandbox.isolation.interface import SandboxResult, SandboxSpec
from sandbox.isolation.log import BoundedLog
from scoring.types import JsonObject

STARTUP_S: Final = 60.0
"""From the container's start to the runner's first word; many may start at once."""

LINGER_S: Final = 1.0
"""How long an ended or killed sandbox may take to hand over the rest of its log."""

ENDING_S: Final = 20.0
"""How long the engine may take to tell that a container has ended."""

_STDOUT: Final = 1
_SIGNALLED: Final = 128
_GO: Final = b"\n"

Bundle = Sequence[tuple[str, bytes]]
"""Files to unpack inside: path below the sandbox's folder, and content."""


def encode_bundle(files: Bundle) -> bytes:
    """The bytes that `image/unpack.py` reads from standard input."""
    listing = json.dumps([[path, len(data)] for path, data in files]).encode()
    return b"".join([len(listing).to_bytes(4, "big"), listing, *(data for _, data in files)])


class DockerRun:
    """A created container that becomes a `SandboxResult`."""

    def __init__(self, engine: Engine, container: str, spec: SandboxSpec) -> None:
        self._engine = engine
        self._container = container
        self._clock = AgentClock(spec.limits, spec.excused_s)
        self._frames = FrameReader(spec.limits.answer_bytes)
        self._log = BoundedLog(spec.limits.log_bytes)
        self._peak_memory_bytes: int | None = None
        self._cpu_s: float | None = None
        self._awake = asyncio.Event()
        """The runner has spoken, or never will."""
        self._over = asyncio.Event()
        """The final frame has come, or the container has ended."""

    async def result(self, bundle: Bundle) -> SandboxResult:
        """Start the container, hand it `bundle`, and see it through.

        Raises IsolationError when it does not come up; a later failure is in the result.
        """
        async with self._engine.attach(self._container) as stdio:
            await self._engine.start(self._container)
            reader = asyncio.create_task(self._read(stdio))
            try:
                error = await self._see_through(stdio, bundle, reader)
            finally:
                reader.cancel()
                with suppress(asyncio.CancelledError, EngineError):
                    await reader
        return await self._report(error)

    async def _read(self, stdio: Stdio) -> None:
        """Take what comes out until the container has ended."""
        try:
            async for channel, data in stdio.chunks():
                if channel == _STDOUT:
                    self._frames.feed(data)
                else:
                    self._log.feed(data)
                if self._frames.ready:
                    self._awake.set()
                if self._frames.final is not None:
                    self._over.set()
        finally:
            self._awake.set()
            self._over.set()

    async def _see_through(
        self, stdio: Stdio, bundle: Bundle, reader: asyncio.Task[None]
    ) -> ErrorInfo | None:
        """Return the error that decides the run, or None when a frame does."""
        meter = await self._begin(stdio, bundle, reader)
        overrun = await self._keep_time()
        self._clock.stop()
        self._peak_memory_bytes, self._cpu_s = meter.peak_memory_bytes(), meter.cpu_s()
        await self._settle(reader, kill=overrun is not None)
        if overrun is not None or self._frames.final is not None:
            return overrun
        return await self._ended_silent(reader)

    async def _begin(self, stdio: Stdio, bundle: Bundle, reader: asyncio.Task[None]) -> Meter:
        """Bring everything up but the agent, then give the word. Raises IsolationError."""
        meter = Meter()
        try:
            async with asyncio.timeout(STARTUP_S):
                await stdio.send(encode_bundle(bundle))
                details = await self._engine.inspect(self._container)
                if details is not None:
                    meter = Meter.of_process(int(details["State"]["Pid"]))
                await self._awake.wait()
                if self._frames.ready:
                    self._clock.start(meter.cpu_s)
                    await stdio.send(_GO)
                    return meter
        except TimeoutError:
            raise IsolationError(f"a sandbox did not start within {STARTUP_S:g} s") from None
        except EngineError:
            # A container that has ended refuses its input: what it said tells more.
            await self._settle(reader, kill=False)
            if self._frames.ready:
                return meter
        lost = _engine_error(reader)
        said = lost.message if lost else self._log.text().strip()[-500:] or "it said nothing"
        raise IsolationError(f"a sandbox did not start: {said}")

    async def _keep_time(self) -> ErrorInfo | None:
        """Wait for the final frame, the container's end, or the end of the agent's time."""
        while not self._over.is_set() and self._clock.overrun() is None:
            # Excused time grows while it is waited for: look again, but not in a spin.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._clock.remaining_s(), 0.02)):
                    await self._over.wait()
        return self._clock.overrun()

    async def _settle(self, reader: asyncio.Task[None], *, kill: bool) -> None:
        """Let the rest of the log come in; the container's removal ends what is left."""
        if kill:
            with suppress(EngineError):
                await self._engine.kill(self._container)
        await asyncio.wait({reader}, timeout=LINGER_S)

    async def _ended_silent(self, reader: asyncio.Task[None]) -> ErrorInfo:
        """Why the container ended without a final frame."""
        lost = _engine_error(reader)
        if lost is not None:
            return lost
        try:
            async with asyncio.timeout(ENDING_S):
                status = await self._engine.wait(self._container)
            details = await self._engine.inspect(self._container)
            began = time.time() - self._clock.wall_s
            killed = await self._engine.was_killed(self._container, began)
        except (EngineError, TimeoutError) as error:
            return _host_failed(f"the Docker engine went away during the run: {error}")
        if details is None or killed:
            return _host_failed("the container was killed from outside, or its engine stopped")
        if details["State"]["OOMKilled"]:
            return agent_error(
                interface.AGENT_OUT_OF_MEMORY,
                f"used more than {details['HostConfig']['Memory'] >> 20} MiB of memory",
            )
        how = f"by signal {status - _SIGNALLED}" if status > _SIGNALLED else f"status {status}"
        return agent_error(interface.AGENT_EXITED, f"ended without an answer ({how})")

    async def _report(self, error: ErrorInfo | None) -> SandboxResult:
        dialogue: tuple[JsonObject, ...] | None = None
        final = self._frames.final
        if error is None and isinstance(final, Answer):
            try:
                dialogue = await asyncio.to_thread(read_dialogue, final.body)
            except AgentError as unreadable:
                error = unreadable.info
        elif isinstance(final, ErrorInfo):
            error = error or final
        return SandboxResult(
            dialogue=dialogue,
            error=error,
            log=self._log.text(),
            wall_s=self._clock.wall_s,
            excused_s=self._clock.excused_s(),
            log_dropped_bytes=self._log.dropped_bytes,
            peak_memory_bytes=self._peak_memory_bytes,
            cpu_s=self._cpu_s,
        )


def _engine_error(reader: asyncio.Task[None]) -> ErrorInfo | None:
    if not reader.done() or reader.cancelled():
        return None
    error = reader.exception()
    return _host_failed(str(error)) if error is not None else None


def _host_failed(message: str) -> ErrorInfo:
    return ErrorInfo(interface.HOST_FAILED, Fault.VALIDATOR, message)
