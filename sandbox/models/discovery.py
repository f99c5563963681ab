"""Asking one OpenAI-compatible server which models it serves."""

from __future__ import annotations

from pydantic import SecretStr

from sandbox.exceptions import Fault, ModelError
from sandbox.models.faults import ProviderError
from sandbox.models.openai_wire import OpenAIWire
from sandbox.models.routes import ModelRoute, Wire, server_name


async def discover(
    base_url: str,
    *,
    api_key: SecretStr | None = None,
    server: str | None = None,
    standin: bool = False,
) -> tuple[ModelRoute, ...]:
    """A route for every model that the server at `base_url` lists (`GET /v1/models`).

    Raises ModelError (CALLER) when it cannot be reached or lists none.
    """
    name = server or server_name(base_url, Wire.OPENAI)
    probe = OpenAIWire(ModelRoute("probe", name, base_url=base_url, api_key=api_key))
    try:
        listed = await probe.models()
    except ProviderError as error:
        raise ModelError(
            f"{name}: {error.message}",
            code=error.code,
            fault=Fault.CALLER,
            remedy="check the address and the key of the model server",
        ) from None
    finally:
        await probe.close()
    if not listed:
        raise ModelError(f"{name} serves no model", code="model.none", fault=Fault.CALLER)
    return tuple(
        ModelRoute(model, name, base_url=base_url, api_key=api_key, standin=standin)
        for model in sorted(set(listed))
    )
