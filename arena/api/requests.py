"""Around every request: an id, the address's rate, a log line, metrics, and a last resort."""

from __future__ import annotations

import re
import time
import traceback
import uuid
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arena.api.errors import Code, Refusal
from arena.api.limits import RateLimit, address_key
from arena.api.metrics import Metrics

_log = structlog.get_logger(__name__)

REQUEST_ID = "x-request-id"
_ID = re.compile(r"[0-9A-Za-z._-]{1,64}")
_UNLIMITED = ("/health", "/metrics")
"""Paths, and none below them: `/health/deep` asks the database and the store."""
_MAX_PATH = 200
_MAX_TRACEBACK = 8_000


class RequestGuard:
    """The outermost layer of the app. Nothing that goes wrong inside comes out as a traceback."""

    def __init__(self, app: ASGIApp, *, rate: RateLimit, metrics: Metrics) -> None:
        self._app = app
        self._rate = rate
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        scope.setdefault("state", {})
        request_id = _request_id(scope)
        answer = _Answer(send, request_id)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            await self._serve(scope, receive, answer)
        finally:
            self._told(scope, answer, time.perf_counter() - started)
            structlog.contextvars.unbind_contextvars("request_id")

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        client = scope.get("client")
        try:
            if scope["path"] not in _UNLIMITED:
                self._rate.check(address_key(client[0] if client else None), "address")
            await self._app(scope, receive, answer)
        except Refusal as refusal:
            scope["state"]["error_code"] = refusal.code
            await refusal.response()(scope, receive, answer)
        except Exception:  # noqa: BLE001 - the last resort: whatever it was, it is logged
            # Not by `exception`: it may be set to show what every function had in hand.
            _log.error("request failed", traceback=traceback.format_exc()[-_MAX_TRACEBACK:])
            scope["state"]["error_code"] = Code.INTERNAL_ERROR
            if not answer.status:
                failed = Refusal(Code.INTERNAL_ERROR, "the arena failed; it is logged")
                await failed.response()(scope, receive, answer)

    def _told(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "none"
        self._metrics.requests.labels(_method(scope), route, str(answer.status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        state: dict[str, Any] = scope["state"]
        code = state.get("error_code")
        said = {
            "method": _method(scope),
            "path": scope["path"][:_MAX_PATH],
            "status": answer.status,
            "ms": round(seconds * 1000, 1),
            "hotkey": state.get("hotkey"),
        }
        if code is None:
            _log.info("request", **said)
            return
        self._metrics.refusals.labels(str(code)).inc()
        _log.warning("request refused", code=str(code), **said)


class _Answer:
    """Sends on, and remembers the status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID] = self._request_id
            headers.setdefault("x-content-type-options", "nosniff")
            headers.setdefault("cache-control", "no-store")
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """The client's own id, when it is a plain one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    known = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")
    return method if method in known else "OTHER"
