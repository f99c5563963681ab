"""Heads of the log: what its operator signs of it, once a day.

A head says how many seals the log holds and the Merkle root over them. It names the head
before, and a consistency proof shows that the log only grew: who has one head can check
that no seal before it was changed, moved or left out since.

Pure: no keys, no disk, no database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, cast

import orjson

from arena.exceptions import LogHeadError
from arena.records.merkle import MAX_PROOF
from arena.runs.canonical import canonical
from arena.runs.seal import SIGNATURE_BYTES, BlockRef, timestamp
from scoring.types import Json, JsonObject

HEAD_SCHEMA = 1
DOMAIN = b"sn15-arena log head 1\n"
"""Stands before the bytes that are signed: no signature over a seal is one over a head."""
COMMITMENT = "sn15-arena log 1"
"""What a commitment of a head begins with."""
MAX_LINE_BYTES = 32_768
_HASH = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"[1-9A-HJ-NP-Za-km-z]{40,60}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")
_BLOCK_HASH = re.compile(r"0x[0-9a-f]{64}")
_MAX_NUMBER = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Head:
    """The log as it stood when a day was closed.

    `log` is its operator's SS58 address, which names the log. `size` counts its seals,
    `root` is the Merkle root over their leaves. `previous` is the SHA-256 of the head
    before, None for the first. `closed_at` is RFC 3339 in UTC; `block` the last block then.
    """

    log: str
    day: date
    size: int
    root: bytes
    previous: str | None
    closed_at: str
    block: BlockRef | None = None

    @property
    def cutoff(self) -> datetime:
        """The end of what it covers: seals made before then belong into it or an earlier one."""
        return min(datetime.fromisoformat(self.closed_at), end_of(self.day))

    def to_json(self) -> JsonObject:
        """The JSON object that is made canonical and signed."""
        return {
            "schema": HEAD_SCHEMA,
            "log": self.log,
            "day": self.day.isoformat(),
            "size": self.size,
            "root": self.root.hex(),
            "previous": self.previous,
            "closed_at": self.closed_at,
            "block": self.block.to_json() if self.block else None,
        }

    def encode(self) -> bytes:
        """The canonical bytes. Once: keep what this returns."""
        return canonical(self.to_json())

    @classmethod
    def decode(cls, content: bytes) -> Head:
        """Read a head's bytes. Raises LogHeadError unless they are what `encode` makes."""
        try:
            value = orjson.loads(content)
            _check(value)
            block = value["block"]
            head = cls(
                log=value["log"],
                day=date.fromisoformat(value["day"]),
                size=value["size"],
                root=bytes.fromhex(value["root"]),
                previous=value["previous"],
                closed_at=value["closed_at"],
                block=BlockRef(block["number"], block["hash"]) if block else None,
            )
            exact = head.encode() == content
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LogHeadError(f"not a head of schema {HEAD_SCHEMA}") from error
        if not exact:
            raise LogHeadError(f"not a head of schema {HEAD_SCHEMA}, or not its canonical form")
        return head


def end_of(day: date) -> datetime:
    """The first moment after a day, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


def closing_time(at: datetime) -> str:
    """`closed_at` of a head that is made now."""
    return timestamp(at)


def signing_message(head: bytes) -> bytes:
    """The bytes that the operator's key signs."""
    return DOMAIN + head


@dataclass(frozen=True)
class SignedHead:
    """A head's bytes, the operator's signature, and the proof that the head before grew to it."""

    content: bytes
    signature: bytes
    consistency: tuple[bytes, ...] = ()

    @cached_property
    def head(self) -> Head:
        """The head. Raises LogHeadError when the bytes are none."""
        return Head.decode(self.content)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the head's bytes, lower-case hex; the next head names it."""
        return hashlib.sha256(self.content).hexdigest()

    def to_json(self) -> JsonObject:
        """The JSON object that files and proofs hold."""
        return {
            "head": orjson.loads(self.content),
            "signature": self.signature.hex(),
            "consistency": [step.hex() for step in self.consistency],
        }

    def to_line(self) -> bytes:
        """One line of canonical JSON."""
        return canonical(self.to_json())

    @classmethod
    def from_line(cls, line: bytes) -> SignedHead:
        """Read what `to_line` wrote. Raises LogHeadError on anything else, to the byte."""
        if len(line) > MAX_LINE_BYTES:
            raise LogHeadError("a line that is too long for a head")
        try:
            signed = cls.from_json(orjson.loads(line))
            exact = signed.to_line() == line
        except ValueError as error:
            raise LogHeadError("not a line with a head and its signature") from error
        if not exact:
            raise LogHeadError("not a line with a head, or not its canonical form")
        return signed

    @classmethod
    def from_json(cls, value: Json) -> SignedHead:
        """Read what `to_json` wrote. Raises LogHeadError."""
        try:
            fields = cast("dict[str, Any]", value)
            signature = bytes.fromhex(fields["signature"])
            signed = cls(canonical(fields["head"]), signature, hashes(fields["consistency"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LogHeadError("not a head with its signature") from error
        if len(signed.signature) != SIGNATURE_BYTES or len(fields) != len(signed.to_json()):
            raise LogHeadError("not a head with its signature")
        return signed


def hashes(value: Sequence[str]) -> tuple[bytes, ...]:
    """Hashes from their hex. Raises ValueError or TypeError for what is none."""
    if not isinstance(value, list) or len(value) > MAX_PROOF:
        raise ValueError("no list of hashes")
    if not all(isinstance(text, str) and _HASH.fullmatch(text) for text in value):
        raise ValueError("no SHA-256 in lower-case hex")
    return tuple(bytes.fromhex(text) for text in value)


def commitment_of(head: Head) -> bytes:
    """What is put on chain for a head: under 128 bytes, and readable by people."""
    text = f"{COMMITMENT} {head.day.isoformat()} {head.size} {head.root.hex()}"
    return text.encode("ascii")


def read_commitment(data: bytes) -> tuple[date, int, bytes]:
    """Day, size and root of a commitment. Raises LogHeadError for other bytes."""
    try:
        text = data.decode("ascii")
        day, size, root = text.removeprefix(f"{COMMITMENT} ").split(" ")
        read = (date.fromisoformat(day), int(size), bytes.fromhex(root))
        exact = text == f"{COMMITMENT} {read[0].isoformat()} {read[1]} {read[2].hex()}"
    except (ValueError, UnicodeDecodeError) as error:
        raise LogHeadError("not the commitment of a log's head") from error
    if not exact or len(read[2]) != 32 or read[1] < 0:
        raise LogHeadError("not the commitment of a log's head")
    return read


def _check(value: dict[str, Any]) -> None:
    """Raises ValueError, KeyError or TypeError for a field out of its bounds."""
    previous, block = value["previous"], value["block"]
    if not (
        value["schema"] == HEAD_SCHEMA
        and _ADDRESS.fullmatch(value["log"])
        and _DAY.fullmatch(value["day"])
        and _number(value["size"])
        and _HASH.fullmatch(value["root"])
        and (previous is None or _HASH.fullmatch(previous))
        and _TIME.fullmatch(value["closed_at"])
        and datetime.fromisoformat(value["closed_at"])
        and (block is None or (_number(block["number"]) and _BLOCK_HASH.fullmatch(block["hash"])))
    ):
        raise ValueError("a field is out of its bounds")


def _number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_NUMBER
