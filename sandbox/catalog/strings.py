"""Sorted texts on disk: one file of bytes, one of starts, found by bisection.

Opens at once and takes no memory but the pages it looks at. Terms, product ids and
shop ids are kept so; order is that of UTF-8 bytes, which is that of code points and
of Lucene.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sandbox.catalog.compiled import compiled


def utf8(text: str) -> bytes:
    """UTF-8 that keeps lone surrogates, so that no text fails."""
    return text.encode("utf-8", "surrogatepass")


def write_strings(directory: Path, name: str, texts: Iterable[str]) -> None:
    """Write texts that are already sorted."""
    starts, at = [0], 0
    with (directory / f"{name}.bin").open("wb") as file:
        for text in texts:
            at += file.write(utf8(text))
            starts.append(at)
        if not at:
            file.write(b"\0")  # an empty file cannot be mapped
    np.save(directory / f"{name}.npy", np.array(starts, np.int64))


@compiled
def _find(
    blob: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The number of each wanted text, or -1."""
    found = np.full(bounds.size - 1, -1, np.int64)
    for w in range(bounds.size - 1):
        first, size = bounds[w], bounds[w + 1] - bounds[w]
        low, high = 0, starts.size - 1
        while low < high:
            middle = (low + high) // 2
            start = starts[middle]
            other = starts[middle + 1] - start
            i = 0
            while i < size and i < other and blob[start + i] == wanted[first + i]:
                i += 1
            if i == size and i == other:
                found[w] = middle
                break
            if i == other or (i < size and blob[start + i] < wanted[first + i]):
                low = middle + 1
            else:
                high = middle
    return found


class SortedStrings(Sequence[str]):
    """What `write_strings` wrote, memory-mapped. Not for texts that may change."""

    def __init__(self, directory: Path, name: str) -> None:
        self._starts: npt.NDArray[np.int64] = np.load(directory / f"{name}.npy", mmap_mode="r")
        self._blob: npt.NDArray[np.uint8] = np.memmap(directory / f"{name}.bin", np.uint8, "r")

    def __len__(self) -> int:
        return int(self._starts.size) - 1

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        if not 0 <= number < len(self):
            raise IndexError(number)
        start, end = self._starts[number], self._starts[number + 1]
        return self._blob[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))

    def find(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of each text, -1 for one that is not there."""
        coded = [utf8(text) for text in texts]
        bounds = np.zeros(len(coded) + 1, np.int64)
        np.cumsum([len(c) for c in coded], out=bounds[1:])
        wanted = np.frombuffer(b"".join(coded) or b"\0", np.uint8)
        numbers: npt.NDArray[np.int64] = _find(self._blob, self._starts, wanted, bounds)
        return numbers

    def number(self, text: str) -> int:
        """The number of one text, or -1."""
        return int(self.find([text])[0])
