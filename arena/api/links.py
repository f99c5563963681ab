"""Links that carry their own permission: who has one may use it until it expires.

`HMAC-SHA256(key, what \\n expires)` stands in the link. `what` names everything that the link
allows, to the byte; changing any of it breaks the signature.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from arena.api.errors import Code, Refusal
from arena.api.settings import ApiSettings
from arena.exceptions import SettingsError

_DOMAIN = b"sn15-arena link 1\n"
KEY_FILE = "link.key"
_KEY_BYTES = 32


class Links:
    """Signs and checks links with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, what: str, expires: int) -> str:
        """The signature of a link that allows `what` until `expires`, in Unix seconds."""
        message = _DOMAIN + f"{what}\n{expires}".encode()
        digest = hmac.new(self._key, message, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def check(self, what: str, expires: int, signature: str, now: float) -> None:
        """Raises Refusal (403) for a link that was changed, or whose time is over."""
        good = hmac.compare_digest(self.sign(what, expires).encode(), signature.encode())
        if not good:
            raise Refusal(Code.INVALID_LINK, "the link is not one of this arena's")
        if now > expires:
            raise Refusal(Code.INVALID_LINK, "the link's time is over; ask for another")


def open_links(settings: ApiSettings) -> Links:
    """Links signed with the key of the settings, or with one made here on first use.

    Raises SettingsError when the key cannot be kept.
    """
    if settings.link_secret is not None:
        secret = settings.link_secret.get_secret_value().encode()
        if len(secret) < 16:
            raise SettingsError("ARENA_API_LINK_SECRET: give at least 16 characters")
        return Links(hashlib.sha256(_DOMAIN + secret).digest())
    path = settings.data_dir / KEY_FILE
    try:
        return Links(_kept_key(path))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error


def _kept_key(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not there, whoever starts at once: the first link() wins.
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise SettingsError(f"{path} is damaged", remedy="delete it: links given out end")
    return key
