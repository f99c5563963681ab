"""One run's gateway: what a request means, within its limits, recorded before answered.

A session holds a catalogue, a model client and the limits of its run. It is given no
problem and no reward, so there is none to leak.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Literal, TypeVar

import structlog

from sandbox import strict_json
from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ArenaError, ErrorInfo, Fault, ToolError
from sandbox.gateway import answers, wire
from sandbox.gateway.http import (
    BodyBroken,
    BodyTimeout,
    BodyTooLarge,
    ClientGone,
    Request,
    Response,
)
from sandbox.gateway.inference import Inference
from sandbox.gateway.interface import GatewayLimits
from sandbox.gateway.limits import BODY, RATE, TOTAL_BODY, Budget, LimitError
from sandbox.gateway.recorder import Clock, Draft, Recorder
from sandbox.models.client import ModelClient
from sandbox.tools.registry import TOOL_NAMES, call_tool, searches
from sandbox.trace import Trace
from scoring.types import Json, JsonObject

_log = structlog.get_logger(__name__)
_T = TypeVar("_T")

INFERENCE_PATHS = ("/inference/chat/completions", "/v1/chat/completions")
TOOLS_PREFIX = "/tools/"
MAX_PATH_CHARS = 1_024
"""Of a path that is kept in the trace."""
MAX_UNRECORDED = 1_000
"""Requests refused after the request limit, after which the door is shut."""
LARGE_BODY = 256 << 10
"""Bodies from here on are parsed in a thread: they would hold up other sessions."""

RECOMMENDED = ErrorInfo(
    "tool.already_recommended", Fault.AGENT, "recommend_product can be used only once"
)
"""What a run is told when it recommends twice."""

Via = Literal["search", "tools"]


class Session:
    """The gateway of one sandbox. Implements `GatewaySession`."""

    def __init__(
        self,
        socket: Path,
        catalog: Catalog,
        models: ModelClient | None,
        limits: GatewayLimits,
        *,
        executor: Executor,
        clock: Clock = time.monotonic,
    ) -> None:
        self.socket = socket
        self._catalog = catalog
        self._models = models
        self._executor = executor
        self._clock = clock
        self._budget = Budget(limits, clock())
        self._recorder = Recorder(clock)
        self._inference = Inference(models, self._budget, self._recorder)
        self._recommended = False
        self._turn = asyncio.Lock()
        self.shut_door: Callable[[], None] = lambda: None
        """Set by the gateway: take no more connections."""

    def excused_s(self) -> float:
        """Queue and provider time so far."""
        return self._recorder.waited.seconds()

    def trace(self) -> Trace:
        """What was recorded so far."""
        return self._recorder.trace()

    def infrastructure_error(self) -> ErrorInfo | None:
        """The failure of the validator's side that spoilt this run, if there was one."""
        return self._recorder.own_failure or self._recorder.model_failure

    def refuse(self, status: int, reason: str) -> Response:
        """Answer and record what is not HTTP."""
        draft = self._recorder.begin()
        try:
            self._budget.admit_request(self._clock())
        except LimitError as limit:
            return self._refuse_request(draft, "", "", limit)
        error = answers.error_info("bad_http", reason)
        return self._plain(draft, "", "", status, error=error, close=True)

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        draft = self._recorder.begin()
        try:
            self._budget.admit_request(self._clock())
            self._budget.admit_body(0)
            self._budget.take_bytes(request.head_bytes)
        except LimitError as limit:
            return self._refuse_request(draft, request.method, request.path, limit)
        try:
            response = await self._route(draft, request)
        except LimitError as limit:
            return self._refuse_limit(draft, request, limit)
        except ClientGone:
            raise
        except Exception as problem:  # noqa: BLE001 - a fault of ours must not end the session
            error = self._broken(request.path[:MAX_PATH_CHARS], problem)
            return self._plain(draft, request.method, request.path, 500, error=error, close=True)
        self._budget.take_answer(len(response.body))
        return response

    async def _route(self, draft: Draft, request: Request) -> Response:
        path = request.path
        if path in INFERENCE_PATHS:
            known, method = True, "POST"
        elif path.startswith(TOOLS_PREFIX):
            known, method = path[len(TOOLS_PREFIX) :] in TOOL_NAMES, "POST"
        else:
            known = path in ("/health", "/v1/models") or _is_search(path)
            method = "GET"
        if not known:
            missing_tool = path.startswith(TOOLS_PREFIX)
            error = (
                answers.error_info("no_such_tool", f"the tools are {', '.join(TOOL_NAMES)}")
                if missing_tool
                else answers.error_info("forbidden", "nothing is served at this path")
            )
            return self._plain(
                draft, request.method, path, 404 if missing_tool else 403, error=error
            )
        if request.method != method:
            error = answers.error_info("method", f"this path takes {method}")
            return self._plain(draft, request.method, path, 405, error=error)
        if method == "GET":
            return await self._get(draft, request)
        body = await self._read(draft, request)
        if isinstance(body, Response):
            return body
        if path in INFERENCE_PATHS:
            return await self._inference.answer(draft, body)
        return await self._tool(draft, path[len(TOOLS_PREFIX) :], body)

    async def _get(self, draft: Draft, request: Request) -> Response:
        if _is_search(request.path):
            return await self._search(draft, request)
        payload: Json = {"status": "ok"}
        if request.path == "/v1/models":
            payload = answers.model_list(self._models.names if self._models else ())
        return self._plain(draft, request.method, request.path, 200, payload=payload)

    async def _read(self, draft: Draft, request: Request) -> Json | Response:
        """The JSON of a body, or the refusal that was recorded."""
        if request.declared_bytes is not None:
            self._budget.admit_body(request.declared_bytes)
        try:
            data = await request.body(self._budget.body_room())
        except BodyTooLarge:
            room, limit = self._budget.body_room(), self._budget.limits
            name = BODY if room == limit.body_bytes else TOTAL_BODY
            raise LimitError(name, f"a body has at most {room:,} bytes here") from None
        except BodyTimeout:
            error = answers.error_info("slow_body", "the body did not arrive in time")
            return self._plain(draft, request.method, request.path, 408, error=error, close=True)
        except BodyBroken as problem:
            error = answers.error_info("bad_http", str(problem))
            return self._plain(draft, request.method, request.path, 400, error=error, close=True)
        except (ClientGone, asyncio.CancelledError):
            status, ended = answers.STATUS_RUN_ENDED, answers.NEVER_SENT
            self._plain(draft, request.method, request.path, status, error=ended)
            raise
        self._budget.take_bytes(len(data))
        try:
            if len(data) >= LARGE_BODY:
                return await self._in_thread(lambda: strict_json.read(data))
            return strict_json.read(data)
        except ValueError as problem:
            error = answers.error_info("bad_json", f"the body is {problem}")
            return self._plain(
                draft, request.method, request.path, 400, error=error, body_bytes=len(data)
            )

    async def _search(self, draft: Draft, request: Request) -> Response:
        name = request.path[len(wire.SEARCH_PREFIX) :]
        arguments: JsonObject = {}
        try:
            call = wire.parse_target(f"{request.path}?{request.query}")
            arguments = call.as_json
            return await self._run_tool(
                draft, "search", name, arguments, lambda: wire.answer(call, self._catalog),
                query=request.query,
            )  # fmt: skip
        except ToolError as error:
            info = error.info
            draft.tool("search", name, arguments, 400, None, query=request.query, error=info)
            return answers.error_response(400, info)

    async def _tool(self, draft: Draft, name: str, body: Json) -> Response:
        if not isinstance(body, dict):
            error = answers.error_info("bad_json", "the body must be an object of arguments")
            return self._plain(draft, "POST", TOOLS_PREFIX + name, 400, error=error)
        if name == "recommend_product" and self._recommended:
            draft.tool("tools", name, body, 409, None, error=RECOMMENDED)
            return answers.error_response(409, RECOMMENDED)
        try:
            response = await self._run_tool(
                draft, "tools", name, body, lambda: call_tool(name, body, self._catalog)
            )
        except ToolError as error:
            result: Json = {"error": error.message}
            draft.tool("tools", name, body, 200, result, error=error.info)
            return Response(200, strict_json.dump(result))
        if name == "recommend_product" and response.status == 200:
            self._recommended = True
        return response

    async def _run_tool(
        self,
        draft: Draft,
        via: Via,
        name: str,
        arguments: JsonObject,
        work: Callable[[], Json],
        *,
        query: str | None = None,
    ) -> Response:
        """Run a tool, record it, answer it. Raises ToolError for the caller to record."""
        try:
            result = await self._in_thread(work) if searches(name) else work()
        except ToolError:
            raise
        except asyncio.CancelledError:
            status = answers.STATUS_RUN_ENDED
            draft.tool(via, name, arguments, status, None, query=query, error=answers.RUN_ENDED)
            raise
        except Exception as problem:  # noqa: BLE001 - a broken catalogue must not look like the agent's
            error = self._broken(name, problem)
            draft.tool(via, name, arguments, 500, None, query=query, error=error)
            return answers.error_response(500, error)
        data, sent = strict_json.dump_as_sent(result)
        draft.tool(via, name, arguments, 200, sent, query=query)
        return Response(200, data)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # One at a time: the threads serve all sessions in turn, and one session that asks
        # for much at once cannot take them all.
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _broken(self, name: str, problem: Exception) -> ErrorInfo:
        """A fault of the validator's own: told, logged, and the run is spoilt by it."""
        _log.error("gateway failed", at=name, exc_info=problem)
        message = problem.message if isinstance(problem, ArenaError) else type(problem).__name__
        error = answers.error_info("internal", f"{name}: {message}", Fault.VALIDATOR)
        self._recorder.own_failure = error
        return error

    def _plain(
        self,
        draft: Draft,
        method: str,
        path: str,
        status: int,
        *,
        payload: Json = None,
        error: ErrorInfo | None = None,
        body_bytes: int = 0,
        close: bool = False,
    ) -> Response:
        """Record an `HttpEvent` and make its answer."""
        draft.http(method[:32], path[:MAX_PATH_CHARS], status, body_bytes=body_bytes, error=error)
        if error is not None:
            return answers.error_response(status, error, close=close)
        return Response(status, strict_json.dump(payload), close=close)

    def _refuse_request(self, draft: Draft, method: str, path: str, error: LimitError) -> Response:
        """429 before anything was read. Beyond the request limit nothing more is kept."""
        self._recorder.limit_hit(error.limit)
        if error.limit == RATE:
            draft.http(method[:32], path[:MAX_PATH_CHARS], 429, error=error.info)
            return answers.limit_response(error, close=not method)
        if self._recorder.not_kept() >= MAX_UNRECORDED:
            self.shut_door()
        return answers.limit_response(error, close=True)

    def _refuse_limit(self, draft: Draft, request: Request, error: LimitError) -> Response:
        """429 for a body: it is not read any further."""
        self._recorder.limit_hit(error.limit)
        draft.http(
            request.method[:32],
            request.path[:MAX_PATH_CHARS],
            429,
            body_bytes=request.declared_bytes or 0,
            error=error.info,
        )
        return answers.limit_response(error, close=True)


def _is_search(path: str) -> bool:
    return (
        path.startswith(wire.SEARCH_PREFIX) and path[len(wire.SEARCH_PREFIX) :] in wire.SEARCH_TOOLS
    )
