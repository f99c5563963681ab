"""Model calls of one run: checked, budgeted, forwarded, recorded with their full answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

from sandbox import strict_json
from sandbox.exceptions import ErrorInfo, Fault, ModelError
from sandbox.gateway import answers
from sandbox.gateway.http import Response
from sandbox.gateway.limits import Budget, LimitError, Reservation
from sandbox.gateway.recorder import Draft, Recorder
from sandbox.models import faults
from sandbox.models.client import Completion, ModelClient
from sandbox.models.request import ChatRequest
from scoring.types import Json, JsonObject

_CHARS_PER_TOKEN = 4.0
"""English text; for an estimate of what a prompt will cost before it is sent."""
CALLS_AT_ONCE = 8
"""Model calls of one run in flight; more wait for their turn, on the agent's own time. A
server's slots are for all runs: one that took them all would time out its rivals."""

_STATUS = {
    faults.UNKNOWN_MODEL: 404,
    faults.TOO_LONG: 400,
    faults.RATE_LIMITED: 503,
    faults.TIMEOUT: 504,
}
_NOT_DOUBTED = (faults.RATE_LIMITED, faults.NO_FUNDS)
"""Failures that a small question may be spared, though the operator's account is at fault."""

_SMALL_QUESTION = ChatRequest(
    "", ({"role": "user", "content": "Answer with the word yes."},), {"max_tokens": 16}
)
_SMALL_QUESTION_S = 10.0


class Inference:
    """Answers `POST /inference/chat/completions` for one run."""

    def __init__(self, models: ModelClient | None, budget: Budget, recorder: Recorder) -> None:
        self._models = models
        self._budget = budget
        self._recorder = recorder
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)

    async def answer(self, draft: Draft, body: Json) -> Response:
        """Answer one request body and record it."""
        call = _Call(self._recorder, draft, body)
        try:
            await self._turns.acquire()
        except asyncio.CancelledError:
            call.failed(answers.STATUS_RUN_ENDED, answers.RUN_ENDED)
            raise
        try:
            return await self._answer(call, body)
        finally:
            self._turns.release()

    async def _answer(self, call: _Call, body: Json) -> Response:
        try:
            request = ChatRequest.from_json(body)
            routes = self._client().routes(request.model)
            reservation = self._budget.admit_model_call(
                max_tokens=request.max_tokens,
                choices=request.choices,
                prompt_usd=request.prompt_chars()
                / _CHARS_PER_TOKEN
                * max(route.usd_in for route in routes)
                / 1e6,
                token_usd=max(route.usd_out for route in routes) / 1e6,
            )
        except LimitError as error:
            self._recorder.limit_hit(error.limit)
            call.failed(429, error.info)
            return answers.limit_response(error, close=False)
        except ModelError as error:
            return call.refused(error)
        return await self._forward(call, request, reservation)

    async def _forward(
        self, call: _Call, request: ChatRequest, reservation: Reservation
    ) -> Response:
        completion: Completion | None = None
        tokens, cost_usd = 0, 0.0
        asked = self._clamped(request, reservation)
        try:
            with self._recorder.waited.running():
                call.sent()
                completion = await self._ask(asked)
        except asyncio.CancelledError:
            call.failed(answers.STATUS_RUN_ENDED, answers.RUN_ENDED)
            raise
        except ModelError as error:
            if error.fault is not Fault.AGENT:
                self._recorder.model_failure = error.info
            elif error.code == faults.POISONOUS:
                # Nobody tells what it wrote, but the provider bills it.
                tokens, cost_usd = reservation.tokens, reservation.cost_usd
            return call.refused(error)
        finally:
            if completion is not None:
                tokens, cost_usd = completion.usage.completion_tokens, completion.cost_usd
            self._budget.settle(reservation, tokens=tokens, cost_usd=cost_usd)
        self._recorder.model_failure = None
        return call.answered(completion)

    async def _ask(self, asked: ChatRequest) -> Completion:
        """Ask the model. Raises ModelError with the fault of who is to blame.

        A request can be made so that a sound server fails on it: a text that takes longer
        than any time-out, a schema that breaks its parser, a prompt that its filter
        refuses. Were that the validator's, an agent could have each run that goes badly
        repeated. So a failure is put to the test: a server that answers a small question
        before and after failing this request once more fails because of the request.
        """
        timeout_s = self._budget.limits.model_timeout_s
        message = ""
        for patience_s in (timeout_s, timeout_s / 2):
            try:
                return await self._client().complete(asked, timeout_s=patience_s)
            except ModelError as error:
                if error.fault is Fault.AGENT or not await self._is_sound(asked.model, error):
                    raise
                message = error.message
        raise ModelError(
            f"the server answers other requests, and this one not: {message}",
            code=faults.POISONOUS,
            fault=Fault.AGENT,
            remedy="ask for less at once: set max_tokens, shorten the prompt",
        )

    async def _is_sound(self, model: str, error: ModelError) -> bool:
        """Whether the model answers a small question although it failed with `error`."""
        if error.code in _NOT_DOUBTED:
            return False
        timeout_s = min(_SMALL_QUESTION_S, self._budget.limits.model_timeout_s)
        question = replace(_SMALL_QUESTION, model=model)
        try:
            await self._client().complete(question, timeout_s=timeout_s, tries=1)
        except ModelError:
            return False
        return True

    def _clamped(self, request: ChatRequest, reservation: Reservation) -> ChatRequest:
        """The request with its `max_tokens` cut to what the run has left.

        Where it states none, none is added: too large a number for a small model would
        be refused by its server, and blamed on the agent.
        """
        asked = request.max_tokens
        room = max(1, (self._budget.tokens_left() + reservation.tokens) // request.choices)
        if asked is None or asked <= room:
            return request
        params = dict(request.params)
        for name in ("max_tokens", "max_completion_tokens"):
            if name in params:
                params[name] = room
        return ChatRequest(request.model, request.messages, params)

    def _client(self) -> ModelClient:
        if self._models is None:
            raise ModelError(
                "this gateway has no models", code=faults.UNKNOWN_MODEL, fault=Fault.AGENT
            )
        return self._models


class _Call:
    """One model call on its way into the trace."""

    def __init__(self, recorder: Recorder, draft: Draft, body: Json) -> None:
        self._recorder = recorder
        self._draft = draft
        self._sent_ms: float | None = None
        self._params: JsonObject = dict(body) if isinstance(body, dict) else {}
        self._prompt: tuple[int, ...] = ()
        messages = self._params.get("messages")
        if isinstance(messages, list) and all(isinstance(m, dict) for m in messages):
            self._prompt = recorder.intern(cast("list[JsonObject]", messages))
            del self._params["messages"]

    def sent(self) -> None:
        """From here on the validator's queue and the provider take the time."""
        self._sent_ms = self._recorder.now_ms()

    def failed(self, status: int, error: ErrorInfo) -> None:
        """Record a call without an answer."""
        self._draft.llm(
            self._prompt, self._params, status, waited_ms=self._waited_ms(), error=error
        )

    def refused(self, error: ModelError) -> Response:
        """Record a failure and make its answer: 4xx for the agent's, 5xx for ours."""
        status = _STATUS.get(error.code, 400 if error.fault is Fault.AGENT else 502)
        self.failed(status, error.info)
        return answers.error_response(status, error.info)

    def answered(self, completion: Completion) -> Response:
        """Record a completion as it came and hand it on."""
        data, sent = strict_json.dump_as_sent(completion.body)
        body = cast("JsonObject", sent)
        self._draft.llm(
            self._prompt,
            self._params,
            200,
            waited_ms=self._waited_ms(),
            server=completion.route.server,
            standin=completion.route.standin,
            choices=cast("list[JsonObject]", body["choices"]),
            usage=completion.usage,
            cost_usd=completion.cost_usd,
            extras={k: v for k, v in body.items() if k not in ("choices", "usage")},
        )
        return Response(200, data)

    def _waited_ms(self) -> float:
        return 0.0 if self._sent_ms is None else round(self._recorder.now_ms() - self._sent_ms, 3)
