"""The judge: a trace goes in, a verdict with checked citations comes out, or *unjudged*.

It asks models through the house's one client, rotates over them, checks what they cite
against the trace and cuts a verdict down to what the facts allow. Whatever goes wrong on
the way ends in the next model and at last in `Unjudged`, never in a quality of zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from judge.facts import read_facts, stated_query
from judge.hearing import Hearing
from judge.panel import Panel
from judge.prompts import PROMPT_VERSION
from judge.settings import JudgeSettings
from judge.verdict import Judgement, Verdict
from sandbox.models import ModelClient
from sandbox.trace import Trace

FACTS_JUDGE = "facts"
"""Named as the judge where the facts alone decide."""


class Judge:
    """Judges traces with the models of the settings. Safe for many tasks of one event loop.

    judge = Judge(client, JudgeSettings(models=("name",)))
    verdict = await judge.judge(trace, query, dialogue)
    """

    def __init__(self, client: ModelClient, settings: JudgeSettings | None = None) -> None:
        """The client stays the caller's to close. Raises JudgeError (CALLER) for settings
        that name no model, one that the client does not know, or too few for the panel."""
        self._panel = Panel(client, settings or JudgeSettings())

    @property
    def models(self) -> tuple[str, ...]:
        """The judge models, in the order in which they are asked."""
        return self._panel.models

    @property
    def spent_usd(self) -> float:
        """What all answered calls have cost so far."""
        return self._panel.purse.spent

    async def judge(
        self, trace: Trace, query: str | None = None, dialogue: Sequence[Any] | None = None
    ) -> Judgement:
        """Judge one trace. `query` is the problem's; `dialogue` the agent's own account.

        Raises nothing for a trace, a provider or an answer, whatever it holds.
        """
        facts = await asyncio.to_thread(read_facts, trace, query, dialogue)
        if not facts.inference:
            # The lowest quality is all that the facts allow: nobody need be asked.
            judges = (FACTS_JUDGE,)
            return Verdict(facts.ceiling, facts.gate, (), judges, prompt_version=PROMPT_VERSION)
        hearing = Hearing(self._panel, trace, facts, stated_query(trace, query, dialogue))
        return await hearing.judgement()


def infrastructure_failure(judgements: Iterable[Judgement]) -> bool:
    """Whether the judging of a run failed as infrastructure: at least three calls were made
    and more than half of them failed (notes of the public validator).

    Only failures of providers count: an answer that a hostile trace talked a model into
    must not void a run.
    """
    calls = failed = 0
    for judgement in judgements:
        calls += judgement.calls
        failed += sum(code.startswith("model.") for code in judgement.failures)
    return calls >= 3 and failed * 2 > calls
