"""Where a finished run's record goes."""

from __future__ import annotations

from typing import Protocol

from arena.runs.record import EncodedRecord


class RecordSink(Protocol):
    """Takes records as they are made. When `put` returns, the record is safe."""

    async def put(self, record: EncodedRecord) -> None:
        """Keep the record. Raises SpoolError (or DatabaseError) when it cannot."""
        ...
