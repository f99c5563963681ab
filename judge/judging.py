"""The judge: a trace goes in, a verdict with checked citations comes out, or *unjudged*.

It asks models through the house's one client, rotates over them, checks what they cite
against the trace and cuts a verdict down to what the facts allow. Whatever goes wrong on
the way ends in the next model and at last in `Unjudged`, never in a quality of zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from judge.answers import ANSWER_SCHEMA, AnswerError, read_answer
from judge.cache import Vote, VoteCache, cache_key
from judge.citations import CitationChecker, holds, needs_thinking
from judge.exceptions import ErrorInfo, Fault, JudgeError
from judge.facts import Facts, read_facts, stated_query
from judge.prompts import PROMPT_VERSION, correction, messages
from judge.rendering import Rendering, estimate_tokens, render
from judge.rotation import Rotation
from judge.settings import JudgeSettings
from judge.verdict import Judgement, Unjudged, Verdict
from sandbox.exceptions import ModelError
from sandbox.models import ChatRequest, Completion, ModelClient, faults
from sandbox.trace import Trace, Usage
from scoring.types import JsonObject

FACTS_JUDGE = "facts"
"""Named as the judge where the facts alone decide."""
UNJUDGED = "judge.unjudged"
COST_CEILING = "judge.cost_ceiling"
UNREADABLE = "judge.unreadable_answer"
FALSE_CITATION = "judge.false_citation"
_log = structlog.get_logger(__name__)


def infrastructure_failure(judgements: Iterable[Judgement]) -> bool:
    """Whether a run's judging failed as infrastructure: at least three calls were made and
    more than half of them failed (notes of the public validator).

    Only failures of providers count. An answer that a hostile trace talked a model into
    must not void a run.
    """
    calls = failed = 0
    for judgement in judgements:
        calls += judgement.calls
        failed += sum(code.startswith("model.") for code in judgement.failures)
    return calls >= 3 and failed * 2 > calls


class Judge:
    """Judges traces with the models of the settings. Safe for many tasks of one event loop."""

    def __init__(self, client: ModelClient, settings: JudgeSettings | None = None) -> None:
        """Raises JudgeError (CALLER) for settings that no panel can be made of."""
        self._client = client
        self._settings = settings or JudgeSettings()
        models = tuple(dict.fromkeys(self._settings.models))
        if not models:
            raise _misconfigured("no judge model is named", "set ARENA_JUDGE_MODELS")
        if len(models) < self._settings.panel:
            raise _misconfigured(
                f"a panel of {self._settings.panel} needs as many models, {len(models)} are named",
                "name more in ARENA_JUDGE_MODELS or set a smaller ARENA_JUDGE_PANEL",
            )
        self._models = models
        self._rotation = Rotation(models, self._settings.backoff_s)
        self._cache = VoteCache(self._settings.cache_dir)
        self._purse = _Purse(self._settings.cost_limit_usd)
        self._slots = asyncio.Semaphore(self._settings.concurrency)

    @property
    def models(self) -> tuple[str, ...]:
        """The judge models, in the order in which they are asked."""
        return self._models

    @property
    def spent_usd(self) -> float:
        """What all answered calls have cost so far."""
        return self._purse.spent

    async def judge(
        self, trace: Trace, query: str | None = None, dialogue: Sequence[Any] | None = None
    ) -> Judgement:
        """Judge one trace. `query` is the problem's; `dialogue` the agent's own account.

        Raises nothing for a trace, a provider or an answer, whatever it holds.
        """
        facts = await asyncio.to_thread(read_facts, trace, query, dialogue)
        if not facts.inference:
            # The lowest quality is also the highest that the facts allow: nobody need be asked.
            return Verdict(
                facts.ceiling, facts.gate, (), (FACTS_JUDGE,), prompt_version=PROMPT_VERSION
            )
        session = _Session(self, trace, facts, stated_query(trace, query, dialogue))
        return await session.run()


@dataclass(slots=True)
class _Purse:
    """Money spent and promised. A call is promised at its highest price before it is made."""

    limit: float
    spent: float = 0.0
    promised: float = 0.0

    def promise(self, amount: float) -> bool:
        if self.spent + self.promised + amount > self.limit and amount > 0:
            return False
        self.promised += amount
        return True

    def settle(self, promised: float, spent: float) -> None:
        self.promised = max(0.0, self.promised - promised)
        self.spent += spent


@dataclass(slots=True)
class _Bill:
    """What the calls of one judgement came to."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, completion: Completion) -> None:
        self.usage = Usage(
            self.usage.prompt_tokens + completion.usage.prompt_tokens,
            self.usage.completion_tokens + completion.usage.completion_tokens,
        )
        self.cost_usd += completion.cost_usd


class _CostCeilingError(Exception):
    """The next call could cost more than is left."""


class _Session:
    """One trace before the judges."""

    def __init__(self, judge: Judge, trace: Trace, facts: Facts, query: str) -> None:
        self._judge = judge
        self._settings = judge._settings
        self._rotation = judge._rotation
        self._trace = trace
        self._facts = facts
        self._query = query
        self._checker = CitationChecker(trace)
        self._renderings: dict[int, Rendering] = {}
        self._bill = _Bill()
        self._said = ""

    async def run(self) -> Judgement:
        votes: list[Vote] = []
        tries = self._settings.tries * self._settings.panel
        try:
            while len(votes) < self._settings.panel and self._bill.calls < tries:
                voted = {vote.model for vote in votes}
                vote = self._cached(voted) or await self._next_vote(voted)
                if vote is None:
                    break
                if vote.model not in voted:
                    votes.append(vote)
        except _CostCeilingError:
            self._said = "the cost ceiling is reached"
            if not votes:
                return self._unjudged(COST_CEILING, "raise ARENA_JUDGE_COST_LIMIT_USD")
        if len(votes) * 2 <= self._settings.panel:
            return self._unjudged(UNJUDGED)
        return self._verdict(votes)

    def _verdict(self, votes: list[Vote]) -> Verdict:
        """The median vote, cut down to the ceiling of the facts."""
        ranked = sorted(votes, key=lambda v: v.gate.quality)
        median = ranked[(len(ranked) - 1) // 2]
        capped = median.gate.quality > self._facts.ceiling
        gate = self._facts.gate if capped else median.gate
        return Verdict(
            quality=gate.quality,
            gate=gate,
            evidence=median.evidence if needs_thinking(gate) or median.evidence else (),
            judges=tuple(vote.model for vote in votes),
            prompt_version=PROMPT_VERSION,
            standin=any(vote.standin for vote in votes),
            capped_from=median.gate.quality if capped else None,
            calls=self._bill.calls,
            prompt_tokens=self._bill.usage.prompt_tokens,
            completion_tokens=self._bill.usage.completion_tokens,
            cost_usd=self._bill.cost_usd,
            failures=tuple(self._bill.failures),
        )

    def _unjudged(self, code: str, remedy: str | None = None) -> Unjudged:
        what = self._said or "no judge model is awake"
        message = f"no verdict after {self._bill.calls} calls: {what}"
        if remedy:
            message += f" ({remedy})"
        return Unjudged(
            reason=ErrorInfo(code, Fault.VALIDATOR, message[:500]),
            calls=self._bill.calls,
            failures=tuple(self._bill.failures),
            prompt_tokens=self._bill.usage.prompt_tokens,
            completion_tokens=self._bill.usage.completion_tokens,
            cost_usd=self._bill.cost_usd,
        )

    def _cached(self, voted: set[str]) -> Vote | None:
        for model in self._judge.models:
            if model in voted:
                continue
            vote = self._judge._cache.get(self._key(model))
            if vote is not None and all(holds(self._trace, span) for span in vote.evidence):
                return vote
        return None

    async def _next_vote(self, voted: set[str]) -> Vote | None:
        """Ask the next model. None when nobody is left to ask; a failed try returns a vote
        of nobody, by going on to the following model until the tries are used up."""
        while self._bill.calls < self._settings.tries * self._settings.panel:
            chosen = self._rotation.next(voted)
            if chosen is None:
                return None
            model, wait = chosen
            if wait > 0:
                await asyncio.sleep(wait)
            vote = await self._ask_for_vote(model)
            if vote is not None:
                self._rotation.worked(model)
                self._judge._cache.put(self._key(model), vote)
                return vote
        return None

    async def _ask_for_vote(self, model: str) -> Vote | None:
        """One model, asked again while its citations do not hold. None when it gave no verdict."""
        conversation = list(messages(self._rendering(model)))
        for _ in range(1 + self._settings.corrections):
            completion = await self._ask(model, conversation)
            if completion is None:
                return None
            try:
                answer = read_answer(completion.text)
            except AnswerError as error:
                self._failed(model, UNREADABLE, f"{model}: {error}")
                return None
            checked = self._checker.check(answer.citations, answer.gate)
            if checked.holds:
                return Vote(model, answer.gate, checked.spans, completion.route.standin)
            self._bill.failures.append(FALSE_CITATION)
            self._said = f"{model}: {checked.faults[0]}"
            conversation += _again(completion.text, checked.faults)
        self._rotation.failed(model, FALSE_CITATION)
        return None

    async def _ask(self, model: str, conversation: Sequence[JsonObject]) -> Completion | None:
        """One call. None when it failed, which is noted. Raises _CostCeilingError."""
        judge, settings = self._judge, self._settings
        request = ChatRequest(
            model, tuple(conversation), self._parameters(model), accept_empty=False
        )
        promised = self._highest_price(model, conversation)
        if not judge._purse.promise(promised):
            raise _CostCeilingError
        cost = 0.0
        self._bill.calls += 1
        try:
            async with judge._slots:
                completion = await judge._client.complete(
                    request, timeout_s=settings.timeout_s, tries=1
                )
            cost = completion.cost_usd
        except ModelError as error:
            self._note(model, error)
            return None
        finally:
            judge._purse.settle(promised, cost)
        self._bill.add(completion)
        return completion

    def _parameters(self, model: str) -> JsonObject:
        plainness = self._rotation.plainness(model)
        if plainness >= 2:
            return {"max_completion_tokens": self._settings.max_tokens}
        params: JsonObject = {
            "temperature": self._settings.temperature,
            "max_tokens": self._settings.max_tokens,
        }
        if plainness == 0:
            params["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": ANSWER_SCHEMA},
            }
        return params

    def _note(self, model: str, error: ModelError) -> None:
        """What a failed call says about the model: a rest, a plainer or a shorter request."""
        mended = (error.code == faults.BAD_REQUEST and self._rotation.refuse_shape(model)) or (
            error.code == faults.TOO_LONG and self._rotation.shrink(model)
        )
        if mended:
            self._bill.failures.append(error.code)
            self._said = error.message
        else:
            self._failed(model, error.code, error.message)

    def _failed(self, model: str, code: str, message: str) -> None:
        self._bill.failures.append(code)
        self._said = message
        self._rotation.failed(model, code)
        _log.info("judge model gave no verdict", model=model, code=code)

    def _highest_price(self, model: str, conversation: Sequence[JsonObject]) -> float:
        try:
            routes = self._judge._client.routes(model)
        except ModelError:
            return 0.0
        tokens = sum(estimate_tokens(str(m.get("content"))) for m in conversation)
        usage = Usage(tokens, self._settings.max_tokens)
        return max(route.cost_usd(usage) for route in routes)

    def _rendering(self, model: str) -> Rendering:
        budget = self._rotation.budget(model, self._settings.trace_tokens)
        if budget not in self._renderings:
            self._renderings[budget] = render(
                self._trace, self._facts, self._query, max_tokens=budget
            )
        return self._renderings[budget]

    def _key(self, model: str) -> str:
        content = self._rendering(model).content_hash
        settings = self._settings
        return cache_key(content, PROMPT_VERSION, model, settings.max_tokens, settings.temperature)


def _again(text: str, faults_: tuple[str, ...]) -> list[JsonObject]:
    return [
        {"role": "assistant", "content": text[:8000]},
        {"role": "user", "content": correction(faults_)},
    ]


def _misconfigured(message: str, remedy: str) -> JudgeError:
    return JudgeError(message, code="judge.bad_settings", fault=Fault.CALLER, remedy=remedy)
