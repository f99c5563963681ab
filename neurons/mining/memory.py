"""What a miner remembers between two starts: what it submitted, and what was refused."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from arena.exceptions import SettingsError


@dataclass(frozen=True, slots=True)
class Memory:
    """The last file that was handled, and what became of it. `version` is the one to follow."""

    handled: str | None = None
    """SHA-256 of the file that was submitted or refused last: not to be submitted again."""
    version: UUID | None = None

    @classmethod
    def load(cls, path: Path) -> Memory:
        """What lies there; nothing when nothing does. Raises SettingsError."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            version = found["version"]
            return cls(found["handled"], None if version is None else UUID(version))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{path} cannot be read: {error}", remedy="delete it: the arena knows the rest"
            ) from None

    def save(self, path: Path) -> None:
        """Write it whole or not at all. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            with part.open("x", encoding="utf-8") as file:
                json.dump(asdict(self), file, default=str)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
