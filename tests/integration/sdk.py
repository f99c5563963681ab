"""The published SDK as a client of a test's arena."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from oro_sdk import BittensorAuthClient
from oro_sdk.retry import RetryConfig

from tests.unit.arena.api.world import Validator


@asynccontextmanager
async def sdk_client(url: str, who: Validator) -> AsyncIterator[BittensorAuthClient]:
    """Signs as this hotkey, and tries nothing twice."""
    wallet: Any = SimpleNamespace(hotkey=who.pair)
    client = BittensorAuthClient(
        base_url=url, wallet=wallet, retry_config=RetryConfig(max_retries=0)
    )
    async with client:
        yield client
        # The SDK's transports do not close the ones that they wrap.
        await client.get_async_httpx_client()._transport._wrapped._wrapped.aclose()  # type: ignore[attr-defined]
