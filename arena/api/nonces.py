"""Nonces in Postgres: a signed request counts once, whichever process it comes to.

A row is the SHA-256 of hotkey and nonce, kept until the signature is too old to be accepted
by its time alone. `bittensor-auth` forgets a nonce one clock skew after it was seen, while a
signature from a clock that is ahead is good for up to two: here a nonce stays until then.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from sqlalchemy import DateTime, LargeBinary, bindparam, delete, text
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db.schema import request_nonces

MARGIN_S = 5
"""How much longer than its signature a nonce is kept: clocks of processes differ."""
MAX_NONCE_CHARS = 256
PRUNE_EVERY_S = 60.0


# One statement and one transaction of its own. A crash of the database's machine may forget
# the last instants: what a replay could do then is done already, since every call here is
# idempotent.
_USE = text(
    """
    WITH unhurried AS (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO request_nonces (digest, expires_at)
    SELECT :digest, :expires_at FROM unhurried
    ON CONFLICT DO NOTHING RETURNING digest
    """
).bindparams(bindparam("digest", type_=LargeBinary), bindparam("expires_at", type_=DateTime(True)))


class NonceStore:
    """The nonces that were used. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._at_once = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def use(self, hotkey: str, nonce: str, *, good_until: datetime) -> bool:
        """Whether this is the nonce's first use. Of two at once, in any processes, one is first."""
        digest = hashlib.sha256(f"{hotkey}:{nonce}".encode("utf-8", "surrogatepass")).digest()
        row = {"digest": digest, "expires_at": good_until + timedelta(seconds=MARGIN_S)}
        async with self._at_once.connect() as connection:
            return (await connection.scalar(_USE, row)) is not None

    async def prune(self, now: datetime) -> None:
        """Forget those whose signatures are too old by themselves."""
        async with self._engine.begin() as connection:
            await connection.execute(
                delete(request_nonces).where(request_nonces.c.expires_at < now)
            )
