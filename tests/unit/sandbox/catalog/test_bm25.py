from __future__ import annotations

import math

import numpy as np

from sandbox.catalog.bm25 import idf, length_table, norm_bytes, norm_inverses
from tests.unit.sandbox.catalog.reference import stored_length


def test_lengths_survive_as_lucenes_small_float_keeps_them() -> None:
    lengths = np.array([*range(5000), 100_000, 2_000_000_000])
    kept = length_table()[norm_bytes(lengths)]
    assert kept.tolist() == [stored_length(int(length)) for length in lengths]
    assert kept[:41].tolist() == list(range(41))
    assert kept[41] == 40


def test_the_length_table_ends_where_lucenes_does() -> None:
    # SmallFloat.byte4ToInt of 255: the greatest 32-bit int has code 231 of 24 + 231.
    assert length_table()[255] == 24 + (15 << 27)
    assert np.all(np.diff(length_table()) > 0)


def test_arithmetic_is_in_32_bit_floats() -> None:
    assert norm_inverses(1000, 30).dtype == np.float32
    assert isinstance(idf(10, 3), np.float32)
    assert idf(1, 1) == np.float32(math.log(4 / 3))
