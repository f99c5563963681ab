"""Public randomness that nobody could know when a race was committed to.

A ticket names the one value of a beacon that will decide: a round of drand's quicknet, or
a later block of the chain. For drand the round follows from the closing time, so that
there is nothing to choose; a block's number is fixed in the commitment. Quicknet's rounds
are BLS signatures (scheme bls-unchained-g1-rfc9380) under a key that no single party
holds; their randomness is the SHA-256 of the signature.

Pure: values are handed in, nothing is fetched.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from arena.exceptions import DrawError
from scoring.types import JsonObject

QUICKNET_CHAIN = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
QUICKNET_GENESIS = datetime.fromtimestamp(1_692_803_367, UTC)
QUICKNET_PERIOD = timedelta(seconds=3)
SIGNATURE_BYTES = 48
"""A compressed point of G1. Exactly: bytes behind it would change the hash and not the
signature, and with it let whoever reports the round choose the randomness."""

BLOCK_SECONDS = 12
"""The chain's time between two blocks."""

_HASH = re.compile(r"[0-9a-f]{64}")
_PROBE = b"sn15-arena beacon"


class Source(StrEnum):
    """Where the randomness comes from. Stable: commitments hold it."""

    DRAND = "drand:quicknet"
    CHAIN = "chain"
    STANDIN = "standin"
    """Made by the arena itself, for simulations: proves nothing to anybody."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Which value of a beacon will decide: a drand round, or a block number.

    `known` is the last block when the ticket was written, None for the other sources.
    """

    source: Source
    number: int
    known: int | None = None

    def to_json(self) -> JsonObject:
        """As commitments hold it."""
        return {"source": self.source.value, "number": self.number, "known": self.known}


@dataclass(frozen=True, slots=True)
class BeaconValue:
    """What a beacon said: 32 bytes as lower-case hex, and when.

    `value` is drand's randomness, or a block's hash without its 0x. `signature` is drand's,
    in lower-case hex; None for the other sources.
    """

    source: Source
    number: int
    value: str
    at: datetime
    signature: str | None = None

    def to_json(self) -> JsonObject:
        """As reveals hold it."""
        return {
            "source": self.source.value,
            "number": self.number,
            "value": self.value,
            "at": self.at.isoformat(),
            "signature": self.signature,
        }


def quicknet_round(moment: datetime) -> int:
    """The first round that is made at `moment` or later."""
    return max(1, -((QUICKNET_GENESIS - moment) // QUICKNET_PERIOD) + 1)


def quicknet_time(number: int) -> datetime:
    """When a round is made, in UTC."""
    return QUICKNET_GENESIS + (number - 1) * QUICKNET_PERIOD


def drand_ticket(closes_at: datetime, delay: timedelta) -> Ticket:
    """The round that decides a race which closes then. There is no other."""
    return Ticket(Source.DRAND, quicknet_round(closes_at + delay))


def standin_ticket(closes_at: datetime, delay: timedelta) -> Ticket:
    """The same round of the stand-in beacon."""
    return Ticket(Source.STANDIN, quicknet_round(closes_at + delay))


def chain_ticket(known: int, now: datetime, closes_at: datetime, delay: timedelta) -> Ticket:
    """A block that is expected after the closing, from the last block `known` at `now`.

    Blocks come at their time or later, never earlier, so the block is not made before.
    """
    ahead = -(-(closes_at + delay - now) // timedelta(seconds=BLOCK_SECONDS))
    return Ticket(Source.CHAIN, known + max(1, ahead), known)


def drand_value(number: int, signature: str) -> BeaconValue:
    """A round as its public servers give it: the randomness follows from the signature."""
    raw = _signature(signature)
    randomness = hashlib.sha256(raw).hexdigest()
    return BeaconValue(Source.DRAND, number, randomness, quicknet_time(number), signature)


def standin_value(number: int, seed: str) -> BeaconValue:
    """A round of the stand-in beacon, from a seed."""
    value = hashlib.sha256(f"sn15-arena stand-in beacon\n{seed}\n{number}".encode()).hexdigest()
    return BeaconValue(Source.STANDIN, number, value, quicknet_time(number))


def check_ticket(ticket: Ticket, now: datetime, closes_at: datetime, delay: timedelta) -> None:
    """Refuse a ticket whose value exists already, may exist before the closing, or was chosen.

    Raises DrawError (`draw.bad_beacon`).
    """
    if ticket.source is Source.CHAIN:
        known = ticket.known
        if known is None or known < 0:
            raise DrawError(
                "a ticket for a block says which block was the last", code="draw.bad_beacon"
            )
        expected = chain_ticket(known, now, closes_at, delay).number
    else:
        expected = quicknet_round(closes_at + delay)
        if quicknet_time(expected) <= now:
            raise DrawError("that round of the beacon exists already", code="draw.bad_beacon")
    if ticket.number != expected:
        raise DrawError(
            f"{ticket.source.value} number {ticket.number} decides nothing here: it must be"
            f" {expected}, which follows from the closing time",
            code="draw.bad_beacon",
        )


def check_value(ticket: Ticket, value: BeaconValue, closes_at: datetime) -> bool:
    """Refuse what is not the value that the ticket names.

    Returns whether its origin was proven: drand's signature, where `bittensor_core` is
    installed, which brings the pairing that it takes. A block's hash proves nothing by
    itself. Raises DrawError (`draw.other_beacon`, `draw.forged_beacon`, `draw.early_beacon`).
    """
    if (value.source, value.number) != (ticket.source, ticket.number):
        raise DrawError(
            f"the commitment names {ticket.source.value} number {ticket.number}, not"
            f" {value.source.value} number {value.number}",
            code="draw.other_beacon",
        )
    if not _HASH.fullmatch(value.value):
        raise DrawError("a beacon's value is 32 bytes in hex", code="draw.forged_beacon")
    if value.at < closes_at:
        raise DrawError(
            "the beacon's value was there before qualifying closed", code="draw.early_beacon"
        )
    if value.source is not Source.DRAND:
        return False
    if value.at != quicknet_time(value.number):
        raise DrawError("a round is made at its own time", code="draw.forged_beacon")
    signature = value.signature or ""
    if hashlib.sha256(_signature(signature)).hexdigest() != value.value:
        raise DrawError(
            "drand's randomness is not the hash of its signature", code="draw.forged_beacon"
        )
    proven = signed_by_quicknet(value.number, signature)
    if proven is False:
        raise DrawError(
            f"the signature is not quicknet's for round {value.number}", code="draw.forged_beacon"
        )
    return proven is True


def signed_by_quicknet(number: int, signature: str) -> bool | None:
    """Whether this is quicknet's BLS signature of the round; None when nothing here can tell.

    Timelock encryption (Boneh-Franklin, with Fujisaki-Okamoto) to a round can be opened by
    that round's signature and by nothing else. So a message is locked to the round here,
    and the signature has to open it.
    """
    core = _core()
    if core is None:
        return None
    locked, _ = core.encrypt_at_round(_PROBE, number)
    try:
        return bool(core.decrypt_with_signature(bytes(locked), signature) == _PROBE)
    except ValueError:
        return False


def _core() -> Any | None:
    try:
        return importlib.import_module("bittensor_core")
    except ImportError:
        return None


def _signature(text: str) -> bytes:
    if not re.fullmatch(rf"[0-9a-f]{{{2 * SIGNATURE_BYTES}}}", text):
        raise DrawError(
            f"a quicknet signature is {SIGNATURE_BYTES} bytes in lower-case hex",
            code="draw.forged_beacon",
        )
    return bytes.fromhex(text)
