"""What models and judges have cost today (UTC), read from the records as they are made.

Kept on disk, so that a restart does not begin the day again. A kill between a record and its
line here loses that record's share of the sum, and nothing else.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from arena.runs.canonical import canonical
from scoring.types import JsonObject

_log = structlog.get_logger(__name__)

FILE: Final = "spending.json"


def cost_usd(record: JsonObject, *, models: bool = True) -> float:
    """What the calls of a record have cost, by the table's prices: its agent's (`models`) and
    its judge's. 0 for what says nothing readable."""
    value: Any = record
    total = 0.0
    try:
        if models and isinstance(value.get("trace"), dict):
            events = value["trace"].get("events") or ()
            total += sum(_usd(e.get("cost_usd")) for e in events if isinstance(e, dict))
        for part in ("verdict", "unjudged"):
            if isinstance(value.get(part), dict):
                total += _usd(value[part].get("cost_usd"))
    except (AttributeError, TypeError):
        return total
    return total


def _usd(value: Any) -> float:
    good = isinstance(value, int | float) and math.isfinite(value) and value > 0
    return float(value) if good else 0.0


class Spending:
    """The day's sum, against a ceiling. For any thread."""

    def __init__(
        self, directory: Path, ceiling_usd: float | None, clock: Callable[[], datetime]
    ) -> None:
        self._file = directory / FILE
        self._ceiling = ceiling_usd
        self._clock = clock
        self._lock = threading.Lock()
        self._day, self._usd = self._read()

    @property
    def today_usd(self) -> float:
        """What today has cost so far."""
        with self._lock:
            self._turn()
            return self._usd

    def note(self, usd: float) -> None:
        """Add to today's sum."""
        if usd <= 0:
            return
        with self._lock:
            self._turn()
            self._usd += usd
            self._write()

    def exhausted_until(self) -> datetime | None:
        """When there is money again; None while there is some left."""
        spent = self.today_usd
        if self._ceiling is None or spent < self._ceiling:
            return None
        tomorrow = self._clock().astimezone(UTC).date() + timedelta(days=1)
        return datetime.combine(tomorrow, time(), UTC)

    def _turn(self) -> None:
        today = self._today()
        if today != self._day:
            self._day, self._usd = today, 0.0

    def _today(self) -> str:
        return self._clock().astimezone(UTC).date().isoformat()

    def _read(self) -> tuple[str, float]:
        try:
            value = json.loads(self._file.read_bytes())
            return str(value["day"]), _usd(value["usd"])
        except (OSError, ValueError, KeyError, TypeError):
            return self._today(), 0.0

    def _write(self) -> None:
        new = self._file.with_name(self._file.name + ".new")
        try:
            new.write_bytes(canonical({"day": self._day, "usd": self._usd}) + b"\n")
            os.replace(new, self._file)
        except OSError as error:  # the sum in memory still counts
            _log.warning("the day's spending is not on disk", error=error.strerror)
