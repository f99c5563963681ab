"""Nonces in Postgres: a signed request counts once, whichever process it comes to.

A row is the SHA-256 of hotkey and nonce, kept until the signature is too old to be accepted
by its time alone. `bittensor-auth` forgets a nonce one clock skew after it was seen, while a
signature from a clock that is ahead is good for up to two: here a nonce stays until then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import DateTime, LargeBinary, bindparam, delete, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.gathering import Gathering
from arena.db.schema import request_nonces

MARGIN_S = 5
"""How much longer than its signature a nonce is kept: clocks of processes differ."""
MAX_NONCE_CHARS = 256
PRUNE_EVERY_S = 60.0


# One statement and one transaction of its own. A crash of the database's machine may forget
# the last instants: what a replay could do then is done already, since every call here is
# idempotent. Sorted, so that two processes never wait for each other.
_USE = text(
    """
    WITH unhurried AS (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO request_nonces (digest, expires_at)
    SELECT used.digest, used.expires_at
    FROM unhurried, unnest(:digests, :expiries) AS used (digest, expires_at)
    ON CONFLICT DO NOTHING RETURNING digest
    """
).bindparams(
    bindparam("digests", type_=ARRAY(LargeBinary)),
    bindparam("expiries", type_=ARRAY(DateTime(True))),
)
_TOGETHER = 256
"""How many nonces one statement takes."""


class NonceStore:
    """The nonces that were used. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._gathering = Gathering(self._use, most=_TOGETHER)

    async def use(self, hotkey: str, nonce: str, *, good_until: datetime) -> bool:
        """Whether this is the nonce's first use. Of two at once, in any processes, one is first."""
        digest = hashlib.sha256(f"{hotkey}:{nonce}".encode("utf-8", "surrogatepass")).digest()
        return await self._gathering.do((digest, good_until + timedelta(seconds=MARGIN_S)))

    async def _use(self, used: Sequence[tuple[bytes, datetime]]) -> list[bool]:
        """Whether each is the first of its kind, in the table and among these."""
        rows = dict(sorted(used, key=lambda nonce: nonce[1]))  # the same twice: the later end
        digests = sorted(rows)
        values = {"digests": digests, "expiries": [rows[digest] for digest in digests]}
        async with self._at_once.connect() as connection:
            new = set(await connection.scalars(_USE, values))
        first = []
        for digest, _ in used:
            first.append(digest in new)
            new.discard(digest)
        return first

    async def prune(self, now: datetime) -> None:
        """Forget those whose signatures are too old by themselves."""
        async with self._engine.begin() as connection:
            await connection.execute(
                delete(request_nonces).where(request_nonces.c.expires_at < now)
            )
