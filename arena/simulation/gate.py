"""The gate of a simulated season: the real index of copies, over small generated files.

The gate's other rules look at what a file says, and a simulated one says nothing.
"""

from __future__ import annotations

from typing import Protocol

from arena.simulation.sources import Work, fingerprint_of, written
from arena.submissions.copies import CopyIndex
from arena.submissions.policy import Policy


class Gate(Protocol):
    """Lets a file in or keeps it out."""

    def admits(self, version: str, hotkey: str, work: Work, style: int) -> bool:
        """Whether this file of this hotkey is nobody else's; it is then known itself."""
        ...


class CopyGate:
    """Compares each file with all earlier ones of other hotkeys."""

    def __init__(self) -> None:
        self._index = CopyIndex()
        self._policy = Policy()
        self._known: set[tuple[str, Work]] = set()

    def admits(self, version: str, hotkey: str, work: Work, style: int) -> bool:
        """As `Gate.admits`. A hotkey's own file again is read once."""
        if (hotkey, work) in self._known:
            return True
        found = fingerprint_of(written(work, style))
        if self._index.identical(found.sha256, hotkey):
            return False
        if self._index.copied(found, self._policy, hotkey):
            return False
        self._index.add(version, hotkey, found)
        self._known.add((hotkey, work))
        return True
