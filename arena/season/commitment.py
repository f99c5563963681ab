"""What is published of a race before it: everything that decides its draw, as hashes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from arena.exceptions import DrawError
from arena.runs.canonical import canonical
from arena.season.beacon import Source, Ticket
from scoring.types import Bucket, Json, JsonObject

COMMITMENT_SCHEMA = 1
MAX_NUMBER = 2**36
"""Beyond any round or block of the next thousand years; keeps times within the calendar."""
MAX_DELAY = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Commitment:
    """The terms of one draw. Its hash is what stands in public, on chain say, beforehand.

    `beacon_delay` is in seconds. `listing_hash` and `listing_size` are of the held-out
    pool that will be drawn from.
    """

    race_id: str
    committed_at: datetime
    closes_at: datetime
    secret_hash: str
    ticket: Ticket
    beacon_delay: int
    quota: Mapping[Bucket, int]
    listing_hash: str
    listing_size: int

    def to_json(self) -> JsonObject:
        """The JSON object that is hashed."""
        return {
            "schema": COMMITMENT_SCHEMA,
            "race_id": self.race_id,
            "committed_at": self.committed_at.isoformat(),
            "closes_at": self.closes_at.isoformat(),
            "secret_hash": self.secret_hash,
            "beacon": self.ticket.to_json(),
            "beacon_delay": self.beacon_delay,
            "quota": {bucket.value: self.quota.get(bucket, 0) for bucket in Bucket},
            "listing_hash": self.listing_hash,
            "listing_size": self.listing_size,
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, lower-case hex."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()

    @classmethod
    def from_json(cls, value: Json) -> Commitment:
        """Read what `to_json` wrote. Raises DrawError (`draw.bad_record`) on anything else."""
        try:
            data = cast("dict[str, JsonObject]", value)
            beacon, raw = data["beacon"], cast("dict[str, str]", value)
            read = cls(
                race_id=raw["race_id"],
                committed_at=datetime.fromisoformat(raw["committed_at"]),
                closes_at=datetime.fromisoformat(raw["closes_at"]),
                secret_hash=raw["secret_hash"],
                ticket=Ticket(
                    Source(cast("str", beacon["source"])),
                    cast("int", beacon["number"]),
                    cast("int | None", beacon["known"]),
                ),
                beacon_delay=cast("int", raw["beacon_delay"]),
                quota={Bucket(b): cast("int", n) for b, n in data["quota"].items()},
                listing_hash=raw["listing_hash"],
                listing_size=cast("int", raw["listing_size"]),
            )
            exact = canonical(read.to_json()) == canonical(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DrawError(
                f"the commitment cannot be read: {error!r:.200}", code="draw.bad_record"
            ) from None
        counts = (read.ticket.number, read.beacon_delay, read.listing_size, *read.quota.values())
        whole = all(type(n) is int and n >= 0 for n in counts)
        texts = (read.race_id, read.secret_hash, read.listing_hash)
        named = all(isinstance(text, str) and text.isascii() for text in texts)
        bounded = whole and read.ticket.number <= MAX_NUMBER and read.beacon_delay <= MAX_DELAY
        times = all(
            at.tzinfo is not None and 2000 < at.year < 9000
            for at in (read.committed_at, read.closes_at)
        )
        if not (exact and named and bounded and times):
            raise DrawError(
                f"not a commitment of schema {COMMITMENT_SCHEMA}", code="draw.bad_record"
            )
        return read
