"""What a validator logs: lines for people, or one JSON object a line.

Names of agents, refusals of the arena and errors of providers are others' text: every value is
bounded and printable before it is written.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

MAX_VALUE: Final = 500
_OURS: Final = frozenset({"event", "exception", "timestamp", "level"})


def configure_logs(*, as_json: bool, file: TextIO | None = None) -> None:
    """Send all structured logs to standard error."""
    target = file or sys.stderr
    last: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=target.isatty(), sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            harmless,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.WriteLoggerFactory(target),
        cache_logger_on_first_use=False,
    )


def harmless(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Every text value bounded, and without what a terminal would obey."""
    for name, value in event.items():
        if isinstance(value, str) and name not in _OURS:
            event[name] = _printable(value[:MAX_VALUE]) + ("…" if len(value) > MAX_VALUE else "")
    if "exception" in event:
        lines = str(event["exception"]).splitlines()
        event["exception"] = "\n".join(_printable(line[:MAX_VALUE]) for line in lines)
    return event


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)
