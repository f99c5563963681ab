"""Heads and commitments: one byte form, held to its bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.chain import COMMITMENT_BYTES
from arena.exceptions import LogHeadError
from arena.records.heads import (
    Head,
    SignedHead,
    commitment_of,
    end_of,
    read_commitment,
    signing_message,
)
from arena.runs.seal import BlockRef
from arena.runs.seal import signing_message as seal_message
from arena.runs.signing import KeypairSigner

OPERATOR = KeypairSigner("//Operator")
HEAD = Head(
    log=OPERATOR.address,
    day=date(2026, 1, 1),
    size=5,
    root=b"\x01" * 32,
    previous="ab" * 32,
    closed_at="2026-01-02T00:05:00.000000+00:00",
    block=BlockRef(7, "0x" + "0" * 64),
)


def line() -> bytes:
    content = HEAD.encode()
    return SignedHead(content, OPERATOR.sign(signing_message(content)), (b"\x02" * 32,)).to_line()


LINE = line()


@given(
    day=st.dates(date(2000, 1, 1), date(9998, 1, 1)),
    size=st.integers(0, 2**53 - 1),
    root=st.binary(min_size=32, max_size=32),
    block=st.none() | st.integers(0, 2**53 - 1),
)
def test_a_head_comes_back_from_its_bytes_and_its_commitment(
    day: date, size: int, root: bytes, block: int | None
) -> None:
    where = BlockRef(block, "0x" + "a" * 64) if block is not None else None
    head = replace(HEAD, day=day, size=size, root=root, block=where)
    assert Head.decode(head.encode()) == head
    data = commitment_of(head)
    assert len(data) <= COMMITMENT_BYTES
    assert read_commitment(data) == (day, size, root)


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_no_changed_line_is_the_same_head(at: int, flip: int) -> None:
    changed = LINE[:at] + bytes([LINE[at] ^ flip]) + LINE[at + 1 :]
    try:
        other = SignedHead.from_line(changed)
        _ = other.head
    except LogHeadError:
        return
    honest = SignedHead.from_line(LINE)
    assert (other.content, other.signature, other.consistency) != (
        honest.content,
        honest.signature,
        honest.consistency,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"log": "Alice"},
        {"size": -1},
        {"root": b"\x01" * 31},
        {"previous": "AB" * 32},
        {"closed_at": "2026-01-02 00:05"},
        {"closed_at": "2026-01-02T00:05:00+01:00"},
        {"block": BlockRef(-1, "0x" + "0" * 64)},
        {"block": BlockRef(1, "0x")},
    ],
)
def test_a_head_out_of_its_bounds_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(LogHeadError):
        Head.decode(replace(HEAD, **changes).encode())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [b"", b"{}", b"[]", b"null", LINE + b" ", b" " + LINE, LINE[:-1], b"\xff", b"[" * 9999]
)
def test_what_is_no_line_of_a_head_is_refused(bad: bytes) -> None:
    with pytest.raises(LogHeadError):
        SignedHead.from_line(bad)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"sn15-arena log 1 2026-01-01 5",
        b"sn15-arena log 2 2026-01-01 5 " + b"01" * 32,
        b"sn15-arena log 1 2026-01-01 05 " + b"01" * 32,
        b"sn15-arena log 1 2026-01-01 -5 " + b"01" * 32,
        b"sn15-arena log 1 2026-01-01 5 " + b"01" * 31,
        b"sn15-arena log 1 2026-13-01 5 " + b"01" * 32,
        b"\xff" * 90,
    ],
)
def test_what_is_no_commitment_is_refused(bad: bytes) -> None:
    with pytest.raises(LogHeadError):
        read_commitment(bad)


def test_a_head_covers_its_day_or_what_was_there_when_it_was_closed_early() -> None:
    assert HEAD.cutoff == end_of(HEAD.day) == datetime(2026, 1, 2, tzinfo=UTC)
    early = replace(HEAD, closed_at="2026-01-01T14:00:00+00:00")
    assert early.cutoff == datetime(2026, 1, 1, 14, tzinfo=UTC)


def test_no_signature_over_a_head_is_one_over_a_seal() -> None:
    content = HEAD.encode()
    assert signing_message(content) != seal_message(content)
