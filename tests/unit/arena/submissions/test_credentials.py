"""A miner's credential is sealed, opens for its owner's runs, and can be taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text

from arena.db.engine import Database
from arena.exceptions import SecretError
from arena.secrets import SecretBox
from arena.submissions.credentials import MAX_CREDENTIAL_CHARS, PROVIDERS, CredentialStore

pytestmark = pytest.mark.database

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
KEY = "sk-0123456789"


@pytest.fixture
def store(database: Database) -> CredentialStore:
    return CredentialStore(database.engine, SecretBox([Fernet.generate_key()]))


async def default(store: CredentialStore, hotkey: str) -> str | None:
    return next((one.provider for one in await store.listed(hotkey) if one.default), None)


async def test_the_first_is_the_default_until_another_is_chosen(store: CredentialStore) -> None:
    assert await store.grant("hk") is None
    await store.store("hk", "openrouter", "a", NOW)
    await store.store("hk", "chutes", "b", NOW + timedelta(seconds=1))
    assert await default(store, "hk") == "openrouter"
    assert await store.choose("hk", "chutes", NOW + timedelta(seconds=2))
    assert await default(store, "hk") == "chutes"
    grant = await store.grant("hk")
    assert grant is not None
    assert (grant.credential, grant.base_url) == ("b", PROVIDERS["chutes"])
    assert not await store.choose("other", "chutes", NOW)


async def test_a_new_one_takes_the_place_of_the_old_one(store: CredentialStore) -> None:
    await store.store("hk", "openrouter", "old", NOW)
    await store.store("hk", "chutes", "x", NOW)
    await store.store("hk", "openrouter", "new", NOW + timedelta(days=1))
    grant = await store.grant("hk")
    assert grant is not None
    assert grant.credential == "new"
    assert [one.updated_at for one in await store.listed("hk")] == [NOW + timedelta(days=1), NOW]


async def test_what_is_deleted_is_gone(store: CredentialStore, database: Database) -> None:
    await store.store("hk", "chutes", KEY, NOW)
    assert not await store.delete("other", "chutes")
    assert await store.delete("hk", "chutes")
    assert not await store.delete("hk", "chutes")
    assert await store.grant("hk") is None
    async with database.engine.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM inference_credentials")) == 0


@pytest.mark.parametrize("credential", ["", " ", "a b", "a\n", "é", "\x7f", "a\0", "k" * 4_097])
async def test_what_is_no_credential_is_refused(store: CredentialStore, credential: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        await store.store("hk", "chutes", credential, NOW)
    assert await store.listed("hk") == []


async def test_the_longest_is_kept_and_an_unknown_provider_is_not(store: CredentialStore) -> None:
    await store.store("hk", "chutes", "k" * MAX_CREDENTIAL_CHARS, NOW)
    with pytest.raises(KeyError):
        await store.store("hk", "https://evil.example", KEY, NOW)


async def test_a_row_that_was_moved_opens_for_nobody(
    store: CredentialStore, database: Database
) -> None:
    await store.store("victim", "chutes", KEY, NOW)
    async with database.owner.begin() as connection:
        await connection.execute(text("UPDATE inference_credentials SET hotkey = 'thief'"))
    with pytest.raises(SecretError):
        await store.grant("thief")


async def test_a_changed_row_and_another_key_do_not_open(
    store: CredentialStore, database: Database
) -> None:
    await store.store("hk", "chutes", KEY, NOW)
    other = CredentialStore(database.engine, SecretBox([Fernet.generate_key()]))
    with pytest.raises(SecretError):
        await other.grant("hk")


async def test_a_grant_does_not_show_its_credential(store: CredentialStore) -> None:
    await store.store("hk", "chutes", KEY, NOW)
    assert KEY not in repr(await store.grant("hk"))
