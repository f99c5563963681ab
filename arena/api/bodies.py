"""Bodies are counted as they come in: no route ever holds more than it allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BodyLimit = Callable[[str], int]
"""The largest body that a path takes, in bytes."""


class BodyGuard:
    """Refuses a body that is too large (413) or too slow (408), whatever its headers say."""

    def __init__(self, app: ASGIApp, *, limit: BodyLimit, seconds: float) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["path"])
        guarded = _Counted(receive, limit, time.monotonic() + self._seconds)
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared[:20]) > limit:
            guarded.refused = True  # said when the route asks for it: who may call comes first
        await self._app(scope, guarded, send)


class _Counted:
    def __init__(self, receive: Receive, limit: int, deadline: float) -> None:
        self._receive = receive
        self._limit = limit
        self._deadline = deadline
        self._seen = 0
        self._whole = False
        self.refused = False

    async def __call__(self) -> Message:
        if self._whole:  # what comes after a body is the client's leaving
            return await self._receive()
        if self.refused:
            raise self._too_large()
        left = self._deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(left, 0.001)):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the body came too slowly") from None
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self._limit:
                raise self._too_large()
            self._whole = not message.get("more_body", False)
        return message

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body has more than {self._limit} bytes")
