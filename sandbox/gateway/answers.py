"""Answers of the gateway that are not a tool's or a model's: errors, health, the table."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.exceptions import ErrorInfo, Fault
from sandbox.gateway.http import Response
from sandbox.gateway.limits import LimitError
from sandbox.strict_json import dump
from scoring.types import Json

STATUS_RUN_ENDED = 499
"""In a trace: the run ended before this request was answered."""

RUN_ENDED = ErrorInfo("gateway.run_ended", Fault.AGENT, "the run ended before the answer")

NEVER_SENT = ErrorInfo("gateway.never_sent", Fault.AGENT, "the body of this request never came")


def error_info(code: str, message: str, fault: Fault = Fault.AGENT) -> ErrorInfo:
    """An error of the gateway itself."""
    return ErrorInfo(f"gateway.{code}", fault, message)


def error_response(status: int, error: ErrorInfo, *, close: bool = False) -> Response:
    """An error in the shape that OpenAI clients read."""
    kind = "invalid_request_error" if error.fault is Fault.AGENT else "server_error"
    body: Json = {"error": {"message": error.message, "type": kind, "code": error.code}}
    return Response(status, dump(body), close=close)


def limit_response(error: LimitError, *, close: bool) -> Response:
    """429 with the limit that was met."""
    info = error.info
    body: Json = {
        "error": {
            "message": info.message,
            "type": "limit_reached",
            "code": info.code,
            "limit": error.limit,
        }
    }
    # A whole number of seconds, as RFC 9110 has it; for limits that do not recover, none.
    after = error.retry_after_s
    headers = () if after is None else (("retry-after", str(max(1, round(after)))),)
    return Response(429, dump(body), close=close, headers=headers)


def model_list(names: Iterable[str]) -> Json:
    """`GET /v1/models` of the OpenAI schema."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 0, "owned_by": "arena"} for name in names
        ],
    }
