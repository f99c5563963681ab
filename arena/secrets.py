"""Secrets at rest: sealed by keys that never lie beside them in the database.

Fernet (AES-128-CBC under HMAC-SHA256) of the `cryptography` package: what was changed, or was
sealed by a key that is not here, does not open. Several keys may be in use: the first seals,
every one opens. To change keys, put a new one in front, `renew` what is stored, and take the
old one away.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from arena.exceptions import SecretError, SettingsError
from arena.settings import ArenaSettings

KEY_FILE = "secret.key"
VARIABLE = "ARENA_SECRET_KEYS"
_MAKE_ONE = (
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


class SecretBox:
    """Seals and opens with keys that its holder never sees. It shows none of them."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """`keys` are Fernet's: 32 bytes as URL-safe base64, newest first. Raises ValueError
        for any that is not, and for none."""
        self._keys = MultiFernet([Fernet(key) for key in keys])

    def seal(self, secret: bytes) -> bytes:
        """The secret as printable bytes that only `open` reads; each time other ones."""
        return self._keys.encrypt(secret)

    def open(self, sealed: bytes) -> bytes:
        """What was sealed. Raises SecretError when it was changed, or by another key."""
        try:
            return self._keys.decrypt(sealed)
        except InvalidToken:
            raise _locked() from None

    def renew(self, sealed: bytes) -> bytes:
        """The same secret under the newest key. Raises SecretError as `open` does."""
        try:
            return self._keys.rotate(sealed)
        except InvalidToken:
            raise _locked() from None


def open_secret_box(settings: ArenaSettings) -> SecretBox:
    """A box with the keys of the settings, or with one made in `data_dir` on first use.

    Processes on several machines need the same keys, in the setting. Raises SettingsError for
    a key that is none, and for a key file that cannot be kept or that others may read.
    """
    given = settings.secret_keys.get_secret_value() if settings.secret_keys else ""
    path = settings.data_dir / KEY_FILE
    try:
        keys, source = (given.split(","), VARIABLE) if given.strip() else (_kept(path), str(path))
        return SecretBox([key.strip().encode() for key in keys if key.strip()])
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    except ValueError:  # its words may hold a piece of the key
        raise SettingsError(
            f"{source}: a key is 32 bytes as URL-safe base64", remedy=f"make one: {_MAKE_ONE}"
        ) from None


def _locked() -> SecretError:
    return SecretError(
        "a stored secret does not open",
        remedy=f"put the key that it was sealed with at the end of {VARIABLE}",
    )


def _kept(path: Path) -> list[str]:
    """The keys of the file, newest first, a line each; the first process to come makes it."""
    if not path.exists():
        _make(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SettingsError(f"others may read {path}", remedy=f"chmod 600 {path}")
    return path.read_text(encoding="ascii", errors="replace").splitlines()


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not there, whoever starts at once: the first link() wins.
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
