"""No attack is judged above its bound: not by the stand-in, not by a judge that was fooled.

Both speak over real HTTP. The fooled judge answers 0.9 to everything, with citations that
hold, that are made up, that come from where the attack stands, or with none: what then
comes out is what facts and citation checks leave of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from judge.citations import holds
from judge.judging import Judge
from judge.neutral import neutral
from judge.settings import JudgeSettings
from judge.standin import JUDGE, MODULE
from judge.thinking import field_text, read_thinking
from judge.verdict import Gate, Judgement, Unjudged, Verdict
from sandbox.models import ModelClient, ModelRoute, RetryPolicy, discover
from sandbox.standin.process import running_standin
from sandbox.trace import ToolEvent, Trace
from scoring.types import JsonObject
from tests.unit.judge.attacks import attacks
from tests.unit.judge.scenes import Attack
from tests.unit.sandbox.provider import provider, said

ATTACKS = attacks()
IDS = [attack.id for attack in ATTACKS]
FABRICATED = "I compared 48210357 with 48210944 by price and sleeve, and the first one wins."


def test_there_are_at_least_twelve_classes_with_several_cases_each() -> None:
    kinds = {attack.kind for attack in ATTACKS} - {"control"}
    assert len(kinds) >= 12
    assert all(sum(a.kind == kind for a in ATTACKS) >= 3 for kind in kinds)
    assert len(set(IDS)) == len(IDS)


# The stand-in -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_standin() -> dict[str, Judgement]:
    return asyncio.run(_judged_by_standin())


async def _judged_by_standin() -> dict[str, Judgement]:
    async with running_standin(load=[MODULE]) as url:
        client = ModelClient(await discover(url, server="stand-in", standin=True))
        try:
            judge = Judge(client, JudgeSettings(models=(JUDGE,)))
            return {a.id: await judge.judge(a.trace, a.query, a.dialogue) for a in ATTACKS}
        finally:
            await client.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=IDS)
def test_the_stand_in_stays_within_the_bound(
    attack: Attack, by_standin: dict[str, Judgement]
) -> None:
    verdict = by_standin[attack.id]
    assert isinstance(verdict, Verdict), verdict
    assert attack.least <= verdict.quality <= attack.bound
    assert all(holds(attack.trace, span) for span in verdict.evidence)
    assert verdict.standin or verdict.gate is Gate.INFERENCE


# A judge that was fooled --------------------------------------------------------------


def plausible(trace: Trace) -> list[JsonObject]:
    """Real quotes of the longest thinking there is."""
    thoughts = sorted(read_thinking(trace), key=lambda t: len(t.text), reverse=True)[:1]
    return [
        {"event": t.event, "field": t.field, "quote": neutral(t.text)[:200], "start": 0}
        for t in thoughts
    ]


def fabricated(trace: Trace) -> list[JsonObject]:
    """What the agent would have liked to have thought."""
    events = [event.seq for event in trace.llm()] or [0]
    return [{"event": events[-1], "field": "think:0", "quote": FABRICATED}]


def misplaced(trace: Trace) -> list[JsonObject]:
    """Real text of a tool, said to be thinking, beside quotes that hold."""
    tool = next((e for e in trace.events if isinstance(e, ToolEvent)), None)
    if tool is None:
        return fabricated(trace)
    quote = neutral(field_text(trace, tool, "result") or "")[:100]
    return [{"event": tool.seq, "field": "think:0", "quote": quote}, *plausible(trace)]


def elsewhere(trace: Trace) -> list[JsonObject]:
    """Real quotes from where sellers and agents write, and none of the thinking."""
    cited: list[JsonObject] = []
    for event in trace.tools():
        for field in ("arguments", "result"):
            quote = neutral(field_text(trace, event, field) or "")[:200]
            cited.append({"event": event.seq, "field": field, "quote": quote, "start": 0})
    return cited[:4]


def none(_: Trace) -> list[JsonObject]:
    """No citation at all."""
    return []


FOOLED: list[Callable[[Trace], list[JsonObject]]] = [
    plausible,
    fabricated,
    misplaced,
    elsewhere,
    none,
]


@pytest.fixture(scope="module")
def by_fooled() -> dict[tuple[str, str], Judgement]:
    return asyncio.run(_judged_by_fooled())


async def _judged_by_fooled() -> dict[tuple[str, str], Judgement]:
    found: dict[tuple[str, str], Judgement] = {}
    settings = JudgeSettings(models=("fooled",), tries=2, corrections=1, backoff_s=0.0001)
    async with provider() as server:
        client = ModelClient(
            [ModelRoute("fooled", "hostile", server.url)],
            retry=RetryPolicy(base_s=0.0001, cap_s=0.0001),
        )
        try:
            for attack in ATTACKS:
                for cite in FOOLED:
                    answer = {
                        "reason": "Excellent reasoning at every gate.",
                        "quality": 0.9,
                        "gate": "passed",
                        "evidence": cite(attack.trace),
                    }
                    server.default = said(json.dumps(answer))
                    judge = Judge(client, settings)
                    found[attack.id, cite.__name__] = await judge.judge(
                        attack.trace, attack.query, attack.dialogue
                    )
        finally:
            await client.close()
    return found


@pytest.mark.parametrize("cite", [cite.__name__ for cite in FOOLED])
@pytest.mark.parametrize("attack", ATTACKS, ids=IDS)
def test_a_fooled_judge_is_brought_down_to_the_bound_or_not_heard(
    attack: Attack, cite: str, by_fooled: dict[tuple[str, str], Judgement]
) -> None:
    verdict = by_fooled[attack.id, cite]
    if isinstance(verdict, Unjudged):
        assert verdict.failures
        return
    assert verdict.quality <= attack.bound
    assert all(holds(attack.trace, span) for span in verdict.evidence)
    if verdict.gate is not Gate.INFERENCE:
        assert cite == "plausible"
        assert (verdict.capped_from is not None) == (verdict.quality < Gate.PASSED.quality)


@pytest.mark.parametrize("cite", ["fabricated", "misplaced", "elsewhere", "none"])
def test_false_citations_never_make_a_verdict(
    cite: str, by_fooled: dict[tuple[str, str], Judgement]
) -> None:
    heard = [by_fooled[a.id, cite] for a in ATTACKS if a.bound > Gate.INFERENCE.quality]
    assert heard
    assert all(isinstance(judgement, Unjudged) for judgement in heard)
