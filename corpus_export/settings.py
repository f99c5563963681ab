"""What a person chose for an export."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import cast

from corpus_export.gates import MAX_TOKENS, MIN_COEFFICIENT
from corpus_export.ranking import RankingSettings
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """An export as asked for. What changes a byte of it stands in `to_json`.

    `day` is a day in UTC, None for every day (only of files). `public` leaves out what is
    not released yet.
    """

    out: Path
    day: date | None = None
    min_coefficient: float = MIN_COEFFICIENT
    ranking: RankingSettings = field(default_factory=RankingSettings)
    max_tokens: int = MAX_TOKENS
    public: bool = False
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)

    def to_json(self) -> JsonObject:
        """The choices that decide what is exported."""
        return {
            "day": None if self.day is None else self.day.isoformat(),
            "min_coefficient": self.min_coefficient,
            "ranking": cast("JsonObject", asdict(self.ranking)),
            "max_tokens": self.max_tokens,
            "public": self.public,
        }


def day_bounds(day: date) -> tuple[datetime, datetime]:
    """The first moment of a day in UTC, and that of the next."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)
