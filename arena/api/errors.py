"""Refusals: one table of codes and their status, in the shapes that `oro-sdk` 7 reads.

Every refusal is `{"detail": text, "error_code": code}`. A 422 is FastAPI's list of what is
wrong with a request (the SDK's HTTPValidationError), a 503 says when to try again. What an
answer never holds: a traceback, an address of the database, text that a stranger sent.

The SDK's parser knows a few codes for each status of each route and fails on others. So
what signatures refuse is always 401 or 403, which it leaves alone, and never 400.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from arena.db.engine import database_error
from arena.exceptions import ArenaError, DatabaseUnreachableError, Fault

_log = structlog.get_logger(__name__)

RETRY_AFTER_S = 5
"""When to try again after a failure of ours, in seconds."""
_MAX_DETAIL = 500


class Code(StrEnum):
    """Why a request was refused. Stable: clients branch on them."""

    # The SDK's own.
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    AGENT_VERSION_NOT_FOUND = "AGENT_VERSION_NOT_FOUND"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
    ARTIFACT_NOT_RELEASED = "ARTIFACT_NOT_RELEASED"
    AT_CAPACITY = "AT_CAPACITY"
    CODE_ANALYSIS_ERROR = "CODE_ANALYSIS_ERROR"
    COOLDOWN_ACTIVE = "COOLDOWN_ACTIVE"
    EVAL_RUN_NOT_FOUND = "EVAL_RUN_NOT_FOUND"
    FILE_TOO_LARGE = "FILE_TOO_LARGE"
    INVALID_AGENT_NAME = "INVALID_AGENT_NAME"
    INVALID_ARTIFACT_TYPE = "INVALID_ARTIFACT_TYPE"
    INVALID_FILE = "INVALID_FILE"
    INVALID_PROBLEM_ID = "INVALID_PROBLEM_ID"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    MISSING_PARAMETER = "MISSING_PARAMETER"
    MISSING_SCORE = "MISSING_SCORE"
    NO_ACTIVE_SUITE = "NO_ACTIVE_SUITE"
    NO_SELECTION = "NO_SELECTION"
    NOT_RUN_OWNER = "NOT_RUN_OWNER"
    NOT_VERSION_OWNER = "NOT_VERSION_OWNER"
    PROBLEM_NOT_FOUND = "PROBLEM_NOT_FOUND"
    RACE_IN_FLIGHT = "RACE_IN_FLIGHT"
    RACE_LOCKED = "RACE_LOCKED"
    RACE_NOT_FOUND = "RACE_NOT_FOUND"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    RUN_ALREADY_COMPLETE = "RUN_ALREADY_COMPLETE"
    SIMILARITY_CHECK_UNAVAILABLE = "SIMILARITY_CHECK_UNAVAILABLE"
    SUBMISSIONS_PAUSED = "SUBMISSIONS_PAUSED"
    SUITE_NOT_FOUND = "SUITE_NOT_FOUND"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    # Those of `bittensor-auth`.
    MISSING_HEADERS = "MISSING_HEADERS"
    INVALID_HOTKEY_FORMAT = "INVALID_HOTKEY_FORMAT"
    INVALID_TIMESTAMP = "INVALID_TIMESTAMP"
    TIMESTAMP_SKEW = "TIMESTAMP_SKEW"
    INVALID_SIGNATURE_FORMAT = "INVALID_SIGNATURE_FORMAT"
    INVALID_SIGNATURE = "INVALID_SIGNATURE"
    NONCE_TOO_LONG = "NONCE_TOO_LONG"
    NONCE_REUSED = "NONCE_REUSED"
    NOT_REGISTERED = "NOT_REGISTERED"
    NOT_REGISTERED_AS_VALIDATOR = "NOT_REGISTERED_AS_VALIDATOR"
    BANNED = "BANNED"
    # Ours.
    WRONG_RECEIVER = "WRONG_RECEIVER"
    INVALID_CHALLENGE = "INVALID_CHALLENGE"
    INVALID_SESSION = "INVALID_SESSION"
    INVALID_LINK = "INVALID_LINK"
    INVALID_RECORD = "INVALID_RECORD"
    INVALID_SEAL = "INVALID_SEAL"
    SEAL_CHAIN_FORK = "SEAL_CHAIN_FORK"
    RECORD_CONFLICT = "RECORD_CONFLICT"
    UNSUPPORTED_CONDITIONS = "UNSUPPORTED_CONDITIONS"
    RECORD_NOT_FOUND = "RECORD_NOT_FOUND"
    ARTEFACT_REFUSED = "ARTEFACT_REFUSED"
    ARTEFACT_INCOMPLETE = "ARTEFACT_INCOMPLETE"
    ARTEFACT_QUOTA = "ARTEFACT_QUOTA"
    NOT_OFFERED = "NOT_OFFERED"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    BAD_REQUEST = "BAD_REQUEST"
    BODY_TOO_SLOW = "BODY_TOO_SLOW"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    INTERNAL_ERROR = "INTERNAL_ERROR"


STATUS: dict[Code, int] = {
    **dict.fromkeys(
        (
            Code.FILE_TOO_LARGE,
            Code.INVALID_AGENT_NAME,
            Code.INVALID_ARTIFACT_TYPE,
            Code.INVALID_FILE,
            Code.INVALID_PROBLEM_ID,
            Code.MISSING_PARAMETER,
            Code.MISSING_SCORE,
            Code.VALIDATION_ERROR,
            Code.INVALID_RECORD,
            Code.INVALID_SEAL,
            Code.UNSUPPORTED_CONDITIONS,
            Code.ARTEFACT_REFUSED,
            Code.BAD_REQUEST,
        ),
        400,
    ),
    **dict.fromkeys(
        (
            Code.MISSING_HEADERS,
            Code.INVALID_HOTKEY_FORMAT,
            Code.INVALID_TIMESTAMP,
            Code.TIMESTAMP_SKEW,
            Code.INVALID_SIGNATURE_FORMAT,
            Code.INVALID_SIGNATURE,
            Code.NONCE_TOO_LONG,
            Code.NONCE_REUSED,
            Code.WRONG_RECEIVER,
            Code.INVALID_CHALLENGE,
            Code.INVALID_SESSION,
        ),
        401,
    ),
    **dict.fromkeys(
        (
            Code.NOT_REGISTERED,
            Code.NOT_REGISTERED_AS_VALIDATOR,
            Code.BANNED,
            Code.NOT_VERSION_OWNER,
            Code.INVALID_LINK,
            Code.RACE_IN_FLIGHT,
        ),
        403,
    ),
    **dict.fromkeys(
        (
            Code.AGENT_NOT_FOUND,
            Code.AGENT_VERSION_NOT_FOUND,
            Code.ARTIFACT_NOT_FOUND,
            Code.ARTIFACT_NOT_RELEASED,
            Code.EVAL_RUN_NOT_FOUND,
            Code.NO_ACTIVE_SUITE,
            Code.NO_SELECTION,
            Code.PROBLEM_NOT_FOUND,
            Code.RACE_NOT_FOUND,
            Code.SUITE_NOT_FOUND,
            Code.RECORD_NOT_FOUND,
            Code.NOT_OFFERED,
            Code.NOT_FOUND,
        ),
        404,
    ),
    Code.METHOD_NOT_ALLOWED: 405,
    Code.BODY_TOO_SLOW: 408,
    **dict.fromkeys(
        (
            Code.AT_CAPACITY,
            Code.LEASE_EXPIRED,
            Code.NOT_RUN_OWNER,
            Code.RACE_LOCKED,
            Code.RUN_ALREADY_COMPLETE,
            Code.SEAL_CHAIN_FORK,
            Code.RECORD_CONFLICT,
            Code.ARTEFACT_INCOMPLETE,
            Code.ARTEFACT_QUOTA,
        ),
        409,
    ),
    Code.CODE_ANALYSIS_ERROR: 422,
    Code.COOLDOWN_ACTIVE: 429,
    Code.RATE_LIMIT_EXCEEDED: 429,
    Code.INTERNAL_ERROR: 500,
    Code.SIMILARITY_CHECK_UNAVAILABLE: 503,
    Code.SUBMISSIONS_PAUSED: 503,
    Code.SERVICE_UNAVAILABLE: 503,
}
"""The status of every code; a test holds it against the SDK's parsers."""


class Refusal(ArenaError):  # noqa: N818 - a refusal is an answer, and nobody's failure
    """A request that is answered no. `extra` stands beside detail and code in the answer."""

    fault = Fault.CALLER

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail[:_MAX_DETAIL], code=code.value)
        self.error_code = code
        self.status = status or STATUS[code]
        self.retry_after = retry_after
        self.extra = dict(extra or {})

    def response(self) -> JSONResponse:
        """The answer."""
        headers = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, round(self.retry_after + 0.5)))
        if self.status == 401:
            headers["www-authenticate"] = "Bittensor"
        body = {"detail": self.message, "error_code": self.error_code.value, **self.extra}
        return JSONResponse(body, self.status, headers)


class ErrorBody(BaseModel):
    """A refusal."""

    detail: str
    error_code: str


class ValidationItem(BaseModel):
    """One thing that is wrong with a request."""

    loc: list[str | int]
    msg: str
    type: str


class ValidationBody(BaseModel):
    """What is wrong with a request (the SDK's HTTPValidationError)."""

    detail: list[ValidationItem]


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers besides success, for OpenAPI. Every route may answer the common ones."""
    common = {400, 413, 408, 429, 500, 503}
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorBody} for status in sorted(common | set(statuses))
    }
    found[422] = {"model": ValidationBody}
    return found


def unavailable(detail: str) -> Refusal:
    """Something of ours does not answer now."""
    return Refusal(Code.SERVICE_UNAVAILABLE, detail, retry_after=RETRY_AFTER_S)


def add_handlers(app: FastAPI) -> None:
    """Make every exception an answer in these shapes."""
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(ArenaError, _arena_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for error in (SQLAlchemyError, OSError, TimeoutError):
        app.add_exception_handler(error, _failed)


def note_refusal(request: Request, code: str) -> None:
    """Leave the code where the request's log line finds it."""
    request.state.error_code = code


async def _refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    note_refusal(request, error.code)
    return error.response()


async def _arena_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ArenaError)
    code = error.code.replace(".", "_").upper()
    if error.fault in (Fault.AGENT, Fault.CALLER):
        note_refusal(request, code)
        return JSONResponse({"detail": str(error)[:_MAX_DETAIL], "error_code": code}, 400)
    _log.error("request failed", code=error.code, error=error.message[:_MAX_DETAIL])
    note_refusal(request, Code.SERVICE_UNAVAILABLE)
    # Its message may name hosts and paths of ours.
    return unavailable("the arena cannot answer this now; try again").response()


async def _failed(request: Request, error: Exception) -> JSONResponse:
    """A driver's error: the database is away (503), or something here is broken (500)."""
    told = database_error(error, "the database")
    _log.error("request failed", code=told.code, error=told.message[:_MAX_DETAIL])
    if isinstance(told, DatabaseUnreachableError):
        note_refusal(request, Code.SERVICE_UNAVAILABLE)
        return unavailable("the arena's database does not answer; try again").response()
    note_refusal(request, Code.INTERNAL_ERROR)
    return Refusal(Code.INTERNAL_ERROR, "the arena failed; it is logged").response()


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    note_refusal(request, Code.VALIDATION_ERROR)
    detail = [
        {
            "loc": [part if isinstance(part, int) else str(part)[:100] for part in found["loc"]],
            "msg": str(found["msg"])[:_MAX_DETAIL],
            "type": str(found["type"]),
        }
        for found in error.errors()[:20]
    ]
    return JSONResponse({"detail": detail}, 422)


async def _http(request: Request, error: Exception) -> JSONResponse:
    """What the framework itself refuses: unknown paths, methods, broken bodies."""
    assert isinstance(error, HTTPException)
    known = {
        404: Code.NOT_FOUND,
        405: Code.METHOD_NOT_ALLOWED,
        408: Code.BODY_TOO_SLOW,
        413: Code.FILE_TOO_LARGE,
    }
    code = known.get(error.status_code, Code.BAD_REQUEST)
    note_refusal(request, code)
    body = {"detail": str(error.detail)[:_MAX_DETAIL], "error_code": code.value}
    return JSONResponse(body, error.status_code, error.headers)
