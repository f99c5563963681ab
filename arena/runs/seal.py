"""The seal of a record: who vouches for it, and its place in that validator's chain.

A record is its content (canonical JSON, made once) and a seal over it: a small canonical
JSON object of its own, signed. The seal holds the content's hash and the previous seal's,
so that chains, signatures and the Merkle log of a record that is not released yet can be
checked by anyone from its seal alone; the content proves nothing about them.

Pure: no keys, no disk, no database.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from arena.exceptions import SealError
from arena.runs.canonical import canonical
from arena.runs.record import EncodedRecord, Kind
from scoring.types import JsonObject

SEAL_SCHEMA = 1
SIGNATURE_BYTES = 64
DOMAIN = b"sn15-arena record seal 1\n"
"""Stands before the bytes that are signed: the same key also signs HTTP requests and
extrinsics, and a signature must never mean two things."""
_HASH = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"[1-9A-HJ-NP-Za-km-z]{40,60}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")
_BLOCK_HASH = re.compile(r"0x[0-9a-f]{64}")
_MAX_NUMBER = 2**53 - 1


def timestamp(at: datetime) -> str:
    """A time as seals hold it: RFC 3339 in UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block of the chain: the record was made after it."""

    number: int
    hash: str

    def to_json(self) -> JsonObject:
        """The JSON object that seals and heads hold."""
        return {"number": self.number, "hash": self.hash}


@dataclass(frozen=True, slots=True)
class Seal:
    """What a validator signs of a record.

    `validator` is its hotkey's SS58 address. `sequence` counts its seals from 1 without a
    gap; `previous` is the SHA-256 of the seal before, None for the first. `record` is the
    SHA-256 of the content and `size` its length in bytes. `sealed_at` is RFC 3339 in UTC
    and never before the previous seal's. `block` is the last block known then.
    """

    validator: str
    sequence: int
    previous: str | None
    kind: Kind
    record: str
    size: int
    sealed_at: str
    block: BlockRef | None = None

    def to_json(self) -> JsonObject:
        """The JSON object that is made canonical and signed."""
        return {
            "schema": SEAL_SCHEMA,
            "validator": self.validator,
            "sequence": self.sequence,
            "previous": self.previous,
            "kind": self.kind.value,
            "record": self.record,
            "size": self.size,
            "sealed_at": self.sealed_at,
            "block": self.block.to_json() if self.block else None,
        }

    @property
    def time(self) -> datetime:
        """`sealed_at` as a time."""
        return datetime.fromisoformat(self.sealed_at)

    def encode(self) -> bytes:
        """The canonical bytes. Once: keep what this returns."""
        return canonical(self.to_json())

    @classmethod
    def decode(cls, content: bytes) -> Seal:
        """Read a seal's bytes. Raises SealError unless they are exactly what `encode` makes
        of a seal in its bounds: whoever takes one over a wire takes it from a stranger."""
        try:
            value = json.loads(content)
            _check(value)
            block = value["block"]
            seal = cls(
                validator=value["validator"],
                sequence=value["sequence"],
                previous=value["previous"],
                kind=Kind(value["kind"]),
                record=value["record"],
                size=value["size"],
                sealed_at=value["sealed_at"],
                block=BlockRef(block["number"], block["hash"]) if block else None,
            )
            exact = seal.encode() == content
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SealError(f"not a seal of schema {SEAL_SCHEMA}") from error
        if not exact:
            raise SealError(f"not a seal of schema {SEAL_SCHEMA}, or not its canonical form")
        return seal


def _check(value: dict[str, Any]) -> None:
    """Raises ValueError, KeyError or TypeError for a field out of its bounds."""
    first = value["sequence"] == 1
    block = value["block"] or {"number": 0, "hash": "0x" + "0" * 64}
    if not (
        _ADDRESS.fullmatch(value["validator"])
        and _number(value["sequence"], 1)
        and (value["previous"] is None) == first
        and (first or _HASH.fullmatch(value["previous"]))
        and _HASH.fullmatch(value["record"])
        and _number(value["size"], 0)
        and _TIME.fullmatch(value["sealed_at"])
        and datetime.fromisoformat(value["sealed_at"])
        and _number(block["number"], 0)
        and _BLOCK_HASH.fullmatch(block["hash"])
    ):
        raise ValueError("a field is out of its bounds")


def _number(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= _MAX_NUMBER


def signing_message(seal: bytes) -> bytes:
    """The bytes that the validator's hotkey signs."""
    return DOMAIN + seal


@dataclass(frozen=True)
class Sealed:
    """A seal's bytes and the signature over them: what stays public of every record."""

    content: bytes
    signature: bytes

    @cached_property
    def seal(self) -> Seal:
        """The seal. Raises SealError when the bytes are none."""
        return Seal.decode(self.content)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the seal's bytes, lower-case hex; the next seal names it."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def leaf(self) -> bytes:
        """What the Merkle log holds of the record: the seal and its signature."""
        return self.content + self.signature

    def to_line(self) -> bytes:
        """One line of JSON, canonical like its parts."""
        return canonical({"seal": json.loads(self.content), "signature": self.signature.hex()})

    @classmethod
    def from_line(cls, line: bytes) -> Sealed:
        """Read what `to_line` wrote. Raises SealError on anything else, to the byte."""
        try:
            value = cast("JsonObject", json.loads(line))
            sealed = cls(canonical(value["seal"]), bytes.fromhex(cast("str", value["signature"])))
            exact = sealed.to_line() == line and len(sealed.signature) == SIGNATURE_BYTES
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SealError("not a line with a seal and its signature") from error
        if not exact:
            raise SealError("not a line with a seal and its signature, or not its canonical form")
        return sealed


@dataclass(frozen=True)
class SealedRecord:
    """A record with its seal, as spools, tables and exports hold it."""

    record: EncodedRecord
    sealed: Sealed

    @property
    def bound(self) -> bool:
        """Whether the seal is of this record: its hash, size and kind.

        Raises SealError when the seal cannot be read.
        """
        seal, record = self.sealed.seal, self.record
        try:
            kind = record.kind
        except ValueError:
            return False
        return (seal.record, seal.size, seal.kind) == (record.hash, len(record.content), kind)
