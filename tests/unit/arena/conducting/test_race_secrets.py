"""A race's secret is made once, and nobody reads it from the database."""

from __future__ import annotations

import asyncio

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text

from arena.conducting.race_secrets import RaceSecrets
from arena.exceptions import SecretError
from arena.secrets import SecretBox
from tests.unit.arena.conducting.world import World

pytestmark = pytest.mark.database


async def test_who_opens_a_race_again_commits_to_the_same_secret(world: World) -> None:
    secrets = world.parts.secrets
    found = await asyncio.gather(*(secrets.keep("race-1") for _ in range(4)))
    assert len({(one.secret, one.listing_key) for one in found}) == 1
    assert (await secrets.keep("race-2")).secret != found[0].secret
    again = await secrets.need("race-1")
    assert again == found[0]


async def test_what_is_stored_shows_nothing_and_opens_with_its_key_alone(world: World) -> None:
    kept = await world.parts.secrets.keep("race-1")
    async with world.engine.connect() as connection:
        sealed = await connection.scalar(text("SELECT sealed FROM race_secrets"))
    assert sealed is not None
    assert kept.secret.encode() not in sealed
    assert kept.secret not in repr(kept) + repr(world.parts.secrets)
    other = RaceSecrets(world.engine, SecretBox([Fernet.generate_key()]), world.parts.random)
    with pytest.raises(SecretError):
        await other.need("race-1")


async def test_a_secret_that_is_gone_is_said(world: World) -> None:
    assert await world.parts.secrets.find("race-1") is None
    with pytest.raises(SecretError, match="race-1"):
        await world.parts.secrets.need("race-1")
