"""Miners' credentials for model providers: sealed at rest, opened for one run.

What is sealed names its hotkey and provider, so that a row that was moved to another miner
opens for nobody. A credential is never logged and never given back to who stored it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import delete, exists, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.db.submission_tables import inference_credentials
from arena.exceptions import SecretError
from arena.secrets import SecretBox

PROVIDERS = {
    "chutes": "https://llm.chutes.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Providers that the SDK names, and where they speak OpenAI's chat wire. A miner's own server
is none: it could claim that anything came from a model."""
MAX_CREDENTIAL_CHARS = 4_096
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """That a hotkey has one; not which."""

    provider: str
    updated_at: datetime
    default: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """A credential for one run. Its text is not shown."""

    provider: str
    base_url: str
    credential: str = field(repr=False)


class CredentialStore:
    """Credentials by hotkey and provider. Driver errors pass through."""

    def __init__(self, engine: AsyncEngine, box: SecretBox) -> None:
        self._engine = engine
        self._box = box

    async def store(self, hotkey: str, provider: str, credential: str, now: datetime) -> None:
        """Keep a credential, in place of an earlier one. A hotkey's first is its default.

        Raises KeyError for a provider that is not known, ValueError for what is no credential.
        """
        if provider not in PROVIDERS:
            raise KeyError(provider)
        printable = credential.isascii() and credential.isprintable() and " " not in credential
        if not (0 < len(credential) <= MAX_CREDENTIAL_CHARS and printable):
            raise ValueError("a credential is printable ASCII without spaces")
        plain = json.dumps([hotkey, provider, credential]).encode()
        table = inference_credentials.c
        others = exists().where(table.hotkey == hotkey)
        row = select(
            literal(hotkey),
            literal(provider),
            literal(self._box.seal(plain)),
            literal(now),
            # Chosen when it is the first.
            select(literal(_NEVER)).where(others).union_all(
                select(literal(now)).where(~others)
            ).limit(1).scalar_subquery(),
        )  # fmt: skip
        names = ["hotkey", "provider", "sealed", "updated_at", "chosen_at"]
        new = insert(inference_credentials).from_select(names, row)
        changed = {"sealed": new.excluded.sealed, "updated_at": new.excluded.updated_at}
        async with self._engine.begin() as connection:
            await connection.execute(
                new.on_conflict_do_update(index_elements=["hotkey", "provider"], set_=changed)
            )

    async def listed(self, hotkey: str) -> list[StoredCredential]:
        """What a hotkey has, its default first."""
        table = inference_credentials.c
        query = (
            select(table.provider, table.updated_at)
            .where(table.hotkey == hotkey)
            .order_by(table.chosen_at.desc(), table.provider)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [
            StoredCredential(row.provider, row.updated_at.astimezone(UTC), number == 0)
            for number, row in enumerate(rows)
        ]

    async def choose(self, hotkey: str, provider: str, now: datetime) -> bool:
        """Make one of a hotkey's credentials its default; whether it has that one."""
        table = inference_credentials.c
        query = (
            update(inference_credentials)
            .where(table.hotkey == hotkey, table.provider == provider)
            .values(chosen_at=now)
            .returning(table.provider)
        )
        async with self._engine.begin() as connection:
            return await connection.scalar(query) is not None

    async def delete(self, hotkey: str, provider: str) -> bool:
        """Forget a credential; whether there was one."""
        table = inference_credentials.c
        query = (
            delete(inference_credentials)
            .where(table.hotkey == hotkey, table.provider == provider)
            .returning(table.provider)
        )
        async with self._engine.begin() as connection:
            return await connection.scalar(query) is not None

    async def grant(self, hotkey: str) -> Grant | None:
        """A hotkey's default credential, opened; None when it has none.

        Raises SecretError when it does not open, or was sealed for somebody else.
        """
        table = inference_credentials.c
        query = (
            select(table.provider, table.sealed)
            .where(table.hotkey == hotkey, table.provider.in_(sorted(PROVIDERS)))
            .order_by(table.chosen_at.desc(), table.provider)
            .limit(1)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        owner, provider, credential = json.loads(self._box.open(row.sealed))
        if (owner, provider) != (hotkey, row.provider):
            raise SecretError("a stored credential is another hotkey's")
        return Grant(provider, PROVIDERS[provider], credential)
