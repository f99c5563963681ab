"""`/v1/auth`: a hotkey signs a challenge and gets a session."""

from __future__ import annotations

from typing import Annotated

from bittensor_auth.core import verify_sr25519
from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, Field

from arena.api.auth import bearer_token, check_address, role_of
from arena.api.errors import Code, Refusal, responses
from arena.api.services import ServicesDep
from arena.api.sessions import MAX_TEXT, SessionStore

router = APIRouter(prefix="/v1/auth", tags=["auth"])

_Address = Annotated[str, Field(min_length=1, max_length=64, description="SS58 hotkey address")]


class ChallengeRequest(BaseModel):
    """Who asks."""

    hotkey: _Address


class ChallengeResponse(BaseModel):
    """What to sign."""

    challenge: str
    expires_at: int = Field(description="Unix time in seconds")


class SessionRequest(BaseModel):
    """The signed challenge. `signature` is hex."""

    hotkey: _Address
    challenge: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    signature: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class SessionResponse(BaseModel):
    """The session. `session_token` is shown this once."""

    session_token: str
    expires_at: int = Field(description="Unix time in seconds")
    role: str = Field(description="miner or validator")


class LogoutResponse(BaseModel):
    """Whether the session has ended."""

    success: bool


@router.post("/challenge", responses=responses(401))
async def request_challenge(body: ChallengeRequest, services: ServicesDep) -> ChallengeResponse:
    """A text for the hotkey to sign, good for a minute and one session."""
    check_address(body.hotkey)
    text, expires_at = await SessionStore(services.engine).challenge(
        body.hotkey, now=services.clock(), ttl_s=services.settings.challenge_ttl
    )
    return ChallengeResponse(challenge=text, expires_at=int(expires_at.timestamp()))


@router.post("/session", responses=responses(401, 403))
async def create_session_endpoint(
    body: SessionRequest, services: ServicesDep, request: Request
) -> SessionResponse:
    """A session for the hotkey that signed its challenge and is registered on the subnet."""
    check_address(body.hotkey)
    # Before the challenge is used up: a stranger's guess must not end its owner's.
    if not verify_sr25519(body.hotkey, body.challenge, body.signature):
        raise Refusal(Code.INVALID_SIGNATURE, "the signature is not this hotkey's")
    request.state.hotkey = body.hotkey
    role = role_of(services, body.hotkey)
    sessions, now = SessionStore(services.engine), services.clock()
    if not await sessions.redeem(body.hotkey, body.challenge, now=now):
        raise Refusal(Code.INVALID_CHALLENGE, "the challenge is unknown, used up or too old")
    token, expires_at = await sessions.open(
        body.hotkey, role.value, now=now, ttl_s=services.settings.session_ttl
    )
    return SessionResponse(
        session_token=token, expires_at=int(expires_at.timestamp()), role=role.value
    )


@router.post("/logout", responses=responses(401))
async def logout(
    services: ServicesDep,
    request: Request,
    authorization: Annotated[str | None, Header(max_length=MAX_TEXT)] = None,
) -> LogoutResponse:
    """End the session whose token stands in the `Authorization` header."""
    if not await SessionStore(services.engine).close(bearer_token(request)):
        raise Refusal(Code.INVALID_SESSION, "the session is unknown or over")
    return LogoutResponse(success=True)
