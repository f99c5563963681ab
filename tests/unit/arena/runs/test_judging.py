"""A judge that keeps failing is not asked for ever, and nothing it leaves is a number."""

from __future__ import annotations

from dataclasses import replace

from arena.runs.judging import GIVEN_UP, RunJudge
from arena.runs.record import RunSummary
from judge.settings import JudgeSettings
from judge.verdict import Unjudged
from sandbox.models import ModelClient, ModelRoute
from sandbox.trace import LlmEvent, Trace, Usage
from scoring.types import JsonObject
from tests.unit.arena import builders

NOWHERE = ModelRoute("judge", "nowhere", base_url="http://127.0.0.1:1/v1")
SETTINGS = JudgeSettings(models=("judge",), tries=1, backoff_s=0.001)


def _asked() -> Trace:
    """One completion that is long enough for a judge to be asked."""
    choice: JsonObject = {
        "index": 0,
        "message": {"role": "assistant", "content": "I think of mugs."},
    }
    event = LlmEvent(
        seq=0,
        started_ms=0.0,
        elapsed_ms=0.0,
        waited_ms=0.0,
        model="oracle",
        server="nowhere",
        standin=False,
        prompt=(0,),
        params={},
        status=200,
        choices=(choice,),
        usage=Usage(10, 40),
    )
    return Trace(messages=({"role": "user", "content": "a red mug"},), events=(event,))


async def test_a_judge_that_fails_again_and_again_is_not_asked_any_more() -> None:
    client = ModelClient([NOWHERE])
    judge = RunJudge(client, SETTINGS, "nowhere", give_up_after=3)
    run = replace(builders.record(builders.problem()), trace=_asked().to_json())
    try:
        found = [await judge.judged(run, "a red mug") for _ in range(4)]
    finally:
        await client.close()
    summaries = [RunSummary.of(record.encode().value) for record in found]
    for summary in summaries:
        assert (summary.closed, summary.success, summary.judged) == (True, True, False)
        assert summary.coefficient is summary.final_score is None
    reasons = [s.judgement.reason.code for s in summaries if isinstance(s.judgement, Unjudged)]
    assert reasons == ["judge.unjudged"] * 3 + [GIVEN_UP]
    assert found[-1].conditions.judge == judge.conditions


async def test_what_the_facts_decide_needs_no_model_and_names_no_stand_in() -> None:
    client = ModelClient([replace(NOWHERE, standin=True)])
    judge = RunJudge(client, SETTINGS, "nowhere")
    found = await judge.judged(builders.record(builders.problem()), "a red mug")
    await client.close()
    assert (found.coefficient, found.final_score) == (0.3875, 0.3875)
    assert found.conditions.standins == ()
