"""Providers that speak Anthropic's Messages API, translated to the OpenAI schema."""

from __future__ import annotations

from sandbox.models.routes import ModelRoute
from scoring.types import JsonObject


class AnthropicWire:
    """One route over the Anthropic wire."""

    def __init__(self, route: ModelRoute) -> None:
        self._route = route

    async def complete(self, body: JsonObject, timeout_s: float) -> JsonObject:
        """One completion."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close its connections."""
