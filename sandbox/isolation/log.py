"""An agent's own output, bounded: the first part is kept, the rest counted. Pure."""

from __future__ import annotations

from sandbox.isolation.frames import clean_text


class BoundedLog:
    """Takes bytes for as long as an agent likes to print, and keeps the first `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.dropped_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._limit - len(self._kept)
        self._kept += data[:room]
        self.dropped_bytes += max(0, len(data) - room)

    def text(self) -> str:
        """What was kept: valid UTF-8 without NUL. Still the agent's words: escape it."""
        return clean_text(self._kept.decode("utf-8", errors="replace"))
