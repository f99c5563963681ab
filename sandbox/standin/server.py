"""The server: `/v1/chat/completions` and `/v1/models` over the registered models.

Keeps no state and knows no reward. Errors have OpenAI's shape, so that any client of
that wire reads them.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sandbox.standin.conversation import read_conversation
from sandbox.standin.registry import models
from sandbox.standin.wire import CREATED, ChatRequest, completion, error
from scoring.types import Json, JsonObject

_INVALID = "invalid_request_error"


def create_app() -> FastAPI:
    """The application, with no state of its own."""
    app = FastAPI(title="Stand-in models", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.get("/v1/models", response_model=None)(_list_models)
    app.get("/health")(_health)
    app.post("/v1/chat/completions", response_model=None)(_chat)
    return app


def _health() -> dict[str, str]:
    return {"status": "ok"}


def _list_models() -> JSONResponse:
    entries: list[Json] = [
        {"id": name, "object": "model", "created": CREATED, "owned_by": "standin"}
        for name in models()
    ]
    return JSONResponse({"object": "list", "data": entries})


def _chat(request: ChatRequest) -> JSONResponse:
    respond = models().get(request.model)
    if respond is None:
        known = ", ".join(models())
        message = f"The model {request.model[:100]!r} is not hosted here. There are: {known}."
        return JSONResponse(
            error(message, kind=_INVALID, code="model_not_found", param="model"), 404
        )
    if request.stream:
        message = "Streaming is not supported: send stream=false."
        return JSONResponse(
            error(message, kind=_INVALID, code="unsupported_value", param="stream"), 400
        )
    messages: list[JsonObject] = [dict(m.model_dump(exclude_none=True)) for m in request.messages]
    tools: list[JsonObject] = [dict(tool) for tool in request.tools or ()]
    conversation = read_conversation(messages, tools)
    return JSONResponse(completion(request, respond(conversation)))


async def _invalid(_: Request, exception: Exception) -> JSONResponse:
    errors = exception.errors() if isinstance(exception, RequestValidationError) else []
    first = errors[0] if errors else {"loc": (), "msg": "invalid request"}
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    message = f"{where}: {first['msg']}" if where else str(first["msg"])
    return JSONResponse(error(message[:500], kind=_INVALID, param=where or None), 400)


async def _http_error(_: Request, exception: Exception) -> JSONResponse:
    status = exception.status_code if isinstance(exception, HTTPException) else 500
    detail = exception.detail if isinstance(exception, HTTPException) else "internal error"
    return JSONResponse(error(str(detail), kind=_INVALID), status)
