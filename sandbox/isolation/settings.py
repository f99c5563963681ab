"""Where this machine's sandboxes keep their things."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import gettempdir

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def _run_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/run/sn15-arena")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime or gettempdir()) / f"sn15-arena-{os.geteuid()}"


def _cache_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/cache/sn15-arena")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sn15-arena"


class IsolationSettings(BaseSettings):
    """Read from the environment (`ARENA_SANDBOX_…`) and `.env`."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_SANDBOX_", env_file=".env", extra="ignore", frozen=True
    )

    run_dir: Path = Field(default_factory=_run_dir)
    """Locks and notes of the sandboxes that run now. The same for all validators of a machine."""
    cache_dir: Path = Field(default_factory=_cache_dir)
    """The root that bubblewrap sandboxes share; about 60 MB, made anew when it is gone."""
    uid_base: int = Field(default=0x78000000, ge=1000, lt=2**31)
    """The first host user id given to agents: above every range that Debian, systemd and
    subuid hand out (systemd, "Users, Groups, UIDs and GIDs"), and above Docker sandboxes'."""
    uid_slots: int = Field(default=1024, ge=1, le=100_000)
    """How many sandboxes may run at once on this machine; each takes two ids."""
