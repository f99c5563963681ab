"""Reading a hostile file at arm's length: the worker process and its limits."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from arena.exceptions import AdmissionError
from arena.submissions.policy import Policy
from arena.submissions.reading import Reading
from arena.submissions.rules import Rule, violation

WORKER = Path(__file__).with_name("worker.py")
WALL_S = 120.0
"""Longest wait for an answer, when the machine is busy: the worker's own limit is CPU time."""
MAX_ANSWER = 64 << 20


class Reader:
    """Reads files in a process of its own, one after another; a crash costs one file.

    `interpreter` should be of the sandbox's Python version: what it compiles is what the
    sandbox can run. Not for several threads at once.
    """

    def __init__(self, interpreter: Path | None = None, *, wall_s: float = WALL_S) -> None:
        self._interpreter = str(interpreter or sys.executable)
        self._wall_s = wall_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def read(self, source: bytes, policy: Policy) -> Reading:
        """Read one file. Raises AdmissionError (the validator's fault) when that cannot be done.

        A file that brings the worker down, or to its limits, is a reading with a violation.
        """
        if len(source) > policy.max_bytes:
            found = f"{len(source):,} bytes, {policy.max_bytes:,} are allowed"
            return Reading((violation(Rule.TOO_LARGE, 0, 0, found),))
        process = self._started()
        head = json.dumps({"bytes": len(source), "policy": _plain(asdict(policy))})
        try:
            answer = self._exchange(process, head.encode("ascii") + b"\n" + source)
        except TimeoutError:
            self.close()
            raise AdmissionError(
                f"a file was not read within {self._wall_s:.0f} s; the machine is too busy"
            ) from None
        if answer is None:
            status = process.wait()
            self.close()
            return _crashed(status)
        return Reading.from_json(json.loads(answer))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            try:
                self._process = subprocess.Popen(
                    [self._interpreter, "-I", "-S", "-B", str(WORKER)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    env={"PATH": "/usr/bin:/bin"},
                )
            except OSError as error:
                raise AdmissionError(
                    f"{self._interpreter} cannot be started: {error.strerror}",
                    remedy="give the interpreter of your sandboxes",
                ) from error
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes) -> bytes | None:
        """Send a request and take one line; None when the worker ended. Raises TimeoutError."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            left = memoryview(request)
            while left:
                left = left[process.stdin.write(left) or 0 :]
        except BrokenPipeError:
            return None
        parts: list[bytes] = []
        size, end = 0, time.monotonic() + self._wall_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while size < MAX_ANSWER:
                rest = end - time.monotonic()
                if rest <= 0 or not selector.select(rest):
                    raise TimeoutError
                part = os.read(process.stdout.fileno(), 1 << 20)
                parts.append(part)
                size += len(part)
                if not part:
                    return None
                if part.endswith(b"\n"):
                    return b"".join(parts)
        return None


def _crashed(status: int) -> Reading:
    """The worker read the file and did not live to tell: a verdict on the file."""
    told = f"signal {-status}" if status < 0 else f"status {status}"
    return Reading((violation(Rule.TOO_COMPLEX, 0, 0, f"reading it ended with {told}"),))


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if name == "modules" else value for name, value in fields.items()}
