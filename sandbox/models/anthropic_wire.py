"""Providers that speak Anthropic's Messages API, seen as if they spoke OpenAI's."""

from __future__ import annotations

import json
from typing import cast

import httpx2
from anthropic import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncAnthropic

from sandbox.exceptions import Fault, ModelError
from sandbox.models import faults
from sandbox.models.anthropic_schema import from_anthropic, to_anthropic
from sandbox.models.faults import ProviderError, connect_soon, provider_text
from sandbox.models.routes import ModelRoute
from sandbox.strict_json import harmless
from scoring.types import Json, JsonObject

ANTHROPIC_URL = "https://api.anthropic.com"


class AnthropicWire:
    """One route over the Anthropic wire. Retries are the client's business, not the SDK's."""

    def __init__(self, route: ModelRoute) -> None:
        self._route = route
        self._sdk = AsyncAnthropic(
            api_key=route.api_key.get_secret_value() if route.api_key else "none",
            # Without `/v1`: it stands in the path of the request.
            base_url=(route.base_url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1"),
            max_retries=0,
        )

    async def complete(self, body: JsonObject, timeout_s: float) -> JsonObject:
        """One completion, in the OpenAI schema both ways. Raises ProviderError."""
        try:
            request = to_anthropic(body, self._route.sent_model)
        except ModelError as error:
            raise ProviderError(error.message, code=error.code, fault=Fault.AGENT) from None
        try:
            response = await self._sdk.post(
                "/v1/messages",
                cast_to=httpx2.Response,
                body=request,
                options={"timeout": connect_soon(timeout_s)},
            )
        except APITimeoutError:
            raise faults.timed_out(timeout_s) from None
        except APIStatusError as error:
            raise faults.from_status(
                error.status_code, provider_text(error.body, error.message), error.response.headers
            ) from None
        except APIConnectionError as error:
            raise faults.unreachable(error) from None
        except (APIError, httpx2.HTTPError) as error:
            raise faults.broken(f"broke off: {type(error).__name__}") from None
        try:
            value = harmless(cast("Json", json.loads(response.content)))
        except (ValueError, RecursionError):
            size = len(response.content)
            raise faults.broken(f"has {size:,} bytes that are not JSON") from None
        if not isinstance(value, dict):
            raise faults.broken("is no JSON object")
        return from_anthropic(value)

    async def close(self) -> None:
        """Close its connections."""
        await self._sdk.close()
