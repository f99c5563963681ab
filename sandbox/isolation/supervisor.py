"""Watches one sandbox from outside: reads what it says, times it, and judges how it ended."""

from __future__ import annotations

import asyncio
from typing import Final

from sandbox.exceptions import AgentError, ErrorInfo, Fault, IsolationError
from sandbox.isolation import cgroup
from sandbox.isolation.clock import AgentClock
from sandbox.isolation.frames import Answer, FrameReader, agent_error, read_dialogue
from sandbox.isolation.interface import (
    AGENT_EXITED,
    AGENT_OUT_OF_MEMORY,
    HOST_FAILED,
    SandboxResult,
    SandboxSpec,
)
from sandbox.isolation.log import BoundedLog
from scoring.types import JsonObject

CHUNK: Final = 64 << 10
START_S: Final = 60.0
"""How long a sandbox may take until the agent can begin, on the busiest host."""

DRAIN_S: Final = 5.0
"""How long to wait for the last output of a sandbox that was killed."""

FLOOD_BYTES: Final = 128 << 20
FLOOD_PAUSE_S: Final = 0.02
"""An agent that has printed so much waits a little before it may print on: reading it
at a gigabyte a second would cost the sandboxes beside it."""


class Supervisor:
    """Sees one sandbox through, from the first process to the result.

    The caller kills and removes the sandbox afterwards, however this ends.
    """

    def __init__(
        self, spec: SandboxSpec, process: asyncio.subprocess.Process, group: cgroup.Group
    ) -> None:
        self._spec = spec
        self._process = process
        self._group = group
        self._frames = FrameReader(spec.limits.answer_bytes)
        self._log = BoundedLog(spec.limits.log_bytes)
        self._clock = AgentClock(spec.limits, spec.excused_s)
        self._ready = asyncio.Event()
        self._final = asyncio.Event()

    async def run(self) -> SandboxResult:
        """Let the agent begin, wait for its end, and say how it was. Raises IsolationError."""
        readers = [
            asyncio.create_task(self._read_frames()),
            asyncio.create_task(self._read_log()),
        ]
        try:
            await self._begin()
            await self._wait()
            self._clock.stop()
            exit_code = self._process.returncode
            usage = self._group.usage()
            cgroup.kill(self._group.folders())
            done, _ = await asyncio.wait(readers, timeout=DRAIN_S)
            for reader in done:
                reader.result()  # an error of ours is nobody's verdict: it is raised
        finally:
            for reader in readers:
                reader.cancel()
        return await self._result(usage, exit_code)

    async def _begin(self) -> None:
        """Wait until everything but the agent runs, look that it is confined, give the word."""
        try:
            async with asyncio.timeout(START_S):
                await self._ready.wait()
        except TimeoutError:
            raise IsolationError(f"a sandbox did not start within {START_S:g} s") from None
        if not self._frames.ready:
            await self._process.wait()
            said = self._log.text().strip().splitlines()
            reason = said[-1] if said else f"exit code {self._process.returncode}"
            raise IsolationError(f"a sandbox did not start: {reason[:500]}")
        for file in self._group.join_files():
            if not file.read_text().strip():
                raise IsolationError(f"a sandbox is not in its cgroup {file.parent}")
        assert self._process.stdin is not None
        self._clock.start(lambda: self._group.usage().cpu_s)
        self._process.stdin.write(b"g")

    async def _wait(self) -> None:
        """Until there is an answer, the sandbox has ended, or the agent's time is over."""
        while not self._final.is_set() and self._clock.overrun() is None:
            remaining = max(self._clock.remaining_s(), 0.001)
            try:
                async with asyncio.timeout(remaining):
                    await self._final.wait()
            except TimeoutError:
                continue

    async def _read_frames(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            while data := await stream.read(CHUNK):
                self._frames.feed(data)
                if self._frames.ready:
                    self._ready.set()
                if self._frames.final is not None:
                    self._final.set()
            await self._process.wait()
        finally:
            self._ready.set()
            self._final.set()

    async def _read_log(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while data := await stream.read(CHUNK):
            self._log.feed(data)
            if self._log.dropped_bytes > FLOOD_BYTES:
                await asyncio.sleep(FLOOD_PAUSE_S)

    async def _result(self, usage: cgroup.Usage, exit_code: int | None) -> SandboxResult:
        dialogue: tuple[JsonObject, ...] | None = None
        error = self._clock.overrun() or self._failure(usage, exit_code)
        if error is None:
            assert isinstance(self._frames.final, Answer)
            try:
                dialogue = await asyncio.to_thread(read_dialogue, self._frames.final.body)
            except AgentError as bad:
                error = bad.info
        return SandboxResult(
            dialogue=dialogue,
            error=error,
            log=self._log.text(),
            wall_s=self._clock.wall_s,
            excused_s=self._clock.excused_s(),
            log_dropped_bytes=self._log.dropped_bytes,
            peak_memory_bytes=usage.peak_memory_bytes,
            cpu_s=usage.cpu_s,
        )

    def _failure(self, usage: cgroup.Usage, exit_code: int | None) -> ErrorInfo | None:
        """Why there is no answer; None when there is one."""
        final = self._frames.final
        if isinstance(final, Answer):
            return None
        if usage.killed and usage.at_limit:
            limit = self._spec.limits.memory_bytes >> 20
            return agent_error(AGENT_OUT_OF_MEMORY, f"used more than {limit} MiB of memory")
        if usage.killed or (exit_code is not None and exit_code < 0):
            return ErrorInfo(
                HOST_FAILED,
                Fault.VALIDATOR,
                "the sandbox was killed from outside, or the host's memory was out",
            )
        if final is not None:
            return final
        how = f"signal {exit_code - 128}" if exit_code and exit_code > 128 else f"code {exit_code}"
        return agent_error(AGENT_EXITED, f"the agent's process ended ({how}) without an answer")
