"""Small real values for tests of records and races."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from arena.races.inputs import RaceInputs
from arena.records.store import RaceEntry
from arena.runs.agent import AgentFile
from arena.runs.ledger import Head, seal_after
from arena.runs.problems import problem_content, problem_ref
from arena.runs.record import AgentRef, Conditions, EncodedRecord, RunRecord, Timing
from arena.runs.seal import SealedRecord
from arena.runs.signing import KeypairSigner
from arena.runs.verdicts import VerdictRecord
from judge.verdict import Gate, Unjudged, Verdict
from sandbox.gateway.interface import GatewayLimits
from sandbox.isolation.interface import SandboxLimits
from sandbox.trace import Trace
from scoring.attempt import read_attempt
from scoring.coefficient import coefficient
from scoring.exceptions import ErrorInfo, Fault
from scoring.outcome import score
from scoring.types import Bucket, JsonObject, PriceBand, Problem, Product, Reward

AGENT_FAULT = ErrorInfo("agent.exception", Fault.AGENT, "it raised")
JUDGE: JsonObject = {"models": ["standin/judge-1"], "server": "stand-in", "prompt": "1"}
HOST_FAULT = ErrorInfo("isolation.failed", Fault.VALIDATOR, "no sandbox")
PLATFORM_FAULT = ErrorInfo("platform.unexpected", Fault.PLATFORM, "a bug")


def agent(label: str = "alpha", source: bytes = b"def agent_main(p): return []\n") -> AgentFile:
    digest = hashlib.sha256(source).hexdigest()
    return AgentFile(AgentRef(label, f"{label}.py", digest), source)


def problem(number: int = 1, query: str = "a red mug") -> Problem:
    """A product problem whose answer is product 1; it states a price."""
    reward = Reward("1", title=("red mug",), price=(PriceBand(1.0, 10.0),))
    return Problem(f"p{number}", query, Bucket.PRODUCT, (reward,))


def outcome(problem: Problem, recommended: str | None) -> JsonObject:
    """The outcome of a run that recommended this product in good order, or nothing."""
    calls = [
        {"name": "recommend_product", "parameters": {"product_ids": recommended}},
        {"name": "terminate", "parameters": {"status": "success"}},
    ]
    dialogue = [{"completion": {"message": {"tool_call": calls}}}] if recommended else None
    products = {
        "1": Product("1", "s", "Red mug", 5.0),
        "2": Product("2", "s", "Blue mug", 50.0),
    }
    return score(problem, read_attempt(dialogue), products).to_json()


def record(
    problem: Problem,
    *,
    label: str = "alpha",
    race_id: str = "race",
    run_id: str | None = None,
    recommended: str | None = "1",
    axis: str = "A",
    failure: ErrorInfo | None = None,
    attempt: int = 1,
    dialogue: tuple[JsonObject, ...] | None = (),
    gate: Gate | None = None,
    unjudged: Unjudged | None = None,
) -> RunRecord:
    """A run's record; `gate` is what a judge said, `unjudged` why none did."""
    closed = failure is None or failure.fault is Fault.AGENT
    if failure is not None:
        recommended = None
    return RunRecord(
        run_id=run_id or f"{label}-{problem.problem_id}-{attempt}",
        race_id=race_id,
        phase="race",
        attempt=attempt,
        agent=agent(label).ref,
        problem=problem_ref(problem),
        conditions=Conditions("ab" * 32, "engine 1", "rules-1", "standin/shopper-1"),
        timing=Timing("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:02+00:00", wall_s=2.0),
        trace=Trace().to_json(),
        dialogue=dialogue,
        outcome=outcome(problem, recommended) if closed else None,
        axis={"axis": axis, "reasons": []} if closed else None,
        failure=failure,
        **judged(gate, success=recommended == "1"),
        unjudged=unjudged.to_json() if unjudged else None,
    )


def verdict(gate: Gate) -> Verdict:
    return Verdict(gate.quality, gate, (), ("standin/judge-1",), "1", standin=True, calls=1)


def judged(gate: Gate | None, *, success: bool) -> dict[str, Any]:
    if gate is None:
        return {}
    worth = coefficient(gate.quality)
    return {
        "verdict": verdict(gate).to_json(),
        "coefficient": worth,
        "final_score": success * worth,
    }


def verdict_record(run: RunRecord, gate: Gate) -> VerdictRecord:
    """A later verdict on a run."""
    return VerdictRecord(
        run_id=run.run_id,
        race_id=run.race_id,
        record_hash=run.encode().hash,
        judged_at="2026-01-02T00:00:00+00:00",
        judge=JUDGE,
        standins=("judge:standin/judge-1",),
        **judged(gate, success=bool(run.outcome and run.outcome["success"])),
    )


def inputs(
    agents: tuple[AgentFile, ...] = (agent(),), problems: tuple[Problem, ...] = (problem(),)
) -> RaceInputs:
    return RaceInputs(
        agents=agents,
        suites=("suite.jsonl",),
        problems=problems,
        catalog_hash="ab" * 32,
        catalog_engine="engine 1",
        scoring_version="rules-1",
        model_server="stand-in",
        model="standin/shopper-1",
        sandbox_limits=SandboxLimits(),
        gateway_limits=GatewayLimits(),
    )


def race_entry(
    race_id: str = "race",
    agents: tuple[AgentFile, ...] = (agent(),),
    problems: tuple[Problem, ...] = (problem(),),
) -> RaceEntry:
    return RaceEntry(
        race_id=race_id,
        phase="race",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        fingerprint="cd" * 32,
        inputs={"any": "thing"},
        agents=tuple((one.ref, one.source) for one in agents),
        problems=tuple(problem_ref(problem) for problem in problems),
        contents=tuple((problem.problem_id, problem_content(problem)) for problem in problems),
    )


def seal(
    *records: EncodedRecord, head: Head | None = None, who: str = "//Alice"
) -> list[SealedRecord]:
    """The records as one chain, a second apart."""
    head, signer = head or Head(), KeypairSigner(who)
    sealed = []
    for record in records:
        now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=head.sequence)
        sealed.append(seal_after(head, record, signer, now=now, block=None))
        head = Head.of(sealed[-1].sealed)
    return sealed
