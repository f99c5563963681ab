"""Challenges and sessions in Postgres, by their hashes: the table opens nothing.

A challenge is signed by the hotkey and used once; a session's token stands in the
`Authorization` header afterwards.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db.schema import auth_challenges, auth_sessions

CHALLENGE_PREFIX = "sn15-arena"
TOKEN_PREFIX = "ses_"  # noqa: S105 - what a token begins with
MAX_TEXT = 512
"""No challenge or token is longer."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who a token speaks for."""

    hotkey: str
    role: str
    expires_at: datetime


class SessionStore:
    """Challenges and sessions. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def challenge(self, hotkey: str, *, now: datetime, ttl_s: float) -> tuple[str, datetime]:
        """A new challenge for this hotkey, and until when it may be signed."""
        text = f"{CHALLENGE_PREFIX}:{int(now.timestamp())}:{secrets.token_hex(16)}"
        expires_at = now + timedelta(seconds=ttl_s)
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(auth_challenges).values(
                    challenge_hash=_hash(text), hotkey=hotkey, expires_at=expires_at
                )
            )
        return text, expires_at

    async def redeem(self, hotkey: str, challenge: str, *, now: datetime) -> bool:
        """Use a challenge up; whether it was this hotkey's and still good."""
        table = auth_challenges.c
        query = (
            delete(auth_challenges)
            .where(table.challenge_hash == _hash(challenge), table.hotkey == hotkey)
            .returning(table.expires_at)
        )
        async with self._engine.begin() as connection:
            expires_at = await connection.scalar(query)
        return expires_at is not None and now <= expires_at

    async def open(
        self, hotkey: str, role: str, *, now: datetime, ttl_s: float
    ) -> tuple[str, datetime]:
        """A new session's token, which is stored nowhere, and when it ends."""
        token = TOKEN_PREFIX + secrets.token_hex(32)
        expires_at = now + timedelta(seconds=ttl_s)
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(auth_sessions).values(
                    token_hash=_hash(token),
                    hotkey=hotkey,
                    role=role,
                    created_at=now,
                    expires_at=expires_at,
                )
            )
        return token, expires_at

    async def find(self, token: str, *, now: datetime) -> Session | None:
        """The session of a token; None when there is none, or it is over."""
        table = auth_sessions.c
        query = select(table.hotkey, table.role, table.expires_at).where(
            table.token_hash == _hash(token), table.expires_at >= now
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else Session(row.hotkey, row.role, row.expires_at)

    async def close(self, token: str) -> bool:
        """End a session; whether there was one."""
        query = (
            delete(auth_sessions)
            .where(auth_sessions.c.token_hash == _hash(token))
            .returning(auth_sessions.c.token_hash)
        )
        async with self._engine.begin() as connection:
            return (await connection.scalar(query)) is not None

    async def prune(self, now: datetime) -> None:
        """Forget what is over."""
        async with self._engine.begin() as connection:
            for table in (auth_challenges, auth_sessions):
                await connection.execute(delete(table).where(table.c.expires_at < now))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
