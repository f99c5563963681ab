"""Who calls: signed headers, body-binding signatures, or a session's token.

Three ways in, tried by the headers that are there:

- `X-Hotkey`, `X-Timestamp`, `X-Nonce`, `X-Signature`: sr25519 over `hotkey:timestamp:nonce`,
  as `oro-sdk` sends it (`bittensor-auth` verifies);
- `X-Bittensor-…`: `bt.http_auth`, which binds method, path and body as well, and this arena
  as receiver;
- `Authorization: Bearer`: a session, for miners' routes alone.

Order matters: nothing is written for a stranger. The time, the signature, the ban, the
metagraph and the rate come first, and the nonce is used up last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

from bittensor_auth.core import validate_hotkey_format
from bittensor_auth.errors import AuthenticationError
from bittensor_auth.signing import verify_signature
from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPBearer

from arena.api.errors import Code, Refusal
from arena.api.limits import RateLimit
from arena.api.metagraph import RAO_PER_TAO, Peer
from arena.api.nonces import MAX_NONCE_CHARS, NonceStore
from arena.api.services import Services
from arena.api.sessions import MAX_TEXT, SessionStore

HOTKEY, TIMESTAMP, NONCE, SIGNATURE = "x-hotkey", "x-timestamp", "x-nonce", "x-signature"
_HEADERS = (HOTKEY, TIMESTAMP, NONCE, SIGNATURE)
BOUND_HOTKEY = "x-bittensor-hotkey"
BOUND_MAX_AGE_S = 10.0
BOUND_SKEW_S = 2.0
_MAX_HEADER = 512

# They refuse nothing by themselves: they tell OpenAPI what a route wants.
_signed = [APIKeyHeader(name=n, scheme_name=n, auto_error=False) for n in _HEADERS]
_bearer = HTTPBearer(auto_error=False, scheme_name="session")


class Role(StrEnum):
    """What a hotkey may do."""

    MINER = "miner"
    VALIDATOR = "validator"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated hotkey. `bound`: its signature covers the body of this request."""

    hotkey: str
    role: Role
    bound: bool = False


def role_of(services: Services, hotkey: str) -> Role:
    """The role of a hotkey. Raises Refusal (403) when it is banned or not registered, and
    (503) when the chain has not answered for too long."""
    if hotkey in services.settings.banned_hotkeys:
        raise Refusal(Code.BANNED, "this hotkey is banned")
    peer = services.metagraph.current().peers.get(hotkey)
    if peer is None:
        raise Refusal(Code.NOT_REGISTERED, "this hotkey is not registered on the subnet")
    return Role.VALIDATOR if _validates(services, peer) else Role.MINER


def _validates(services: Services, peer: Peer) -> bool:
    return peer.permit and peer.stake >= services.settings.minimum_stake * RAO_PER_TAO


class Authenticator:
    """Checks callers. One an app: it has the app's buckets."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._nonces = NonceStore(services.engine)
        self._sessions = SessionStore(services.engine)
        settings = services.settings
        self._rate = RateLimit(settings.hotkey_rate, settings.hotkey_burst)

    async def signed(self, request: Request) -> Caller:
        """The hotkey that signed this request. Raises Refusal (401, 403, 429, 503)."""
        if BOUND_HOTKEY in request.headers:
            hotkey, nonce, good_until = await self._bound(request)
        else:
            hotkey, nonce, good_until = self._unbound(request)
        request.state.hotkey = hotkey
        role = role_of(self._services, hotkey)
        self._rate.check(hotkey, "hotkey")
        if not await self._nonces.use(hotkey, nonce, good_until=good_until):
            raise Refusal(Code.NONCE_REUSED, "the nonce has been used already")
        return Caller(hotkey, role, bound=BOUND_HOTKEY in request.headers)

    async def session(self, request: Request) -> Caller:
        """The hotkey of the session's token. Raises Refusal (401, 403, 429, 503)."""
        token = bearer_token(request)
        found = await self._sessions.find(token, now=self._services.clock())
        if found is None:
            raise Refusal(Code.INVALID_SESSION, "the session is unknown or over")
        request.state.hotkey = found.hotkey
        # Asked anew: who was thrown out or banned since has no session.
        role = role_of(self._services, found.hotkey)
        self._rate.check(found.hotkey, "hotkey")
        return Caller(found.hotkey, role)

    def _unbound(self, request: Request) -> tuple[str, str, datetime]:
        values = {name: request.headers.get(name) for name in _HEADERS}
        missing = [name for name, value in values.items() if not value]
        if missing:
            raise Refusal(Code.MISSING_HEADERS, f"headers are missing: {', '.join(missing)}")
        hotkey, timestamp, nonce, signature = (value or "" for value in values.values())
        if len(nonce) > MAX_NONCE_CHARS:
            raise Refusal(Code.NONCE_TOO_LONG, f"a nonce has at most {MAX_NONCE_CHARS} characters")
        if max(len(hotkey), len(timestamp), len(signature)) > _MAX_HEADER:
            raise Refusal(Code.INVALID_SIGNATURE, "a header is too long")
        skew = timedelta(seconds=self._services.settings.clock_skew)
        signed_at = _time(timestamp)
        if abs(self._services.clock() - signed_at) > skew:
            raise Refusal(
                Code.TIMESTAMP_SKEW,
                f"the time of the signature is more than {skew.total_seconds():.0f} s from ours:"
                f" is your clock right?",
            )
        check_address(hotkey)
        if not verify_signature(hotkey, timestamp, nonce, signature):
            raise Refusal(Code.INVALID_SIGNATURE, "the signature is not this hotkey's")
        return hotkey, nonce, signed_at + skew

    async def _bound(self, request: Request) -> tuple[str, str, datetime]:
        from bittensor import http_auth  # seconds to import: most processes serve without it

        receiver = self._services.settings.receiver_hotkey
        if receiver is None:
            raise Refusal(
                Code.WRONG_RECEIVER,
                "this arena has no hotkey of its own to be a receiver; sign the SDK's headers",
            )
        now = self._services.clock()
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        try:
            caller = http_auth.verify(
                request.headers,
                await request.body(),
                method=request.method,
                path=f"{path}?{query}" if query else path,
                self_hotkey_ss58=receiver,
                max_age=BOUND_MAX_AGE_S,
                allowed_skew=BOUND_SKEW_S,
                nonce_store=_Later(),
                now_ns=int(now.timestamp() * 1e9),
            )
        except http_auth.WrongReceiver as error:
            raise Refusal(Code.WRONG_RECEIVER, str(error)) from None
        except http_auth.StaleRequest as error:
            raise Refusal(Code.TIMESTAMP_SKEW, str(error)) from None
        except http_auth.MalformedAuth as error:
            raise Refusal(Code.INVALID_SIGNATURE_FORMAT, str(error)) from None
        except http_auth.AuthError:
            raise Refusal(
                Code.INVALID_SIGNATURE, "the signature is not this hotkey's, or not of this request"
            ) from None
        good_until = now + timedelta(seconds=BOUND_MAX_AGE_S + BOUND_SKEW_S)
        return caller.hotkey_ss58, f"btauth:{caller.nonce_ns}", good_until


class _Later:
    """`http_auth.verify` asks for nonces without waiting; ours are asked for afterwards."""

    def check_and_store(self, hotkey_ss58: str, nonce_ns: int) -> bool:
        return True


def bearer_token(request: Request) -> str:
    """The token of the `Authorization` header. Raises Refusal (401)."""
    scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > MAX_TEXT:
        raise Refusal(Code.INVALID_SESSION, "the Authorization header holds no bearer token")
    return token


def check_address(hotkey: str) -> None:
    """Raises Refusal (401) for a text that is no SS58 address."""
    try:
        validate_hotkey_format(hotkey)
    except AuthenticationError:
        raise Refusal(Code.INVALID_HOTKEY_FORMAT, "the hotkey is no SS58 address") from None


def _time(text: str) -> datetime:
    # Only digits: int() also reads spaces, underscores and other scripts' digits.
    if not (text.isascii() and text.isdecimal() and len(text) <= 11):
        raise Refusal(Code.INVALID_TIMESTAMP, "the timestamp is no Unix time in seconds")
    return datetime.fromtimestamp(int(text), UTC)


def _authenticator(request: Request) -> Authenticator:
    found = request.app.state.authenticator
    assert isinstance(found, Authenticator)
    return found


async def registered(request: Request) -> Caller:
    """A hotkey that is registered on the subnet, by signature or by session."""
    authenticator = _authenticator(request)
    if "authorization" in request.headers:
        return await authenticator.session(request)
    return await authenticator.signed(request)


async def validating(request: Request) -> Caller:
    """A validator, by signature: registered, with a permit and the stake that is asked for."""
    caller = await _authenticator(request).signed(request)
    if caller.role is not Role.VALIDATOR:
        raise Refusal(
            Code.NOT_REGISTERED_AS_VALIDATOR,
            "this hotkey has no validator permit, or too little stake",
        )
    return caller


MinerDep = Annotated[Caller, Depends(registered)]
"""A parameter of routes for registered hotkeys."""
ValidatorDep = Annotated[Caller, Depends(validating)]
"""A parameter of routes for validators."""
SIGNED = [Depends(scheme) for scheme in _signed]
"""For a router whose routes are signed: OpenAPI then says so."""
SIGNED_OR_SESSION = [*SIGNED, Depends(_bearer)]
"""For a router whose routes are signed, or called within a session."""
