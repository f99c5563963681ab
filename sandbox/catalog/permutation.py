"""A keyed shuffle of a range of numbers that needs no table. Pure."""

from __future__ import annotations

import hashlib

_ROUNDS = 4


class Permutation:
    """A bijection of range(size) onto itself: a Feistel network that walks its cycles.

    Gives identifiers without order or marker, and a random order of any number of
    things, in constant memory. Not cryptography: whoever knows the seed can undo it.
    """

    def __init__(self, size: int, key: str) -> None:
        self.size = size
        self._bits = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
        self._mask = (1 << self._bits) - 1
        digest = hashlib.sha256(key.encode()).digest()
        self._keys = [
            int.from_bytes(digest[i * 8 : i * 8 + 8], "little") | 1 for i in range(_ROUNDS)
        ]

    def __getitem__(self, number: int) -> int:
        """Where `number` goes."""
        if not 0 <= number < self.size:
            raise IndexError(number)
        while True:
            left, right = number >> self._bits, number & self._mask
            for key in self._keys:
                mixed = (right + key) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
                mixed = (mixed ^ mixed >> 29) * key & 0xFFFFFFFFFFFFFFFF
                left, right = right, left ^ (mixed >> 32 & self._mask)
            number = left << self._bits | right
            if number < self.size:
                return number
