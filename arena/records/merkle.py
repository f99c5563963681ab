"""Merkle trees after RFC 9162 (section 2.1; RFC 6962 hashes the same way), with SHA-256.

Hashes of leaves are held packed, 32 bytes each in one buffer: a tree of millions of leaves
costs that and nothing else. A `CompactRange` is all that appending needs of what stands
there already, so that a day's leaves are hashed and the days before are not.

Pure: no keys, no disk, no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Protocol

HASH_BYTES = 32
EMPTY_ROOT = sha256().digest()
"""The root of a tree without leaves."""

_LEAF = b"\x00"
_NODE = b"\x01"
MAX_PROOF = 128
"""Hashes in a proof; a tree of 2**64 leaves needs fewer."""


def leaf_hash(leaf: bytes) -> bytes:
    """SHA-256 of 0x00 and the leaf's bytes."""
    return sha256(_LEAF + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256 of 0x01 and the two hashes below."""
    return sha256(_NODE + left + right).digest()


class Nodes(Protocol):
    """A tree that can say the hash over any of its own subtrees: what proofs are made from."""

    @property
    def size(self) -> int:
        """How many leaves it has."""
        ...

    def node(self, start: int, end: int) -> bytes:
        """The hash over the leaves [start, end), a subtree of the tree."""
        ...


class PackedTree:
    """A tree over all of its leaves' hashes."""

    def __init__(self, leaves: bytes | bytearray | memoryview) -> None:
        """`leaves` are the hashes in order, packed. Raises ValueError for a torn one."""
        if len(leaves) % HASH_BYTES:
            raise ValueError("hashes of leaves are 32 bytes each")
        self._leaves = memoryview(leaves)

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return len(self._leaves) // HASH_BYTES

    @property
    def root(self) -> bytes:
        """The hash over all leaves."""
        return self.node(0, self.size) if self.size else EMPTY_ROOT

    def leaf(self, index: int) -> bytes:
        """The hash of one leaf."""
        return bytes(self._leaves[index * HASH_BYTES : (index + 1) * HASH_BYTES])

    def node(self, start: int, end: int) -> bytes:
        """As `Nodes.node`, level by level: no list of leaves is made."""
        level = self._leaves[start * HASH_BYTES : end * HASH_BYTES]
        while len(level) > HASH_BYTES:
            level = _above(level)
        return bytes(level)


class CompactRange:
    """The complete subtrees that a tree of `size` leaves falls into, left to right.

    There is one for each bit of `size`: at most 64 hashes, whatever the size. Leaves are
    appended to it, and its root is known at any time.
    """

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        """Raises ValueError when `hashes` are not as many as `size` asks for."""
        if size < 0 or len(hashes) != size.bit_count() or any(len(h) != HASH_BYTES for h in hashes):
            raise ValueError(f"a tree of {size} leaves does not fall into {len(hashes)} subtrees")
        self.size = size
        self._hashes = list(hashes)

    @property
    def hashes(self) -> tuple[bytes, ...]:
        """The subtrees' hashes, the largest first."""
        return tuple(self._hashes)

    @property
    def root(self) -> bytes:
        """The hash over all leaves so far."""
        if not self._hashes:
            return EMPTY_ROOT
        *left, root = self._hashes
        for hash_ in reversed(left):
            root = node_hash(hash_, root)
        return root

    def append(self, leaf: bytes) -> None:
        """Add the hash of the next leaf."""
        size, hashes = self.size, self._hashes
        while size & 1:
            leaf = node_hash(hashes.pop(), leaf)
            size >>= 1
        hashes.append(leaf)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add the hashes of the next leaves."""
        for leaf in leaves:
            self.append(leaf)

    def copy(self) -> CompactRange:
        """One that goes on by itself."""
        return CompactRange(self.size, self._hashes)


class GrownTree:
    """A tree of which the older part is a compact range and only the newer leaves are held.

    It gives every proof about its newer leaves, and the consistency proof of its growth.
    """

    def __init__(self, older: CompactRange, newer: bytes | bytearray | memoryview) -> None:
        """`newer` are the hashes of the leaves behind `older`, packed."""
        self._newer = PackedTree(newer)
        self._first = older.size
        self._older: dict[tuple[int, int], bytes] = {}
        start = 0
        for bit, hash_ in zip(_bits(older.size), older.hashes, strict=True):
            self._older[start, start + bit] = hash_
            start += bit

    @property
    def size(self) -> int:
        """How many leaves it has, older and newer."""
        return self._first + self._newer.size

    @property
    def root(self) -> bytes:
        """The hash over all leaves."""
        return self.node(0, self.size) if self.size else EMPTY_ROOT

    def node(self, start: int, end: int) -> bytes:
        """As `Nodes.node`. Raises KeyError for what lies inside the older part."""
        if start >= self._first:
            return self._newer.node(start - self._first, end - self._first)
        if end <= self._first and (start, end) in self._older:
            return self._older[start, end]
        if end - start <= 1:
            raise KeyError(f"leaf {start} is not held")
        middle = start + _split(end - start)
        return node_hash(self.node(start, middle), self.node(middle, end))


def inclusion_proof(tree: Nodes, index: int, size: int | None = None) -> list[bytes]:
    """The path from leaf `index` to the root over the first `size` leaves (RFC 9162, 2.1.3.1).

    Raises IndexError when there is no such leaf.
    """
    end = tree.size if size is None else size
    if not 0 <= index < end <= tree.size:
        raise IndexError(f"there is no leaf {index} among {end}")
    path: list[bytes] = []
    start = 0
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(tree.node(middle, end))
            end = middle
        else:
            path.append(tree.node(start, middle))
            start = middle
    path.reverse()
    return path


def consistency_proof(tree: Nodes, first: int, second: int | None = None) -> list[bytes]:
    """That the tree of `second` leaves begins with that of `first` (RFC 9162, 2.1.4.1).

    Empty where nothing is to be shown: for `first` of 0, or as large as `second`.
    """
    end = tree.size if second is None else second
    if not 0 <= first <= end <= tree.size:
        raise IndexError(f"a tree of {first} leaves does not grow to {end}")
    if first in (0, end):
        return []
    proof: list[bytes] = []
    start, known = 0, True
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            proof.append(tree.node(middle, end))
            end = middle
        else:
            proof.append(tree.node(start, middle))
            start, known = middle, False
    if not known:
        proof.append(tree.node(start, end))
    proof.reverse()
    return proof


def verify_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    """Whether the leaf with hash `leaf` is number `index` of the tree (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size or len(path) > MAX_PROOF:
        return False
    number, last, hash_ = index, size - 1, leaf
    for step in path:
        if last == 0:
            return False
        if number & 1 or number == last:
            hash_ = node_hash(step, hash_)
            while number and not number & 1:
                number, last = number >> 1, last >> 1
        else:
            hash_ = node_hash(hash_, step)
        number, last = number >> 1, last >> 1
    return last == 0 and hash_ == root


def verify_consistency(
    first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the larger tree begins with the smaller (RFC 9162, 2.1.4.2)."""
    if not 0 <= first <= second or len(proof) > MAX_PROOF:
        return False
    if first == second:
        return not proof and first_root == second_root
    if first == 0:
        # Every tree begins with the empty one; its root is still not anybody's choice.
        return not proof and first_root == EMPTY_ROOT
    steps = list(proof)
    if first & (first - 1) == 0:
        steps.insert(0, first_root)
    if not steps:
        return False
    number, last = first - 1, second - 1
    while number & 1:
        number, last = number >> 1, last >> 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if number & 1 or number == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while number and not number & 1:
                number, last = number >> 1, last >> 1
        else:
            new = node_hash(new, step)
        number, last = number >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root


def _above(level: memoryview) -> memoryview:
    """The hashes one level up; one without a partner goes up as it is."""
    width = 2 * HASH_BYTES
    whole = len(level) - len(level) % width
    above = bytearray()
    for at in range(0, whole, width):
        above += sha256(_NODE + level[at : at + width]).digest()
    above += level[whole:]
    return memoryview(above)


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def _bits(size: int) -> Iterable[int]:
    """The powers of two that `size` is made of, the largest first."""
    return (1 << i for i in reversed(range(size.bit_length())) if size >> i & 1)
