from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.records.merkle import (
    EMPTY_ROOT,
    CompactRange,
    GrownTree,
    PackedTree,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    verify_consistency,
    verify_inclusion,
)

# The eight leaves of the certificate-transparency project's own tests, and the roots over
# the first one, two … eight of them.
PUBLISHED = [
    ("", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    ("00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
    ("10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
    ("2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
    ("3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
    ("40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
    ("5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
    (
        "606162636465666768696a6b6c6d6e6f",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ),
]
LEAVES = [leaf_hash(bytes.fromhex(leaf)) for leaf, _ in PUBLISHED]
ROOTS = [bytes.fromhex(root) for _, root in PUBLISHED]

sizes = st.integers(min_value=1, max_value=70)


def naive_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return sha256(b"\x01" + naive_root(leaves[:k]) + naive_root(leaves[k:])).digest()


def naive_path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1."""
    n = len(leaves)
    if n == 1:
        return []
    k = 1
    while 2 * k < n:
        k *= 2
    if m < k:
        return [*naive_path(m, leaves[:k]), naive_root(leaves[k:])]
    return [*naive_path(m - k, leaves[k:]), naive_root(leaves[:k])]


def naive_consistency(m: int, leaves: list[bytes], complete: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 6962, section 2.1.2."""
    n = len(leaves)
    if m == n:
        return [] if complete else [naive_root(leaves)]
    k = 1
    while 2 * k < n:
        k *= 2
    if m <= k:
        return [*naive_consistency(m, leaves[:k], complete), naive_root(leaves[k:])]
    return [*naive_consistency(m - k, leaves[k:], False), naive_root(leaves[:k])]


def leaves_of(size: int) -> list[bytes]:
    return [leaf_hash(str(i).encode()) for i in range(size)]


def test_roots_are_those_that_certificate_transparency_publishes() -> None:
    for size, root in enumerate(ROOTS, start=1):
        assert PackedTree(b"".join(LEAVES[:size])).root == root
    assert PackedTree(b"").root.hex() == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_proofs_are_those_that_certificate_transparency_publishes() -> None:
    tree = PackedTree(b"".join(LEAVES))
    assert [h.hex() for h in inclusion_proof(tree, 5)] == [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]
    assert [h.hex() for h in consistency_proof(tree, 6)] == [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


@given(sizes)
def test_a_compact_range_grows_to_the_roots_of_the_definition(size: int) -> None:
    leaves, compact = leaves_of(size), CompactRange()
    assert compact.root == EMPTY_ROOT
    for count, leaf in enumerate(leaves, start=1):
        compact.append(leaf)
        assert compact.root == naive_root(leaves[:count])
    assert len(compact.hashes) == size.bit_count()
    assert PackedTree(b"".join(leaves)).root == compact.root


@given(sizes, st.data())
def test_inclusion_proofs_are_those_of_the_definition_and_hold(
    size: int, data: st.DataObject
) -> None:
    leaves = leaves_of(size)
    tree = PackedTree(b"".join(leaves))
    end = data.draw(st.integers(1, size))
    index = data.draw(st.integers(0, end - 1))
    path = inclusion_proof(tree, index, end)
    assert path == naive_path(index, leaves[:end])
    root = naive_root(leaves[:end])
    assert verify_inclusion(leaves[index], index, end, path, root)
    assert not verify_inclusion(leaf_hash(b"another"), index, end, path, root)


@given(sizes, st.data())
def test_consistency_proofs_are_those_of_the_definition_and_hold(
    size: int, data: st.DataObject
) -> None:
    leaves = leaves_of(size)
    tree = PackedTree(b"".join(leaves))
    second = data.draw(st.integers(1, size))
    first = data.draw(st.integers(1, second))
    proof = consistency_proof(tree, first, second)
    assert proof == naive_consistency(first, leaves[:second])
    old, new = naive_root(leaves[:first]), naive_root(leaves[:second])
    assert verify_consistency(first, second, old, new, proof)
    if first != second:
        rewritten = naive_root([leaf_hash(b"rewritten"), *leaves[1:second]])
        assert not verify_consistency(first, second, old, rewritten, proof)
        assert not verify_consistency(first, second, leaf_hash(b"other"), new, proof)


@given(sizes, st.data())
def test_no_changed_proof_holds(size: int, data: st.DataObject) -> None:
    leaves = leaves_of(size)
    tree = PackedTree(b"".join(leaves))
    index = data.draw(st.integers(0, size - 1))
    path = inclusion_proof(tree, index)
    other = data.draw(st.integers(0, size - 1).filter(lambda i: i != index) | st.just(size))
    assert not verify_inclusion(leaves[index], other, size, path, tree.root)
    assert not verify_inclusion(leaves[index], index, size, [*path, b"\0" * 32], tree.root)
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        flipped = bytearray(path[at])
        flipped[data.draw(st.integers(0, 31))] ^= data.draw(st.integers(1, 255))
        changed = [*path[:at], bytes(flipped), *path[at + 1 :]]
        assert not verify_inclusion(leaves[index], index, size, changed, tree.root)
        assert not verify_inclusion(leaves[index], index, size, path[:-1], tree.root)
        assert not verify_inclusion(leaves[index], index, size, path[1:], tree.root)


@given(sizes, st.data())
def test_a_tree_that_holds_its_newer_leaves_gives_the_same_proofs(
    size: int, data: st.DataObject
) -> None:
    leaves = leaves_of(size)
    first = data.draw(st.integers(0, size))
    older = CompactRange()
    older.extend(leaves[:first])
    whole = PackedTree(b"".join(leaves))
    grown = GrownTree(older, b"".join(leaves[first:]))
    assert (grown.size, grown.root) == (whole.size, whole.root)
    assert consistency_proof(grown, first) == consistency_proof(whole, first)
    for index in range(first, size):
        assert inclusion_proof(grown, index) == inclusion_proof(whole, index)


def test_what_is_not_held_or_not_there_is_refused() -> None:
    older = CompactRange()
    older.extend(LEAVES[:5])
    grown = GrownTree(older, b"".join(LEAVES[5:]))
    with pytest.raises(KeyError):
        inclusion_proof(grown, 1)
    with pytest.raises(IndexError):
        inclusion_proof(grown, 8)
    with pytest.raises(IndexError):
        consistency_proof(grown, 9)
    with pytest.raises(ValueError, match="does not fall"):
        CompactRange(3, [b"\0" * 32])
    with pytest.raises(ValueError, match="32 bytes"):
        PackedTree(b"\0" * 33)


def test_the_empty_tree_is_consistent_with_every_other_only_by_its_own_root() -> None:
    assert verify_consistency(0, 8, EMPTY_ROOT, ROOTS[7], [])
    assert not verify_consistency(0, 8, ROOTS[0], ROOTS[7], [])
    assert not verify_consistency(8, 8, ROOTS[7], ROOTS[6], [])
    assert not verify_consistency(8, 7, ROOTS[7], ROOTS[6], [])
    assert not verify_consistency(4, 8, ROOTS[3], ROOTS[7], [])
    assert not verify_inclusion(LEAVES[0], 0, 0, [], EMPTY_ROOT)
