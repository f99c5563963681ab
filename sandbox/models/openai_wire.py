"""Providers that speak the OpenAI chat schema: OpenAI, vLLM, Chutes, the stand-in."""

from __future__ import annotations

import json
from typing import cast

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI

from sandbox.models import faults
from sandbox.models.faults import connect_soon, provider_text
from sandbox.models.routes import ModelRoute, with_version
from sandbox.strict_json import harmless
from scoring.types import Json, JsonObject

OPENAI_URL = "https://api.openai.com"
LIST_S = 10.0
"""For a server to say which models it serves."""


class OpenAIWire:
    """One route over the OpenAI wire. Retries are the client's business, not the SDK's."""

    def __init__(self, route: ModelRoute) -> None:
        self._route = route
        self._sdk = AsyncOpenAI(
            # The SDK wants a key; servers on loopback want none.
            api_key=route.api_key.get_secret_value() if route.api_key else "none",
            # Stated, so that no variable of the environment sends it elsewhere.
            base_url=with_version(route.base_url or OPENAI_URL),
            max_retries=0,
        )

    async def complete(self, body: JsonObject, timeout_s: float) -> JsonObject:
        """Post a chat request as it is and return the answer with all its extras.

        Raises ProviderError.
        """
        try:
            response = await self._sdk.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                body=body | {"model": self._route.sent_model},
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
        return read_completion(response.content)

    async def models(self) -> list[str]:
        """The names that the server lists. Raises ProviderError."""
        try:
            response = await self._sdk.get(
                "/models", cast_to=httpx2.Response, options={"timeout": LIST_S}
            )
            listed = json.loads(response.content)["data"]
            return [str(entry["id"]) for entry in listed]
        except APIStatusError as error:
            said = provider_text(error.body, error.message)
            raise faults.from_status(error.status_code, said, error.response.headers) from None
        except (APIError, httpx2.HTTPError) as error:
            raise faults.unreachable(error) from None
        except (ValueError, LookupError, TypeError, RecursionError):
            raise faults.broken("is no list of models") from None

    async def close(self) -> None:
        """Close its connections."""
        await self._sdk.close()


def read_completion(data: bytes) -> JsonObject:
    """Check the answer of a provider and make its text harmless. Raises ProviderError."""
    try:
        # Models write lone surrogates and providers large numbers: mended, not refused.
        value = harmless(cast("Json", json.loads(data)))
    except (ValueError, RecursionError):
        raise faults.broken(f"has {len(data):,} bytes that are not JSON") from None
    if not isinstance(value, dict):
        raise faults.broken("is no JSON object")
    error = value.get("error")
    if error and not value.get("choices"):
        # Some routers report an overloaded server with status 200.
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        raise faults.from_status(status, provider_text(error, "an error with status 200"), {})
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        raise faults.broken("has no choices")
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise faults.broken("has a choice without a message")
    return value
