"""The nightly export: `arena corpus export` in a process of its own, behind everything else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import structlog

from arena.conducting.parts import ExportState
from arena.exceptions import ArenaError, Fault

_log = structlog.get_logger(__name__)

NICENESS = 19
LOG_NAME = "export.log"
TOLD = 400
_STOP_S = 10.0


class ExportError(ArenaError):
    """An export that ended badly."""

    code = "export.failed"
    fault = Fault.PLATFORM


class CorpusExport:
    """Implements `arena.conducting.parts.NightlyExport`: one export at a time.

    A day's directory is there when it is whole, so nothing else is remembered. After a kill
    the command goes on from where it was.
    """

    def __init__(
        self,
        directory: Path,
        catalogs: Sequence[Path],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: what the command's settings are read from; by default ours."""
        self._directory = directory
        self._catalogs = catalogs
        self._environment = dict(os.environ if environment is None else environment)
        self._running: tuple[date, asyncio.subprocess.Process] | None = None

    def place(self, day: date) -> Path:
        """Where the corpus of a day lies."""
        return self._directory / day.isoformat()

    async def advance(self, day: date) -> ExportState:
        """As `NightlyExport.advance`. Raises ExportError with the end of what it said."""
        if self._running is not None:
            running, process = self._running
            if process.returncode is None:
                return ExportState.RUNNING
            self._running = None
            if process.returncode != 0:
                raise ExportError(
                    f"the export of {running} ended with status {process.returncode}:"
                    f" {self._last_words()}",
                    remedy=f"its log is {self._directory / LOG_NAME}",
                )
            _log.info("a corpus is exported", day=str(running), path=str(self.place(running)))
        if self.place(day).is_dir():
            return ExportState.MADE
        await self._begin(day)
        return ExportState.RUNNING

    async def stop(self) -> None:
        """End an export that runs; it goes on the next time."""
        if self._running is None:
            return
        _, process = self._running
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        self._running = None

    async def _begin(self, day: date) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        given = [text for path in self._catalogs for text in ("--catalog", str(path))]
        command = ["corpus", "export", "--day", f"{day}", "--out", str(self.place(day)), *given]
        with (self._directory / LOG_NAME).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "neurons", *command, "--workers", "1",
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment,
            )  # fmt: skip
        # Here and not in the child: nothing may run between fork and exec.
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        self._running = (day, process)
        _log.info("a corpus is being exported", day=str(day), pid=process.pid)

    def _last_words(self) -> str:
        try:
            content = (self._directory / LOG_NAME).read_bytes()
        except OSError:
            return "it left no log"
        return " ".join(content[-4 * TOLD :].decode("utf-8", "replace").split())[-TOLD:]
