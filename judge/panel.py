"""The models that judge, and how they are asked: one call at a time, each paid and noted.

Shared by all judgements of one `Judge`: rotation, money, slots and the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from judge.answers import ANSWER_SCHEMA
from judge.cache import VoteCache
from judge.exceptions import Fault, JudgeError
from judge.rendering import estimate_tokens
from judge.rotation import Rotation
from judge.settings import JudgeSettings
from sandbox.exceptions import ModelError
from sandbox.models import ChatRequest, Completion, ModelClient, faults
from sandbox.trace import Usage
from scoring.types import JsonObject

_log = structlog.get_logger(__name__)


class CostCeilingError(JudgeError):
    """The next call could cost more than is left."""

    code = "judge.cost_ceiling"


@dataclass(slots=True)
class Purse:
    """Money spent and promised. A call is promised at its highest price before it is made."""

    limit: float
    spent: float = 0.0
    promised: float = 0.0

    def promise(self, amount: float) -> None:
        """Set `amount` aside. Raises CostCeilingError when it is not there."""
        if amount > 0 and self.spent + self.promised + amount > self.limit:
            raise CostCeilingError(
                f"{self.spent:.4f} of {self.limit:g} USD are spent and the next call could pass it",
                remedy="raise ARENA_JUDGE_COST_LIMIT_USD",
            )
        self.promised += amount

    def settle(self, promised: float, spent: float) -> None:
        """Give back what was set aside, and count what was spent."""
        self.promised = max(0.0, self.promised - promised)
        self.spent += spent


@dataclass(slots=True)
class Bill:
    """What the calls of one judgement came to, and what went wrong on the way."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    failures: list[str] = field(default_factory=list)
    last_words: str = "no judge model is awake"

    def add(self, completion: Completion) -> None:
        """Count an answered call."""
        self.prompt_tokens += completion.usage.prompt_tokens
        self.completion_tokens += completion.usage.completion_tokens
        self.cost_usd += completion.cost_usd

    def failed(self, code: str, message: str) -> None:
        """Note a call that gave no verdict."""
        self.failures.append(code)
        self.last_words = message


class Panel:
    """The judge models of the settings behind one client."""

    def __init__(self, client: ModelClient, settings: JudgeSettings) -> None:
        """Raises JudgeError (CALLER) for settings that no panel can be made of."""
        models = tuple(dict.fromkeys(settings.models))
        if not models:
            raise _misconfigured("no judge model is named", "set ARENA_JUDGE_MODELS")
        unknown = [name for name in models if name not in client.names]
        if unknown:
            known = ", ".join(client.names) or "none"
            raise _misconfigured(
                f"there is no model {unknown[0][:100]!r} to judge with; there are: {known}",
                "name one of them in ARENA_JUDGE_MODELS, or add it to the table of models",
            )
        if len(models) < settings.panel:
            raise _misconfigured(
                f"a panel of {settings.panel} needs as many models, {len(models)} are named",
                "name more in ARENA_JUDGE_MODELS or set a smaller ARENA_JUDGE_PANEL",
            )
        self.models = models
        self.settings = settings
        self.rotation = Rotation(models, settings.backoff_s)
        self.cache = VoteCache(settings.cache_dir)
        self.purse = Purse(settings.cost_limit_usd)
        self._client = client
        self._slots = asyncio.Semaphore(settings.concurrency)

    async def ask(
        self, model: str, conversation: Sequence[JsonObject], bill: Bill
    ) -> Completion | None:
        """One call. None when it failed, which is noted. Raises CostCeilingError before it."""
        params = self._parameters(model)
        request = ChatRequest(model, tuple(conversation), params, accept_empty=False)
        promised = self._highest_price(model, conversation)
        self.purse.promise(promised)
        cost = 0.0
        bill.calls += 1
        try:
            async with self._slots:
                completion = await self._client.complete(
                    request, timeout_s=self.settings.timeout_s, tries=1
                )
            cost = completion.cost_usd
        except ModelError as error:
            shown = sum(estimate_tokens(str(m.get("content"))) for m in conversation[1:])
            self._note(model, error, shown, bill)
            return None
        finally:
            self.purse.settle(promised, cost)
        bill.add(completion)
        return completion

    def rests(self, model: str, code: str, message: str, bill: Bill) -> None:
        """Note that a model gave no verdict, and let it rest."""
        bill.failed(code, message)
        self.rotation.failed(model, code)
        _log.info("judge model gave no verdict", model=model, code=code)

    def _note(self, model: str, error: ModelError, shown: int, bill: Bill) -> None:
        """What a failed call says of the model: it rests, or needs a plainer or shorter request."""
        mended = (error.code == faults.BAD_REQUEST and self.rotation.refuse_shape(model)) or (
            error.code == faults.TOO_LONG and self.rotation.shrink(model, shown)
        )
        if mended:
            bill.failed(error.code, error.message)
        else:
            self.rests(model, error.code, error.message, bill)

    def _parameters(self, model: str) -> JsonObject:
        """Structured output first; without it, and without a temperature, where refused."""
        plainness = self.rotation.plainness(model)
        if plainness >= 2:
            return {"max_completion_tokens": self.settings.max_tokens}
        params: JsonObject = {
            "temperature": self.settings.temperature,
            "max_tokens": self.settings.max_tokens,
        }
        if plainness == 0:
            params["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": ANSWER_SCHEMA},
            }
        return params

    def _highest_price(self, model: str, conversation: Sequence[JsonObject]) -> float:
        tokens = sum(estimate_tokens(str(message.get("content"))) for message in conversation)
        usage = Usage(tokens, self.settings.max_tokens)
        return max(route.cost_usd(usage) for route in self._client.routes(model))


def _misconfigured(message: str, remedy: str) -> JudgeError:
    return JudgeError(message, code="judge.bad_settings", fault=Fault.CALLER, remedy=remedy)
