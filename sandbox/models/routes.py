"""The operator's table: which server answers for which model name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import SecretStr

from sandbox.trace import Usage


class Wire(StrEnum):
    """The protocol a provider speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """One server for one model name. Several routes may serve the same name.

    `server` is what records say answered. `usd_in` and `usd_out` are prices per million
    tokens. A `standin` is a rule-based model, and records say so.
    """

    model: str
    server: str
    base_url: str | None = None
    wire: Wire = Wire.OPENAI
    api_key: SecretStr | None = None
    upstream_model: str | None = None
    usd_in: float = 0.0
    usd_out: float = 0.0
    standin: bool = False
    timeout_s: float = 300.0
    concurrency: int = 32

    @property
    def sent_model(self) -> str:
        """The name the server itself knows the model by."""
        return self.upstream_model or self.model

    def cost_usd(self, usage: Usage) -> float:
        """The price of one completion."""
        millions = usage.prompt_tokens * self.usd_in + usage.completion_tokens * self.usd_out
        return millions / 1_000_000


def with_version(base_url: str) -> str:
    """The base address of an OpenAI-compatible server; `/v1` when no path is given."""
    return base_url.rstrip("/") + ("" if urlsplit(base_url).path.strip("/") else "/v1")


def server_name(base_url: str | None, wire: Wire) -> str:
    """A name for a server that was given none: its host, without any credentials."""
    if base_url is None:
        return f"{wire}.com"
    parts = urlsplit(base_url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
