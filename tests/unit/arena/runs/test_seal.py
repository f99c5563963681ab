"""A seal is exactly its bytes, in its bounds, and of one record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.exceptions import SealError
from arena.runs.canonical import canonical
from arena.runs.record import EncodedRecord, Kind
from arena.runs.seal import BlockRef, Seal, Sealed, SealedRecord, signing_message
from arena.runs.signing import KeypairSigner, verify_signature
from tests.unit.arena.builders import seal

ALICE, BOB = KeypairSigner("//Alice"), KeypairSigner("//Bob")
SEAL = Seal(
    validator=ALICE.address,
    sequence=2,
    previous="ab" * 32,
    kind=Kind.RUN,
    record="cd" * 32,
    size=10,
    sealed_at="2026-01-01T00:00:00.000001+00:00",
    block=BlockRef(7, "0x" + "07" * 32),
)
FIRST = replace(SEAL, sequence=1, previous=None, block=None)


@pytest.mark.parametrize("value", [SEAL, FIRST])
def test_a_seal_comes_back_as_it_was(value: Seal) -> None:
    assert Seal.decode(value.encode()) == value
    sealed = Sealed(value.encode(), ALICE.sign(signing_message(value.encode())))
    again = Sealed.from_line(sealed.to_line())
    assert (again, again.hash, again.seal) == (sealed, sealed.hash, value)


@pytest.mark.parametrize(
    "change",
    [
        {"validator": "5Grw\0" + "x" * 44},
        {"validator": 7},
        {"sequence": 0},
        {"sequence": 1},
        {"sequence": True},
        {"sequence": "2"},
        {"sequence": 2**53},
        {"previous": None},
        {"previous": "AB" * 32},
        {"previous": "ab"},
        {"kind": "rumour"},
        {"record": None},
        {"size": -1},
        {"size": 1.5},
        {"sealed_at": "2026-01-01T00:00:00Z"},
        {"sealed_at": "2026-13-01T00:00:00+00:00"},
        {"sealed_at": "2026-01-01T00:00:00+02:00"},
        {"block": {"number": -1, "hash": "0x" + "07" * 32}},
        {"block": {"number": 1, "hash": "07" * 32}},
        {"block": {"number": 1}},
        {"block": 3},
        {"schema": 2},
        {"more": 1},
    ],
)
def test_a_field_out_of_its_bounds_is_no_seal(change: dict[str, Any]) -> None:
    with pytest.raises(SealError):
        Seal.decode(canonical({**SEAL.to_json(), **change}))


def test_bytes_that_are_not_canonical_are_no_seal() -> None:
    with pytest.raises(SealError, match="canonical"):
        Seal.decode(json.dumps(SEAL.to_json()).encode())


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_a_seal_or_a_line_by_chance(data: bytes) -> None:
    with pytest.raises(SealError):
        Seal.decode(data)
    with pytest.raises(SealError):
        Sealed.from_line(data)


LINE = Sealed(SEAL.encode(), ALICE.sign(signing_message(SEAL.encode()))).to_line()


@settings(max_examples=300)
@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_any_flipped_byte_of_a_line_is_found(position: int, flip: int) -> None:
    line = bytearray(LINE)
    line[position] ^= flip
    try:
        sealed = Sealed.from_line(bytes(line))
        _ = sealed.seal
    except SealError:
        return
    message = signing_message(sealed.content)
    assert not verify_signature(sealed.seal.validator, message, sealed.signature)


def test_a_signature_holds_for_one_key_one_message_and_one_purpose() -> None:
    content = SEAL.encode()
    signature = ALICE.sign(signing_message(content))
    assert verify_signature(ALICE.address, signing_message(content), signature)
    assert not verify_signature(BOB.address, signing_message(content), signature)
    assert not verify_signature(ALICE.address, content, signature)
    assert not verify_signature(ALICE.address, signing_message(FIRST.encode()), signature)
    assert not verify_signature("no address", signing_message(content), signature)
    assert not verify_signature(ALICE.address, signing_message(content), signature[:-1])


def test_a_seal_is_bound_to_the_bytes_the_length_and_the_kind_of_its_record() -> None:
    record = EncodedRecord(b'{"kind":"run","schema":1}')
    (sealed,) = seal(record)
    assert sealed.bound
    assert not SealedRecord(EncodedRecord(record.content + b" "), sealed.sealed).bound
    assert not SealedRecord(EncodedRecord(b'{"kind":"verdict","schema":1}'), sealed.sealed).bound
    other = replace(sealed.sealed.seal, kind=Kind.VERDICT).encode()
    assert not SealedRecord(record, Sealed(other, sealed.sealed.signature)).bound
