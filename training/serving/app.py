"""The wire: `/v1/chat/completions`, `/v1/models`, `/health`, errors in OpenAI's shape.

Requests run together in the policy's batch; `queue` more may wait, and the next is told
429 to come again: a client that waits forever helps nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sandbox import strict_json
from sandbox.exceptions import ArenaError, Fault
from sandbox.models import faults
from sandbox.models.request import ChatRequest
from scoring.types import Json
from training.serving.chat import Answered, ChatModel

_log = structlog.get_logger(__name__)

BODY_BYTES: Final = 10 << 20
RETRY_AFTER_S: Final = 1
NOT_FOUND: Final = "model_not_found"
_INVALID: Final = "invalid_request_error"


class Door:
    """Counts who is inside: at most `places` requests, running or waiting."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.inside = 0

    def __enter__(self) -> bool:
        """Whether there was room. Counts all the same, so that leaving is always right."""
        self.inside += 1
        return self.inside <= self.places

    def __exit__(self, *_: object) -> None:
        self.inside -= 1


def create_app(model: ChatModel, *, places: int) -> FastAPI:
    """The application around one model; `places` requests are taken at once."""
    app = FastAPI(title="arena model", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(HTTPException, _http_error)
    door = Door(places)

    @app.get("/health")
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok", "model": model.name, "requests": door.inside})

    @app.get("/v1/models")
    async def models() -> JSONResponse:
        entry: Json = {
            "id": model.name,
            "object": "model",
            "created": 0,
            "owned_by": "arena",
            "max_model_len": model.context,
        }
        return JSONResponse({"object": "list", "data": [entry]})

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> JSONResponse:
        with door as room:
            if not room:
                return _error(
                    429, "the queue of this server is full", "rate_limit_error", "queue_full",
                    headers={"retry-after": str(RETRY_AFTER_S)},
                )  # fmt: skip
            return await _chat(model, request)

    return app


async def _chat(model: ChatModel, request: Request) -> JSONResponse:
    try:
        asked = ChatRequest.from_json(strict_json.read(await _body(request)))
    except _TooLargeError:
        return _error(413, f"a body has at most {BODY_BYTES:,} bytes", _INVALID, "too_large")
    except ValueError as problem:
        return _error(400, f"the body is {problem}", _INVALID, "bad_json")
    except ArenaError as error:
        return _told(error)
    if asked.model != model.name:
        said = f"The model `{asked.model[:100]}` does not exist; there is `{model.name}`."
        return _error(404, said, _INVALID, NOT_FOUND)
    try:
        answered = await _unless_gone(request, model.complete(asked))
    except ArenaError as error:
        return _told(error)
    except Exception as error:  # noqa: BLE001 - a bug here is one answer, not the server
        _log.exception("a completion failed")
        return _error(500, f"internal error: {type(error).__name__}", "server_error", "internal")
    if answered is None:
        return JSONResponse({}, 499)  # nobody reads it
    return JSONResponse(answered.body)


async def _unless_gone(request: Request, work: object) -> Answered | None:
    """The answer; None when the client went away first, and then the work is given up."""
    working = asyncio.ensure_future(work)  # type: ignore[call-overload]
    leaving = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return None
        answered: Answered = working.result()
        return answered
    finally:
        for task in (working, leaving):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _TooLargeError(Exception):
    """The body has more bytes than are read."""


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES:
            raise _TooLargeError
    return bytes(body)


def _told(error: ArenaError) -> JSONResponse:
    """An error of ours. What a request asked wrongly is 400, everything else 500."""
    if error.fault is not Fault.AGENT:
        _log.error("a completion failed", code=error.code, said=error.message)
        return _error(500, error.message, "server_error", error.code)
    code = "context_length_exceeded" if error.code == faults.TOO_LONG else error.code
    return _error(400, error.message, _INVALID, code)


async def _http_error(_: Request, exception: Exception) -> JSONResponse:
    status = exception.status_code if isinstance(exception, HTTPException) else 500
    detail = exception.detail if isinstance(exception, HTTPException) else "internal error"
    return _error(status, str(detail), _INVALID, None)


def _error(
    status: int, message: str, kind: str, code: str | None, headers: dict[str, str] | None = None
) -> JSONResponse:
    told: Json = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return JSONResponse(told, status, headers=headers)
