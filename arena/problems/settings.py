"""What an operator may set of the bank: `ARENA_BANK_…` in the environment or `.env`."""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from arena.exceptions import SettingsError
from arena.problems.rotation import RotationRule

KEY_FILE = "bank.key"
_KEY_BYTES = 32
_SHORTEST_KEY = 16

Count = Annotated[int, Field(ge=0, le=1_000_000)]


class BankSettings(BaseSettings):
    """How the bank names its problems and rotates them; counts are clusters of each bucket."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_BANK_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    key: SecretStr | None = None
    """The secret behind problem ids and seeds, at least 16 characters; without it one is made
    and kept in the data directory, in `bank.key`. Keep it: another key names problems anew."""
    rotate_hours: Annotated[float, Field(gt=0, le=8760, allow_inf_nan=False)] = 24.0
    """How often a rotation is due."""
    opens: Count = 5
    """Clusters that a rotation opens at least; those that races have drawn always open."""
    retires: Count = 5
    """Clusters that a rotation retires at most."""
    held_out_min: Count = 30
    """Clusters that must remain for races to draw."""
    open_min: Count = 10
    """Clusters that remain open for qualifying."""

    @property
    def rotation(self) -> RotationRule:
        """The rule of rotations."""
        return RotationRule(
            every=timedelta(hours=self.rotate_hours),
            opens=self.opens,
            retires=self.retires,
            held_out_min=self.held_out_min,
            open_min=self.open_min,
        )


def load_bank_settings() -> BankSettings:
    """Read the environment. Raises SettingsError naming the first variable that is wrong."""
    try:
        return BankSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_BANK_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None


def bank_key(settings: BankSettings, data_dir: Path) -> bytes:
    """The arena's secret key: the one in the settings, else the data directory's own.

    The file is made on first use, readable for its owner only. Raises SettingsError for a
    key that is too short and for a file that cannot be read or written.
    """
    if settings.key is not None:
        key = settings.key.get_secret_value().encode("utf-8")
        if len(key) < _SHORTEST_KEY:
            raise SettingsError(
                f"ARENA_BANK_KEY is shorter than {_SHORTEST_KEY} characters",
                remedy="python3 -c 'import secrets; print(secrets.token_hex(32))' makes one",
            )
        return key
    path = data_dir / KEY_FILE
    try:
        return _read_or_make(path)
    except OSError as error:
        raise SettingsError(
            f"{path}: {error.strerror}", remedy="set ARENA_BANK_KEY, or ARENA_DATA_DIR"
        ) from None


def _read_or_make(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written whole under another name: of two that make one at once, both read the winner's.
    made = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
        try:
            os.link(made, path)
        except FileExistsError:
            pass
        finally:
            made.unlink()
    key = path.read_bytes().strip()
    if len(key) < _SHORTEST_KEY:
        raise SettingsError(f"{path}: holds no key", remedy="take it away; another one is made")
    return key
