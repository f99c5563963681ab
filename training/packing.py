"""Several samples in one forward pass, side by side, none of which sees another.

Samples are laid one after the other into a row without padding; positions begin anew with
each, and attention is computed sample by sample (`training/attention.py`). No sample is cut,
none is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.types import Ids, Mask, Sample


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """Samples side by side. `members` are their indices in what was packed."""

    ids: Ids
    positions: Ids
    mask: Mask
    lengths: tuple[int, ...]
    members: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each sample begins."""
        return tuple(int(n) for n in np.cumsum((0, *self.lengths[:-1])))

    def spread(self, values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """One value for each member, as one for each token."""
        return np.repeat(np.asarray(values, dtype=np.float32), self.lengths)


def pack(samples: Sequence[Sample], capacity: int) -> list[Pack]:
    """All samples in packs of at most `capacity` tokens; a longer sample has one for itself.

    First-fit decreasing: the longest first, each where it first fits. The same samples give
    the same packs.
    """
    groups = group_by_length([len(sample) for sample in samples], capacity)
    return [join([samples[i] for i in group], group) for group in groups]


def group_by_length(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Indices into `lengths`, in groups whose lengths sum to at most `capacity` if they can."""
    groups: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        for place, left in enumerate(room):
            if lengths[index] <= left:
                groups[place].append(index)
                room[place] -= lengths[index]
                break
        else:
            groups.append([index])
            room.append(capacity - lengths[index])
    return groups


def join(samples: Sequence[Sample], members: Sequence[int] | None = None) -> Pack:
    """Samples laid one after the other, in this order."""
    lengths = tuple(len(sample) for sample in samples)
    return Pack(
        ids=np.concatenate([sample.ids for sample in samples]),
        positions=np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
        mask=np.concatenate([sample.mask for sample in samples]),
        lengths=lengths,
        members=tuple(members) if members is not None else tuple(range(len(samples))),
    )
