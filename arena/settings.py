"""Settings of the processes that race agents and keep records.

Read once at a process's start from `ARENA_…` variables and `.env`. Secrets are
`SecretStr`: they are never logged and never stand in a record.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from arena.exceptions import SettingsError


class ArenaSettings(BaseSettings):
    """What an operator may set. Options on the command line win over these."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database_url: SecretStr | None = None
    """Postgres to store results in; without it an embedded one starts in `data_dir`."""
    database_owner_url: SecretStr | None = None
    """The same database for a login that owns its tables, used only to migrate them; the
    other login then needs no rights but to read and to add rows."""
    data_dir: Path = Path("var")
    """The embedded database, the ledgers of those who seal, the local key, and race
    directories that nobody named."""
    secret_keys: SecretStr | None = None
    """Keys that seal what is secret at rest, newest first, separated by commas; without any,
    one is made in `data_dir`. Processes on several machines need the same."""
    wallet_name: str | None = None
    """The wallet whose hotkey signs records; with none of the three, a local key does."""
    wallet_hotkey: str | None = None
    wallet_path: Path | None = None
    """Where wallets lie; the SDK's own place by default."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often a problem is tried when the host or the model provider failed."""
    retry_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 5.0
    """Pause before the second attempt; it doubles with each further one, up to 300 s."""
    database_timeout_seconds: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 15.0
    """Longest wait for the database to connect or to answer."""


def load_settings() -> ArenaSettings:
    """Read the environment. Raises SettingsError naming the first variable that is wrong."""
    try:
        return ArenaSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None
