"""`/v1/miner/inference-auth`: what pays for a miner's model calls, kept under seal.

A credential is shown to nobody, its owner included; it leaves in the claim of a run of its
owner's agent, and nowhere else.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict

from arena.api.auth import SIGNED_OR_SESSION, MinerDep
from arena.api.errors import Code, Refusal, responses, unavailable
from arena.api.miner_models import (
    ChutesAuthStatusResponse,
    Done,
    InferenceAuthListResponse,
    InferenceAuthStatusResponse,
    SetDefaultProviderRequest,
    StoreInferenceCredentialRequest,
)
from arena.api.services import Services, ServicesDep
from arena.submissions.credentials import PROVIDERS, CredentialStore

router = APIRouter(prefix="/v1/miner", tags=["miner"], dependencies=SIGNED_OR_SESSION)

_Provider = Annotated[str, Path(max_length=40)]


@router.get("/inference-auth", responses=responses(401, 403))
async def list_inference_auth(caller: MinerDep, services: ServicesDep) -> InferenceAuthListResponse:
    """Which providers the caller has a credential of."""
    found = {one.provider: one for one in await _store(services).listed(caller.hotkey)}
    return InferenceAuthListResponse(
        providers=[
            InferenceAuthStatusResponse(
                connected=provider in found,
                provider=provider,
                updated_at=found[provider].updated_at if provider in found else None,
            )
            for provider in sorted(PROVIDERS)
        ],
        default_provider=next((p for p, one in found.items() if one.default), None),
    )


# Before the routes with a provider in their path: `default` is none.
@router.patch("/inference-auth/default", responses=responses(401, 403, 404))
async def set_default_inference_provider(
    caller: MinerDep, services: ServicesDep, body: SetDefaultProviderRequest
) -> Done:
    """Which of the caller's credentials is handed to its runs."""
    provider = _known(body.provider)
    if not await _store(services).choose(caller.hotkey, provider, services.clock()):
        raise Refusal(Code.NOT_FOUND, f"this hotkey has no credential of {provider}")
    return Done(provider=provider)


@router.get("/inference-auth/{provider}", responses=responses(401, 403))
async def get_inference_auth_status_one(
    caller: MinerDep, services: ServicesDep, provider: _Provider
) -> InferenceAuthStatusResponse:
    """Whether the caller has a credential of this provider."""
    return await _status(services, caller.hotkey, _known(provider))


@router.post("/inference-auth/{provider}", responses=responses(401, 403))
async def store_inference_credential(
    caller: MinerDep,
    services: ServicesDep,
    provider: _Provider,
    body: StoreInferenceCredentialRequest,
) -> Done:
    """Keep a credential, in place of an earlier one. It is sealed before it is stored."""
    provider = _known(provider)
    try:
        await _store(services).store(caller.hotkey, provider, body.credential, services.clock())
    except ValueError as error:
        raise Refusal(Code.VALIDATION_ERROR, str(error)) from None
    return Done(provider=provider)


@router.delete("/inference-auth/{provider}", responses=responses(401, 403, 404))
async def delete_inference_credential(
    caller: MinerDep, services: ServicesDep, provider: _Provider
) -> Done:
    """Forget a credential."""
    provider = _known(provider)
    if not await _store(services).delete(caller.hotkey, provider):
        raise Refusal(Code.NOT_FOUND, f"this hotkey has no credential of {provider}")
    return Done(provider=provider)


@router.get("/chutes-auth/status", responses=responses(401, 403))
async def get_chutes_auth_status(
    caller: MinerDep, services: ServicesDep
) -> ChutesAuthStatusResponse:
    """Whether the caller has a credential of Chutes."""
    found = await _status(services, caller.hotkey, "chutes")
    return ChutesAuthStatusResponse(connected=found.connected, updated_at=found.updated_at)


class AnyObject(BaseModel):
    """Whatever the SDK sends: it is not read."""

    model_config = ConfigDict(extra="allow")


@router.post("/chutes-auth", responses=responses(401, 403, 404), status_code=404)
async def store_chutes_token(caller: MinerDep, body: AnyObject) -> None:
    """There is no exchange of tokens with third parties here: store a key instead."""
    raise _no_exchange()


@router.post("/chutes/exchange-code", responses=responses(401, 403, 404), status_code=404)
async def exchange_chutes_code(caller: MinerDep, body: AnyObject) -> None:
    """There is no exchange of tokens with third parties here: store a key instead."""
    raise _no_exchange()


def _no_exchange() -> Refusal:
    return Refusal(
        Code.NOT_OFFERED,
        "this arena exchanges no tokens with third parties: store a key with"
        " POST /v1/miner/inference-auth/chutes",
    )


def _known(provider: str) -> str:
    if provider not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise Refusal(Code.VALIDATION_ERROR, f"the providers are {known}")
    return provider


def _store(services: Services) -> CredentialStore:
    if services.secrets is None:
        raise unavailable("this arena keeps no credentials")
    return CredentialStore(services.engine, services.secrets)


async def _status(services: Services, hotkey: str, provider: str) -> InferenceAuthStatusResponse:
    listed = await _store(services).listed(hotkey)
    found = next((one for one in listed if one.provider == provider), None)
    return InferenceAuthStatusResponse(
        connected=found is not None,
        provider=provider,
        updated_at=found.updated_at if found else None,
    )
