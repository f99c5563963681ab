"""How an arena is served: what the command line says, for this process and its workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What was asked for. Everything else is a setting of the environment."""

    host: str = "127.0.0.1"
    port: int = 8000
    network: str = "finney"
    """What the SDK takes, or `local-chain:FILE`."""
    netuid: int = 15
    workers: int = 1
    """Processes that answer."""
    api: bool = True
    conductor: bool = True
    migrate: bool = False
    """Whether a database that was given by address is brought up to date."""
    log_json: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: str = "127.0.0.1"
    """Addresses whose `X-Forwarded-For` is believed."""
    metrics_port: int | None = None
    """Where a process without an API tells Prometheus; on `host`."""
    fd: int | None = None
    """A socket that listens already, handed over by the process that started this one."""
    json: Path | None = None
    """Where the address is written, as JSON, once it is listened on."""

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS itself."""
        return self.tls_certificate is not None
