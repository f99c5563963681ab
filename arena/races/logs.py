"""A race's own log: what its rooms log goes into a file beside the results.

The terminal belongs to the progress and standard output to `--json`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

FILE_NAME = "log.jsonl"


def log_to(directory: Path) -> Callable[[], None]:
    """Send structured logs to `directory`, one JSON object a line; returns what undoes it."""
    file = (directory / FILE_NAME).open("a", encoding="utf-8", errors="backslashreplace")
    before = structlog.get_config()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file),
        cache_logger_on_first_use=False,
    )

    def undo() -> None:
        structlog.configure(**before)
        file.close()

    return undo
