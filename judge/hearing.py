"""One trace before the judges: ask, check what is cited, ask again, count the votes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from judge.answers import AnswerError, read_answer
from judge.cache import Vote, cache_key
from judge.citations import CitationChecker, holds
from judge.exceptions import ErrorInfo, Fault
from judge.facts import Facts
from judge.panel import Bill, CostCeilingError, Panel
from judge.prompts import PROMPT_VERSION, correction, messages
from judge.rendering import Rendering, render
from judge.verdict import Judgement, Unjudged, Verdict
from sandbox.trace import Trace
from scoring.types import JsonObject

UNJUDGED = "judge.unjudged"
UNREADABLE = "judge.unreadable_answer"
FALSE_CITATION = "judge.false_citation"
MAX_REPEATED = 8_000
"""Characters of a model's own answer that it is shown again with a correction."""


class Hearing:
    """The judgement of one trace by one panel."""

    def __init__(self, panel: Panel, trace: Trace, facts: Facts, query: str) -> None:
        self._panel = panel
        self._trace = trace
        self._facts = facts
        self._query = query
        self._checker = CitationChecker(trace)
        self._renderings: dict[int, Rendering] = {}
        self._bill = Bill()
        self._tries = panel.settings.tries * panel.settings.panel

    async def judgement(self) -> Judgement:
        """Collect the votes. More than half of the panel has to give one."""
        votes: list[Vote] = []
        code = UNJUDGED
        try:
            while len(votes) < self._panel.settings.panel:
                voted = {vote.model for vote in votes}
                vote = self._cached(voted) or await self._next_vote(voted)
                if vote is None:
                    break
                votes.append(vote)
        except CostCeilingError as error:
            code, self._bill.last_words = error.code, str(error)
        if len(votes) * 2 > self._panel.settings.panel:
            return self._verdict(votes)
        return self._unjudged(code)

    def _verdict(self, votes: Sequence[Vote]) -> Verdict:
        """The median vote (of two in the middle the lower), cut down to what the facts allow."""
        ranked = sorted(votes, key=lambda v: v.gate.quality)
        median = ranked[(len(ranked) - 1) // 2]
        capped = median.gate.quality > self._facts.ceiling
        gate = self._facts.gate if capped else median.gate
        bill = self._bill
        return Verdict(
            quality=gate.quality,
            gate=gate,
            evidence=median.evidence,
            judges=tuple(vote.model for vote in votes),
            prompt_version=PROMPT_VERSION,
            standin=any(vote.standin for vote in votes),
            capped_from=median.gate.quality if capped else None,
            calls=bill.calls,
            prompt_tokens=bill.prompt_tokens,
            completion_tokens=bill.completion_tokens,
            cost_usd=bill.cost_usd,
            failures=tuple(bill.failures),
        )

    def _unjudged(self, code: str) -> Unjudged:
        bill = self._bill
        message = f"no verdict after {bill.calls} calls; the last: {bill.last_words}"
        return Unjudged(
            reason=ErrorInfo(code, Fault.VALIDATOR, message[:500]),
            calls=bill.calls,
            failures=tuple(bill.failures),
            prompt_tokens=bill.prompt_tokens,
            completion_tokens=bill.completion_tokens,
            cost_usd=bill.cost_usd,
        )

    def _cached(self, voted: set[str]) -> Vote | None:
        """A vote of an earlier judgement of the same text, its citations checked again."""
        for model in self._panel.models:
            if model not in voted:
                vote = self._panel.cache.get(self._key(model))
                if vote is not None and all(holds(self._trace, span) for span in vote.evidence):
                    return vote
        return None

    async def _next_vote(self, voted: set[str]) -> Vote | None:
        """Ask one model after the other. None when the tries are used up or nobody is left."""
        rotation = self._panel.rotation
        while self._bill.calls < self._tries:
            chosen = rotation.next(voted)
            if chosen is None:
                return None
            model, wait = chosen
            if wait > 0:
                await asyncio.sleep(wait)
            vote = await self._vote_of(model)
            if vote is not None:
                rotation.worked(model)
                self._panel.cache.put(self._key(model), vote)
                return vote
        return None

    async def _vote_of(self, model: str) -> Vote | None:
        """One model, asked again while its citations do not hold. None when it gave no vote."""
        conversation = list(messages(self._rendering(model)))
        corrections = self._panel.settings.corrections
        faults: tuple[str, ...] = ()
        for asked in range(1 + corrections):
            if asked and self._bill.calls >= self._tries:
                break
            completion = await self._panel.ask(model, conversation, self._bill)
            if completion is None:
                return None
            try:
                answer = read_answer(completion.text)
            except AnswerError as error:
                self._panel.rests(model, UNREADABLE, f"{model}: {error}", self._bill)
                return None
            checked = self._checker.check(answer.citations, answer.gate)
            if checked.holds:
                return Vote(model, answer.gate, checked.spans, completion.route.standin)
            if faults:
                self._bill.failed(FALSE_CITATION, f"{model}: {faults[0]}")
            faults = checked.faults
            conversation += _asked_again(completion.text, faults)
        self._panel.rests(model, FALSE_CITATION, f"{model}: {faults[0]}", self._bill)
        return None

    def _rendering(self, model: str) -> Rendering:
        budget = self._panel.rotation.budget(model, self._panel.settings.trace_tokens)
        if budget not in self._renderings:
            self._renderings[budget] = render(
                self._trace, self._facts, self._query, max_tokens=budget
            )
        return self._renderings[budget]

    def _key(self, model: str) -> str:
        content = self._rendering(model).content_hash
        settings = self._panel.settings
        return cache_key(content, PROMPT_VERSION, model, settings.max_tokens, settings.temperature)


def _asked_again(answer: str, faults: tuple[str, ...]) -> list[JsonObject]:
    return [
        {"role": "assistant", "content": answer[:MAX_REPEATED]},
        {"role": "user", "content": correction(faults)},
    ]
