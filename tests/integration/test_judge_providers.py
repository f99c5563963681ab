"""What judge models do wrong, over real HTTP and both wires: the next model, or unjudged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judge.hearing import FALSE_CITATION, UNREADABLE
from judge.judging import Judge, infrastructure_failure
from judge.panel import CostCeilingError
from judge.settings import JudgeSettings
from judge.verdict import Gate, Unjudged, Verdict
from sandbox.models import ModelClient, ModelRoute, RetryPolicy, Wire
from sandbox.trace import Trace
from tests.unit.judge.scenes import QUERY, REASONED, VAGUE, shopping
from tests.unit.sandbox.provider import Provider, Reply, failed, provider

WIRES = [Wire.OPENAI, Wire.ANTHROPIC]
TRACE: Trace = shopping(REASONED).trace
THOUGHT = next(event.seq for event in TRACE.llm() if REASONED[:40] in json.dumps(event.choices))
CITED = {"event": THOUGHT, "field": "think:0", "quote": REASONED[:40]}
GOOD = json.dumps({"reason": "It compares.", "gate": "passed", "evidence": [CITED]})


def verdict_json(gate: str, **citation: object) -> str:
    return json.dumps({"reason": "r", "gate": gate, "evidence": [CITED | citation]})


def says(wire: Wire, text: str | None, finish: str = "stop") -> Reply:
    """An answer of this text on a wire, as its provider shapes it."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    if wire is Wire.OPENAI:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": finish,
        }
        body: object = {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                        "choices": [choice], "usage": usage}  # fmt: skip
    else:
        blocks = [] if text is None else [{"type": "text", "text": text}]
        body = {"id": "1", "type": "message", "role": "assistant", "model": "m",
                "content": blocks, "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 20}}  # fmt: skip
    return Reply(body=json.dumps(body).encode())


@dataclass
class Bench:
    """Judge models behind providers that misbehave, in the order in which they are asked."""

    wire: Wire
    providers: list[Provider] = field(default_factory=list)

    @asynccontextmanager
    async def judge(self, **settings: object) -> AsyncIterator[Judge]:
        names = [f"judge-{i}" for i in range(len(self.providers))]
        client = ModelClient(
            [
                ModelRoute(name, f"s-{name}", p.url, self.wire, usd_in=1.0, usd_out=1.0)
                for name, p in zip(names, self.providers, strict=True)
            ],
            retry=RetryPolicy(base_s=0.0001, cap_s=0.0001),
        )
        values: dict[str, object] = {"models": tuple(names), "backoff_s": 0.0001, "timeout_s": 30}
        try:
            yield Judge(client, JudgeSettings(**(values | settings)))
        finally:
            await client.close()


def slow() -> Reply:
    return Reply(wait=asyncio.Event().wait)


FAILURES: dict[str, tuple[Callable[[Wire], Reply], str]] = {
    "null content": (lambda w: says(w, None), "model.empty_answer"),
    "empty content": (lambda w: says(w, "  "), "model.empty_answer"),
    "cut JSON": (lambda w: says(w, GOOD[:-20], "length"), UNREADABLE),
    "prose": (lambda w: says(w, "This agent deserves the highest score."), UNREADABLE),
    "a gate that is none": (lambda w: says(w, verdict_json("excellent")), UNREADABLE),
    "two verdicts": (lambda w: says(w, GOOD + verdict_json("datum")), UNREADABLE),
    "a body cut off": (lambda w: Reply(body=b'{"choices": [' + b" " * 99, cut=True),
                       "model.broken_answer"),
    "a closed connection": (lambda w: Reply(drop=True), "model.broken_answer"),
    "a page of HTML": (lambda w: Reply(body=b"<html>busy</html>"), "model.broken_answer"),
    "429": (lambda w: failed(429, "slow down"), "model.rate_limited"),
    "500": (lambda w: failed(500), "model.unavailable"),
    "529": (lambda w: failed(529, "overloaded"), "model.unavailable"),
    "a dead key": (lambda w: failed(401, "invalid key"), "model.key_refused"),
    "no funds": (lambda w: failed(402), "model.no_funds"),
    "no such model": (lambda w: failed(404), "model.not_served"),
    "a slow model": (lambda w: slow(), "model.timeout"),
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("what", FAILURES)
async def test_a_model_that_fails_hands_over_to_the_next(what: str, wire: Wire) -> None:
    make, code = FAILURES[what]
    async with provider() as bad, provider(says(wire, GOOD)) as good:
        bad.default = make(wire)
        async with Bench(wire, [bad, good]).judge(
            timeout_s=0.3 if what == "a slow model" else 30
        ) as judge:
            verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.quality, verdict.gate, verdict.judges) == (0.9, Gate.PASSED, ("judge-1",))
    assert (verdict.calls, verdict.failures) == (2, (code,))
    assert verdict.evidence[0].quote == REASONED[:40]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("what", [name for name in FAILURES if name != "a slow model"])
async def test_when_all_models_fail_the_trace_is_unjudged_and_no_zero(
    what: str, wire: Wire
) -> None:
    make, code = FAILURES[what]
    async with provider() as a, provider() as b:
        a.default = b.default = make(wire)
        async with Bench(wire, [a, b]).judge(tries=5) as judge:
            unjudged = await judge.judge(TRACE, QUERY)
    assert isinstance(unjudged, Unjudged)
    assert unjudged.reason.fault.value == "validator"
    assert unjudged.calls == len(unjudged.failures) <= 5
    assert set(unjudged.failures) == {code}
    assert a.requests
    assert b.requests
    assert infrastructure_failure([unjudged]) == (code != UNREADABLE and unjudged.calls >= 3)


WRAPPED = {
    "talk around it": f"Sure! Here is my verdict:\n\n{GOOD}\n\nI hope this helps.",
    "a fence": f"```json\n{GOOD}\n```",
    "a thought before it": f"<think>perhaps {{'gate': 1}} ...</think>\n{GOOD}",
    "the same verdict twice": f"{GOOD}\n{GOOD}",
    "a quality instead of a gate": json.dumps({"quality": 0.9, "evidence": [CITED]}),
    "wrong offsets": verdict_json("passed", start=77, end=99),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("what", WRAPPED)
async def test_a_verdict_is_read_whatever_stands_around_it(what: str, wire: Wire) -> None:
    async with provider(says(wire, WRAPPED[what])) as p, Bench(wire, [p]).judge() as judge:
        verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.gate, verdict.calls, verdict.failures) == (Gate.PASSED, 1, ())


@pytest.mark.parametrize("wire", WIRES)
async def test_citations_that_do_not_hold_are_asked_for_again_with_the_reason(wire: Wire) -> None:
    false = verdict_json("passed", quote="The results prove that this agent is superb.")
    async with (
        provider(says(wire, false), says(wire, GOOD)) as p,
        Bench(wire, [p]).judge() as judge,
    ):
        verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.quality, verdict.calls, verdict.prompt_tokens) == (0.9, 2, 200)
    assert verdict.cost_usd == pytest.approx(240e-6)
    assert "does not stand there" in json.dumps(p.requests[1])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "citation",
    [
        {"quote": "a sentence that nobody wrote"},
        {"event": 999},
        {"field": "think:7"},
        {"field": "prompt"},
        {"field": "result"},
    ],
)
async def test_false_citations_end_with_the_next_model(
    citation: dict[str, object], wire: Wire
) -> None:
    async with provider() as bad, provider(says(wire, GOOD)) as good:
        bad.default = says(wire, verdict_json("passed", **citation))
        async with Bench(wire, [bad, good]).judge(corrections=2) as judge:
            verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.judges, len(bad.requests)) == (("judge-1",), 3)
    assert verdict.failures == (FALSE_CITATION,) * 3


async def test_a_verdict_above_the_facts_is_capped_and_says_so() -> None:
    vague = shopping(VAGUE).trace
    seq = next(e.seq for e in vague.llm() if VAGUE[:30] in json.dumps(e.choices))
    fooled = verdict_json("passed", event=seq, quote=VAGUE[:30])
    async with (
        provider(says(Wire.OPENAI, fooled)) as p,
        Bench(Wire.OPENAI, [p]).judge() as judge,
    ):
        verdict = await judge.judge(vague, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.quality, verdict.gate, verdict.capped_from) == (0.5, Gate.DATUM, 0.9)


async def test_a_dead_key_is_not_tried_again_for_the_next_trace() -> None:
    async with provider() as dead, provider() as good:
        dead.default, good.default = failed(401), says(Wire.OPENAI, GOOD)
        async with Bench(Wire.OPENAI, [dead, good]).judge() as judge:
            for _ in range(4):
                assert isinstance(await judge.judge(TRACE, QUERY), Verdict)
    assert (len(dead.requests), len(good.requests)) == (1, 4)


async def test_a_storm_of_429_passes() -> None:
    async with provider() as p:
        p.replies = [failed(429, retry_after="0") for _ in range(7)]
        p.default = says(Wire.OPENAI, GOOD)
        async with Bench(Wire.OPENAI, [p]).judge(tries=8) as judge:
            verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert verdict.failures == ("model.rate_limited",) * 7


@pytest.mark.parametrize("wire", WIRES)
async def test_the_request_gets_plainer_where_its_shape_is_refused(wire: Wire) -> None:
    async with provider() as p:
        p.replies = [failed(400, "response_format is not supported"), failed(400, "temperature")]
        p.default = says(wire, GOOD)
        async with Bench(wire, [p]).judge() as judge:
            first, second = [await judge.judge(TRACE, QUERY) for _ in range(2)]
    assert isinstance(first, Verdict)
    assert isinstance(second, Verdict)
    structured = "response_format" if wire is Wire.OPENAI else "output_config"
    assert [structured in r for r in p.requests] == [True, False, False, False]
    assert ["temperature" in r for r in p.requests] == [True, True, False, False]
    assert second.failures == ()


async def test_a_trace_too_long_for_a_model_is_shown_shorter() -> None:
    async with provider(failed(400, "maximum context length is 8192 tokens")) as p:
        p.default = says(Wire.OPENAI, GOOD)
        async with Bench(Wire.OPENAI, [p]).judge(trace_tokens=4000) as judge:
            verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    sizes = [len(json.dumps(r)) for r in p.requests]
    assert sizes[1] < sizes[0]


async def test_a_trace_without_inference_asks_nobody() -> None:
    async with provider() as p, Bench(Wire.OPENAI, [p]).judge() as judge:
        verdict = await judge.judge(Trace(), QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.quality, verdict.gate, p.requests) == (0.1, Gate.INFERENCE, [])


async def test_a_panel_decides_by_its_median() -> None:
    low, mid = verdict_json("datum"), verdict_json("comparison")
    async with (
        provider(says(Wire.OPENAI, GOOD)) as a,
        provider(says(Wire.OPENAI, low)) as b,
        provider(says(Wire.OPENAI, mid)) as c,
        Bench(Wire.OPENAI, [a, b, c]).judge(panel=3) as judge,
    ):
        verdict = await judge.judge(TRACE, QUERY)
    assert isinstance(verdict, Verdict)
    assert (verdict.quality, verdict.calls) == (0.7, 3)
    assert sorted(verdict.judges) == ["judge-0", "judge-1", "judge-2"]


async def test_most_of_a_panel_must_answer() -> None:
    async with provider() as a, provider() as b, provider(says(Wire.OPENAI, GOOD)) as c:
        a.default = b.default = failed(401)
        async with Bench(Wire.OPENAI, [a, b, c]).judge(panel=3) as judge:
            unjudged = await judge.judge(TRACE, QUERY)
    assert isinstance(unjudged, Unjudged)
    assert unjudged.completion_tokens == 20


async def test_the_cost_ceiling_stops_the_next_call() -> None:
    async with provider() as p:
        p.default = says(Wire.OPENAI, GOOD)
        async with Bench(Wire.OPENAI, [p]).judge(cost_limit_usd=0.0001) as judge:
            unjudged = await judge.judge(TRACE, QUERY)
    assert isinstance(unjudged, Unjudged)
    assert (unjudged.reason.code, p.requests) == (CostCeilingError.code, [])


async def test_a_cached_verdict_costs_no_call(tmp_path: Path) -> None:
    async with provider() as p:
        p.default = says(Wire.OPENAI, GOOD)
        async with Bench(Wire.OPENAI, [p]).judge(cache_dir=tmp_path) as judge:
            first = await judge.judge(TRACE, QUERY)
        async with Bench(Wire.OPENAI, [p]).judge(cache_dir=tmp_path) as judge:
            again = await judge.judge(TRACE, QUERY)
            other = await judge.judge(TRACE, QUERY + " in blue")
    assert isinstance(first, Verdict)
    assert isinstance(again, Verdict)
    assert isinstance(other, Verdict)
    assert (first.calls, again.calls, other.calls) == (1, 0, 1)
    assert (again.quality, again.evidence) == (first.quality, first.evidence)
    assert (again.cost_usd, len(p.requests)) == (0.0, 2)


async def test_a_broken_cache_file_is_asked_anew(tmp_path: Path) -> None:
    async with provider() as p:
        p.default = says(Wire.OPENAI, GOOD)
        for _ in range(2):
            async with Bench(Wire.OPENAI, [p]).judge(cache_dir=tmp_path) as judge:
                verdict = await judge.judge(TRACE, QUERY)
            assert isinstance(verdict, Verdict)
            cut_off(tmp_path)
    assert len(p.requests) == 2


def cut_off(directory: Path) -> None:
    files = [file for file in directory.rglob("*") if file.is_file()]
    assert [file.suffix for file in files] == [".json"]
    for file in files:
        file.write_bytes(file.read_bytes()[:30])
