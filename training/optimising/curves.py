"""Curves of a run: a line of JSON for each update, and a picture of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from training.files import disk, write_file
from training.optimising.pictures import Panel, draw

LINES: Final = "curves.jsonl"
PICTURE: Final = "curves.svg"


class Curves:
    """The measurements of a run, in the order of its updates.

    `shown` chooses and orders the panels of the picture; names ending in `*` stand for all that
    begin so.
    """

    def __init__(self, directory: Path, shown: Sequence[str]) -> None:
        self._path = directory / LINES
        self._picture = directory / PICTURE
        self._shown = tuple(shown)
        directory.mkdir(parents=True, exist_ok=True)

    def rewind(self, updates: int) -> None:
        """Forget what was measured after the first so many updates: they are done again."""
        kept = [line for line in self.read() if int(line["update"]) <= updates]
        write_file(self._path, b"".join(orjson.dumps(line) + b"\n" for line in kept))

    def add(self, update: int, values: Mapping[str, float]) -> None:
        """Measurements after `update` updates; the same update may come twice, with more."""
        with disk(self._path), self._path.open("ab") as file:
            file.write(orjson.dumps({"update": update, **values}) + b"\n")
            file.flush()

    def read(self) -> list[dict[str, float]]:
        """Every line that is whole."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().split(os.linesep.encode())
        # What follows the last end of line was cut off.
        return [orjson.loads(line) for line in lines[:-1] if line]

    def draw(self) -> None:
        """Write the picture anew."""
        series: dict[str, list[tuple[float, float]]] = {}
        for line in self.read():
            for name, value in line.items():
                if name != "update" and value is not None:
                    series.setdefault(name, []).append((line["update"], value))
        panels = [
            Panel(name, series[name])
            for pattern in self._shown
            for name in sorted(series)
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))
        ]
        write_file(self._picture, draw(panels).encode())
