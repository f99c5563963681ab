"""Signed HTTP with the arena: what both neurons' clients are built on.

Every request to the arena is signed by the hotkey, each try anew (`X-Hotkey`, `X-Timestamp`,
`X-Nonce`, `X-Signature`, as `bittensor-auth` makes them); what links of others' stores lead to
never is. A refusal is an exception before anybody parses the answer, so the generated calls
of `oro-sdk` can be used as they are: `await session.call(lambda sdk: claim_work.asyncio(
client=sdk, body=body))`.

Tried again is what may succeed later: no answer, 5xx, and 429. Nothing else.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import httpx
from bittensor_auth import generate_auth_headers
from oro_sdk.bittensor_auth import is_public_endpoint
from oro_sdk.client_types import ClientLike

from arena.client.answers import MAX_ANSWER, read_bounded, refusal
from arena.client.backoff import Backoff
from arena.client.exceptions import AnswerError, ArenaApiError, UnreachableError
from arena.runs.signing import Signer
from scoring.types import JsonObject

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]
Told = Callable[[ArenaApiError, float], None]
"""Hears of every try that failed and will be repeated, and in how many seconds."""

TIMEOUT_S: Final = 60.0
"""Longest silence of the arena within one answer, and for sending one piece of a body."""
CONNECT_S: Final = 10.0
AGENT: Final = "sn15-arena"


def _now() -> datetime:
    return datetime.now(UTC)


class ArenaSession:
    """Signed calls to one arena. Use it as `async with`.

    `clock`, `sleep` and `rng` are handed in by tests. Without a `signer` nothing is signed:
    for public routes. `told` hears of failed tries.
    """

    def __init__(
        self,
        base_url: str,
        signer: Signer | None,
        *,
        backoff: Backoff | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], datetime] = _now,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
        told: Told | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._base = httpx.URL(base_url.rstrip("/") + "/")
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - spreads tries, hides nothing
        self._told = told
        self._clock = clock
        self._skew_s: float | None = None
        inner = transport or httpx.AsyncHTTPTransport()
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        self._signed = httpx.AsyncClient(
            base_url=self._base,
            timeout=timeout,
            headers={"user-agent": AGENT, "accept-encoding": "identity"},
            transport=_Signing(inner, self._base, signer, clock),
            event_hooks={"response": [self._check]},
        )
        # For links: their signature is in them, and ours is nobody else's business.
        self._plain = httpx.AsyncClient(
            timeout=timeout, headers={"user-agent": AGENT}, transport=_Shared(inner)
        )
        self._inner = inner

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._signed.aclose()
        await self._plain.aclose()
        await self._inner.aclose()

    @property
    def skew_s(self) -> float | None:
        """The arena's clock minus ours, by its last answer (± 1 s); None before one."""
        return self._skew_s

    async def call(
        self, ask: Callable[[ClientLike], Awaitable[T]], *, backoff: Backoff | None = None
    ) -> T:
        """A generated call of `oro-sdk`, tried again as the rules say.

        Raises ArenaApiError: RefusedError and its kinds for 4xx, UnavailableError and
        UnreachableError once the tries are used up, AnswerError for what the SDK cannot read.
        """
        sdk = cast("ClientLike", _Sdk(self._signed))

        async def once() -> T:
            try:
                return await ask(sdk)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise AnswerError(
                    f"the arena's answer cannot be read: {type(error).__name__}"
                ) from error

        return await self._tried(once, backoff)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        data: Mapping[str, Any] | None = None,
        files: Any = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        backoff: Backoff | None = None,
    ) -> httpx.Response:
        """One call of ours, read whole. `path` is below the arena's address. Raises as `call`."""
        target = self._base.join(path.lstrip("/"))
        if not _within(target, self._base):
            raise ValueError(f"{path!r} is no path of the arena")

        async def once() -> httpx.Response:
            return await self._signed.request(
                method,
                target,
                json=json,
                content=content,
                data=data,
                files=files,
                params=params,
                headers=headers,
            )

        return await self._tried(once, backoff)

    async def json(self, method: str, path: str, **options: Any) -> JsonObject:
        """As `request`, whose answer is a JSON object. Raises AnswerError for another."""
        return json_object((await self.request(method, path, **options)).content)

    async def download(self, url: str, *, max_bytes: int, backoff: Backoff | None = None) -> bytes:
        """What a link leads to, unsigned, at most `max_bytes`. Raises as `call`."""

        async def once() -> bytes:
            async with self._plain.stream("GET", _link(url)) as response:
                body = await read_bounded(response, max_bytes)
                if response.status_code != 200:
                    raise _told_by(response, body)
                return body

        return await self._tried(once, backoff)

    async def upload(
        self,
        url: str,
        body: bytes,
        content_type: str = "application/json",
        *,
        backoff: Backoff | None = None,
    ) -> None:
        """PUT a body where a link leads to, unsigned. Raises as `call`."""

        async def once() -> None:
            headers = {"content-type": content_type}
            async with self._plain.stream(
                "PUT", _link(url), content=body, headers=headers
            ) as response:
                said = await read_bounded(response, MAX_ANSWER)
                if response.status_code not in (200, 201, 204):
                    raise _told_by(response, said)

        await self._tried(once, backoff)

    async def _tried(self, once: Callable[[], Awaitable[T]], backoff: Backoff | None) -> T:
        policy = backoff or self._backoff
        failures = 0
        while True:
            try:
                return await _reached(once)
            except ArenaApiError as error:
                failures += 1
                if not error.transient or policy.gives_up(failures):
                    raise
                wait = policy.delay(failures, self._rng, at_least=error.retry_after)
                if self._told is not None:
                    self._told(error, wait)
            await self._sleep(wait)

    async def _check(self, response: httpx.Response) -> None:
        """Before anybody parses it: the clock is read, the length held, a refusal raised."""
        body = await response.aread()
        self._note_time(response)
        if response.status_code >= 300:
            raise _told_by(response, body, self._skew_s)

    def _note_time(self, response: httpx.Response) -> None:
        try:
            there = parsedate_to_datetime(response.headers.get("date", ""))
            self._skew_s = (there - self._clock()).total_seconds()
        except (TypeError, ValueError):
            return  # an answer without its time


class _Bounded(httpx.AsyncByteStream):
    """A body that ends with AnswerError where it gets too long."""

    def __init__(self, inner: httpx.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > self._limit:
                raise AnswerError(f"an answer has more than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Signing(httpx.AsyncBaseTransport):
    """Signs what goes to the arena, and nothing else; its answers are bounded."""

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        base: httpx.URL,
        signer: Signer | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._inner = inner
        self._base = base
        self._key = _Key(signer) if signer is not None else None
        self._clock = clock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        public = is_public_endpoint(request.url.path)
        if self._key is not None and not public and _within(request.url, self._base):
            at = int(self._clock().timestamp())
            request.headers.update(generate_auth_headers(self._key, timestamp=at))
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        if "content-encoding" in response.headers:  # what is unpacked would not be bounded
            await response.aclose()
            raise AnswerError("the arena's answer is packed, which was not asked for")
        response.stream = _Bounded(response.stream, MAX_ANSWER)
        return response


class _Shared(httpx.AsyncBaseTransport):
    """A transport that another one closes."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._inner.handle_async_request(request)


class _Key:
    """Our signer as `bittensor-auth` wants it."""

    def __init__(self, signer: Signer) -> None:
        self.ss58_address = signer.address
        self.sign = signer.sign


class _Sdk:
    """A session as the SDK's generated calls want it."""

    raise_on_unexpected_status = True

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        return self._client


async def _reached(once: Callable[[], Awaitable[T]]) -> T:
    """httpx's failures by our names. Addresses stay out of messages: they may be links."""
    try:
        return await once()
    except httpx.TimeoutException as error:
        raise UnreachableError(
            f"the arena does not answer in time ({type(error).__name__})"
        ) from error
    except httpx.TransportError as error:
        raise UnreachableError(f"the arena cannot be reached ({type(error).__name__})") from error
    except (httpx.InvalidURL, httpx.DecodingError, httpx.TooManyRedirects) as error:
        raise AnswerError(f"an answer cannot be read ({type(error).__name__})") from error


def _told_by(response: httpx.Response, body: bytes, skew_s: float | None = None) -> ArenaApiError:
    if response.status_code < 400:  # a redirect, or a success that is none of this call's
        return AnswerError(f"the arena answers {response.status_code}, which was not asked for")
    return refusal(response, body, skew_s)


def _within(url: httpx.URL, base: httpx.URL) -> bool:
    same = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
    return same and url.path.startswith(base.path)


def _link(url: str) -> httpx.URL:
    """Raises AnswerError for what is no link over HTTP."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise AnswerError("the arena gave a link that is none") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise AnswerError("the arena gave a link that is none")
    return parsed


def json_object(body: bytes) -> JsonObject:
    """A JSON object. Raises AnswerError for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise AnswerError("the arena's answer is no JSON") from None
    if not isinstance(value, dict):
        raise AnswerError("the arena's answer is no JSON object")
    return cast("JsonObject", value)
