"""What a race is committed to before its draw, kept sealed until then.

Stored before the race opens: whoever opened a race can draw it, after a kill, too. What stands
for a race is never replaced, so of two that open it both commit to the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db.calendar_tables import race_secrets
from arena.exceptions import SecretError
from arena.season.draw import SECRET_BYTES
from arena.season.listing import KEY_BYTES
from arena.secrets import SecretBox


@dataclass(frozen=True, slots=True, repr=False)
class RaceSecret:
    """The secret of a draw, 32 bytes in hex, and the key of its listing. It shows neither."""

    secret: str
    listing_key: bytes


class RaceSecrets:
    """Secrets of races in the database, sealed. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine, box: SecretBox, random: Callable[[int], bytes]) -> None:
        """`random` gives so many unpredictable bytes."""
        self._engine = engine
        self._box = box
        self._random = random

    async def keep(self, race_id: str) -> RaceSecret:
        """The secret of a race, made and stored when it has none. Raises SecretError."""
        made = {
            "secret": self._random(SECRET_BYTES).hex(),
            "listing_key": self._random(KEY_BYTES).hex(),
        }
        row = {"race_id": race_id, "sealed": self._box.seal(json.dumps(made).encode())}
        found = await self.find(race_id)
        if found is None:
            async with self._engine.begin() as connection:
                await connection.execute(insert(race_secrets).values(row).on_conflict_do_nothing())
            found = await self.find(race_id)
        assert found is not None
        return found

    async def find(self, race_id: str) -> RaceSecret | None:
        """The secret of a race; None without one. Raises SecretError when it does not open."""
        query = select(race_secrets.c.sealed).where(race_secrets.c.race_id == race_id)
        async with self._engine.connect() as connection:
            sealed = await connection.scalar(query)
        if sealed is None:
            return None
        kept = json.loads(self._box.open(sealed))
        return RaceSecret(str(kept["secret"]), bytes.fromhex(kept["listing_key"]))

    async def need(self, race_id: str) -> RaceSecret:
        """The secret of a race that was opened. Raises SecretError when it is gone."""
        found = await self.find(race_id)
        if found is None:
            raise SecretError(
                f"the secret of {race_id} is not here: it cannot be drawn, and will be void"
            )
        return found
