"""The record of a draw: everything with which anyone can make the draw again.

Published in two parts: the commitment and the listing before qualifying closes, the
secret and the beacon's value with the draw. The problems themselves are opened when the
race is over. JSON, of schema `DRAW_SCHEMA`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from arena.exceptions import DrawError
from arena.journal import Event
from arena.runs.canonical import canonical
from arena.season.beacon import BeaconValue, Source
from arena.season.commitment import Commitment
from arena.season.listing import Opening, PoolListing
from arena.season.state import RACE_CLOSED, RACE_DRAWN, RACE_OPENED
from scoring.types import Json, JsonObject

DRAW_SCHEMA = "sn15-arena/draw/1"


@dataclass(frozen=True, slots=True)
class Reveal:
    """What is published with the draw. `secret` and `seed` are 32 bytes in hex."""

    secret: str
    beacon: BeaconValue
    seed: str
    drawn: tuple[str, ...]
    """The rows drawn, in the order of the draw."""

    def to_json(self) -> JsonObject:
        """As records hold it."""
        return {
            "secret": self.secret,
            "beacon": self.beacon.to_json(),
            "seed": self.seed,
            "drawn": list[Json](self.drawn),
        }

    @classmethod
    def from_json(cls, value: Json) -> Reveal:
        """Read what `to_json` wrote. Raises KeyError, TypeError, ValueError."""
        data = cast("dict[str, str]", value)
        beacon = cast("dict[str, str]", data["beacon"])
        number, signature = cast("Json", beacon["number"]), beacon["signature"]
        at = datetime.fromisoformat(beacon["at"])
        texts = [data["secret"], data["seed"], beacon["value"], *data["drawn"]]
        if signature is not None:
            texts.append(signature)
        if not all(isinstance(text, str) for text in texts) or at.tzinfo is None:
            raise TypeError("a reveal is made of texts and a time with its zone")
        if type(number) is not int or number < 0:
            raise TypeError("a beacon's number is a whole one")
        return cls(
            data["secret"],
            BeaconValue(Source(beacon["source"]), number, beacon["value"], at, signature),
            data["seed"],
            tuple(data["drawn"]),
        )


@dataclass(frozen=True, slots=True)
class DrawRecord:
    """One race's draw; `reveal` is None before it, `opened` empty before the race is over."""

    commitment: Commitment
    listing: PoolListing
    reveal: Reveal | None = None
    opened: tuple[Opening, ...] = ()

    def to_json(self) -> JsonObject:
        """The record, as it is published."""
        return {
            "schema": DRAW_SCHEMA,
            "commitment": self.commitment.to_json(),
            "listing": self.listing.to_json(),
            "reveal": self.reveal.to_json() if self.reveal else None,
            "opened": [opening.to_json() for opening in self.opened],
        }

    @classmethod
    def from_json(cls, value: Json) -> DrawRecord:
        """Read what `to_json` wrote. Raises DrawError (`draw.bad_record`) on anything else."""
        try:
            data = cast("JsonObject", value)
            if data["schema"] != DRAW_SCHEMA:
                raise DrawError(
                    f"schema {str(data['schema'])[:40]!r} is not {DRAW_SCHEMA}",
                    code="draw.bad_record",
                )
            reveal = data["reveal"]
            rows = cast("list[dict[str, str]]", data["opened"])
            read = cls(
                Commitment.from_json(data["commitment"]),
                PoolListing.from_json(data["listing"]),
                None if reveal is None else Reveal.from_json(reveal),
                tuple(Opening(row["problem_id"] + "", row["salt"] + "") for row in rows),
            )
            exact = canonical(read.to_json()) == canonical(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DrawError(
                f"not the record of a draw: {error!r:.200}", code="draw.bad_record"
            ) from None
        if not exact:
            raise DrawError(f"not a record of {DRAW_SCHEMA}, exactly", code="draw.bad_record")
        return read


def record_of(events: Iterable[Event], race_id: str) -> DrawRecord:
    """The record of a race, from the journal of its season, with what is public of it by then.

    Raises DrawError (`draw.no_such_race`).
    """
    record: DrawRecord | None = None
    openings: tuple[Opening, ...] = ()
    for event in events:
        data = event.data
        if event.kind == RACE_OPENED:
            commitment = Commitment.from_json(data["commitment"])
            if commitment.race_id == race_id:
                record = DrawRecord(commitment, PoolListing.from_json(data["listing"]))
        elif record is not None and data.get("race_id") == race_id:
            if event.kind == RACE_DRAWN:
                rows = cast("list[dict[str, str]]", data["problems"])
                drawn: list[Json] = [row["leaf"] for row in rows]
                revealed: JsonObject = {
                    name: data[name] for name in ("secret", "beacon", "seed")
                } | {"drawn": drawn}
                record = DrawRecord(record.commitment, record.listing, Reveal.from_json(revealed))
                openings = tuple(Opening(row["problem_id"], row["salt"]) for row in rows)
            elif event.kind == RACE_CLOSED:
                record = DrawRecord(record.commitment, record.listing, record.reveal, openings)
    if record is None:
        raise DrawError(
            f"the journal has no race {race_id[:80]!r}",
            code="draw.no_such_race",
            remedy="arena race verify FILE, for a record that was published",
        )
    return record
