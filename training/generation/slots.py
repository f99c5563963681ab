"""The KV cache: one row of keys and values for each conversation, kept between its turns.

Rows are slots of one tensor a layer. Those in use are the first ones, so that a decoding
step reads a slice and copies nothing; the others stay warm, with the tokens that they hold,
until a prompt goes on from them or room is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK: Final = 256
"""Positions by which a cache grows at least."""


class SlotCache:
    """Keys and values of all layers for `rows` conversations.

    Transformers models write into it and read from it through `update`, as they do with
    their own caches, after `look_at` has said which rows and positions a pass is about.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.capacity = 0
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._tokens: NDArray[np.int32] = np.zeros((rows, 0), dtype=np.int32)
        self._lengths: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self._span = (0, 0)
        self._row_ids = torch.zeros(0)
        self._places = torch.zeros(0)
        self._shown = 0

    def tokens(self, row: int) -> NDArray[np.int32]:
        """The tokens whose keys and values the row holds."""
        return self._tokens[row, : self._lengths[row]]

    def length(self, row: int) -> int:
        """How many they are."""
        return int(self._lengths[row])

    def longest_prefix(self, prompt: NDArray[np.int32]) -> tuple[int, int]:
        """The row with the longest common prefix with `prompt`, and how long that is."""
        best, longest = 0, 0
        for row in range(self.rows):
            common = common_prefix(self.tokens(row), prompt)
            if common > longest:
                best, longest = row, common
        return best, longest

    def swap(self, a: int, b: int) -> None:
        """Let two rows change places."""
        if a == b:
            return
        held = int(max(self._lengths[a], self._lengths[b]))
        for tensor in (*self._keys, *self._values):
            kept = tensor[a, :, :held].clone()
            tensor[a, :, :held] = tensor[b, :, :held]
            tensor[b, :, :held] = kept
        self._tokens[[a, b]] = self._tokens[[b, a]]
        self._lengths[[a, b]] = self._lengths[[b, a]]

    def copy_prefix(self, source: int, target: int, length: int) -> None:
        """Let `target` hold the first `length` tokens of `source` and nothing else."""
        if source != target:
            for tensor in (*self._keys, *self._values):
                tensor[target, :, :length] = tensor[source, :, :length]
            self._tokens[target, :length] = self._tokens[source, :length]
        self._lengths[target] = length

    def forget(self) -> None:
        """Hold nothing: the weights are others."""
        self._lengths[:] = 0

    def release(self) -> None:
        """Give the memory back."""
        self._keys, self._values, self.capacity = [], [], 0
        self._tokens = np.zeros((self.rows, 0), dtype=np.int32)
        self.forget()

    def reserve(self, positions: int) -> None:
        """Make room for rows of so many positions."""
        if positions <= self.capacity:
            return
        grown = max(positions, self.capacity * 3 // 2)
        grown = -(-grown // BLOCK) * BLOCK
        self._keys = [_grown(tensor, grown) for tensor in self._keys]
        self._values = [_grown(tensor, grown) for tensor in self._values]
        tokens = np.zeros((self.rows, grown), dtype=np.int32)
        tokens[:, : self.capacity] = self._tokens
        self._tokens, self.capacity = tokens, grown

    def look_at(self, first: int, pieces: Sequence[NDArray[np.int32]], device: torch.device) -> int:
        """The next pass adds `pieces[i]` to row `first + i`; how wide the pass is.

        Rows end in what they held and their piece, whatever padding is beside it: padding
        is written behind the end, where nothing looks and the next piece goes.
        """
        last = first + len(pieces)
        width = max(len(piece) for piece in pieces)
        starts = self._lengths[first:last].copy()
        self.reserve(int(starts.max()) + width)
        for row, piece in enumerate(pieces, start=first):
            start = int(self._lengths[row])
            self._tokens[row, start : start + len(piece)] = piece
            self._lengths[row] = start + len(piece)
        self._span = (first, last)
        places = starts[:, None] + np.arange(width)[None, :]
        self._places = torch.from_numpy(places).to(device)
        self._row_ids = torch.arange(first, last, device=device)[:, None]
        self._shown = int(places.max()) + 1
        return width

    @property
    def places(self) -> Tensor:
        """The position of each token of the pass: (rows of the pass, width)."""
        return self._places

    def mask(self, window: int | None = None) -> Tensor | None:
        """What each token of the pass may see: itself and what stands before it in its row,
        or, with a `window`, so many tokens of it.

        True is seen; (rows, 1, width, positions). None where that is plain causality: rows
        from their beginning, or one token that sees all of its row.
        """
        rows, width = self._places.shape
        bounded = window is not None and window < self._shown
        if not bounded and (width == self._shown or rows == width == 1):
            return None
        seen = torch.arange(self._shown, device=self._places.device)
        places = self._places[:, None, :, None]
        before = seen <= places
        return before & (seen > places - window) if window is not None else before

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write a layer's keys and values, (rows, heads, width, size); all that may be seen."""
        if layer == len(self._keys):
            shape = (self.rows, keys.shape[1], self.capacity, keys.shape[3])
            self._keys.append(keys.new_zeros(shape))
            self._values.append(values.new_zeros((*shape[:3], values.shape[3])))
        first, last = self._span
        held_keys, held_values = self._keys[layer], self._values[layer]
        held_keys[self._row_ids, :, self._places] = keys.transpose(1, 2)
        held_values[self._row_ids, :, self._places] = values.transpose(1, 2)
        return held_keys[first:last, :, : self._shown], held_values[first:last, :, : self._shown]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions before this pass; models ask it only where they are given none."""
        return 0


def common_prefix(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """How many tokens two sequences have in common from their beginning."""
    shorter = min(len(a), len(b))
    different = np.flatnonzero(a[:shorter] != b[:shorter])
    return int(different[0]) if len(different) else shorter


def _grown(tensor: Tensor, positions: int) -> Tensor:
    rows, heads, held, size = tensor.shape
    grown = tensor.new_zeros((rows, heads, positions, size))
    grown[:, :, :held] = tensor
    return grown
