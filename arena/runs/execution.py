"""One run: gateway session, sandbox, outcome, axis, record.

Whose fault a failure was is decided here, and it decides what the run means: an
agent's failure is an outcome like any other; one of the host or the model provider
says nothing of the agent, so the problem stays open.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

import structlog

from arena.runs.agent import AgentFile
from arena.runs.judging import RunJudge
from arena.runs.patience import asked_for_s
from arena.runs.problems import problem_ref
from arena.runs.record import Conditions, RunRecord, Timing
from arena.runs.rescoring import as_stored, rejudge_axis, rescore
from sandbox.catalog.interface import Catalog
from sandbox.exceptions import ArenaError, ErrorInfo, Fault
from sandbox.gateway.interface import Gateway, GatewayLimits
from sandbox.isolation.interface import (
    AGENT_TIMEOUT,
    HOST_HARD_STOP,
    Isolation,
    SandboxLimits,
    SandboxResult,
    SandboxSpec,
)
from sandbox.trace import Trace
from scoring.outcome import scoring_pipeline_version
from scoring.titles import LexicalTitles, TitleSimilarity
from scoring.types import Json, JsonObject, Problem

_log = structlog.get_logger(__name__)

UNEXPECTED = "platform.unexpected"
"""Code of a failure in this program itself."""
_GRACE_S = 60.0
"""How much longer than its hard limit a sandbox may take to be killed and removed."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything a run needs besides agent and problem. Shared by all runs at once.

    `model` is the name that agents find in SANDBOX_MODEL. Without a `judge` runs stay
    unjudged.
    """

    catalog: Catalog
    gateway: Gateway
    isolation: Isolation
    titles: TitleSimilarity
    model: str
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits)
    gateway_limits: GatewayLimits = field(default_factory=GatewayLimits)
    judge: RunJudge | None = None

    @property
    def scoring_version(self) -> str:
        """What scores: the rules, and what compares titles."""
        return scoring_pipeline_version(self.titles)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came out of a run before anything is judged."""

    trace: Trace
    result: SandboxResult | None
    failure: ErrorInfo | None
    notes: tuple[ErrorInfo, ...] = ()


async def execute(
    world: World,
    agent: AgentFile,
    problem: Problem,
    *,
    race_id: str | None = None,
    phase: str = "race",
    attempt: int = 1,
) -> RunRecord:
    """Run `agent` on `problem` once and make its record.

    Raises nothing but what the event loop does (cancellation): every failure, also one
    of this program, becomes a record with its fault.
    """
    run_id = uuid.uuid4().hex
    started_at, started = datetime.now(UTC), time.monotonic()
    seen = await _run(world, agent, problem, run_id)
    result = seen.result
    record = RunRecord(
        run_id=run_id,
        race_id=race_id,
        phase=phase,
        attempt=attempt,
        agent=agent.ref,
        problem=problem_ref(problem),
        conditions=_conditions(world, seen.trace),
        timing=Timing(
            started_at=started_at.isoformat(),
            finished_at=datetime.now(UTC).isoformat(),
            wall_s=time.monotonic() - started,
            excused_s=result.excused_s if result else 0.0,
            cpu_s=result.cpu_s if result else None,
            peak_memory_bytes=result.peak_memory_bytes if result else None,
        ),
        trace=seen.trace.to_json(),
        dialogue=result.dialogue if result else None,
        outcome=None,
        axis=None,
        failure=seen.failure,
        notes=seen.notes,
        log_tail=result.log if result else "",
    )
    if not record.closed:
        return record
    return await asyncio.to_thread(_judged, world, agent, problem, seen, record)


async def _run(world: World, agent: AgentFile, problem: Problem, run_id: str) -> Seen:
    session = None
    result: SandboxResult | None = None
    failure: ErrorInfo | None = None
    try:
        async with world.gateway.session(run_id, limits=world.gateway_limits) as session:
            spec = SandboxSpec(
                run_id=run_id,
                agent_source=agent.source,
                problem=problem.for_agent(),
                gateway_socket=session.socket,
                limits=world.sandbox_limits,
                env={"SANDBOX_MODEL": world.model},
                excused_s=session.excused_s,
            )
            async with asyncio.timeout(world.sandbox_limits.hard_wall_s + _GRACE_S):
                result = await world.isolation.run(spec)
    except Exception as error:  # noqa: BLE001 - one run's failure never stops a race
        failure = _info(error)
    trace = session.trace() if session else Trace()
    causes = [
        error
        for error in (
            failure,
            session.infrastructure_error() if session else None,
            _hard_stop(result, trace) if result else None,
        )
        if error is not None
    ]
    # What spoilt the run for the agent comes before what the agent then did.
    causes.sort(key=lambda cause: cause.fault is Fault.AGENT)
    return Seen(trace, result, causes[0] if causes else None, tuple(causes[1:]))


def _hard_stop(result: SandboxResult, trace: Trace) -> ErrorInfo | None:
    """The error of a result; a hard stop that the agent's own calls led to is its own."""
    error = result.error
    if error is None or error.code != HOST_HARD_STOP or asked_for_s(trace) < result.excused_s:
        return error
    return ErrorInfo(
        AGENT_TIMEOUT,
        Fault.AGENT,
        f"no answer in {result.wall_s:.0f} s, of which its model calls took "
        f"{result.excused_s:.0f} s at a sound provider's pace",
    )


def _judged(
    world: World, agent: AgentFile, problem: Problem, seen: Seen, record: RunRecord
) -> RunRecord:
    """The record with its outcome and axis; open, with our fault, if scoring failed."""
    try:
        # As the record holds them: whoever checks it decides from the same.
        told: Json = None if record.dialogue is None else [*record.dialogue]
        dialogue = cast("list[Json] | None", as_stored(told))
        trace = Trace.from_json(cast("JsonObject", as_stored(record.trace)))
        completed = seen.failure is None
        outcome = rescore(
            problem, trace, dialogue, world.catalog, world.titles, completed=completed
        )
    except Exception as error:  # noqa: BLE001 - nor does a bug in judging
        notes = (seen.failure, *seen.notes) if seen.failure else seen.notes
        return replace(record, failure=_info(error), notes=notes)
    record = replace(record, outcome=outcome.to_json())
    try:
        axis = rejudge_axis(problem, trace, dialogue, agent.source)
    except Exception as error:  # noqa: BLE001
        # The outcome stands: text that the axis stumbles over must not buy another try.
        # The axis is decided from the trace, which is kept, and can be made up for.
        return replace(record, notes=(*seen.notes, _info(error)))
    return replace(record, axis=axis.to_json())


def _conditions(world: World, trace: Trace) -> Conditions:
    standins = {f"model:{event.model}" for event in trace.llm() if event.standin}
    if isinstance(world.titles, LexicalTitles):
        standins.add(f"title:{world.titles.name}")
    return Conditions(
        catalog_hash=world.catalog.content_hash,
        catalog_engine=world.catalog.engine,
        scoring_version=world.scoring_version,
        model=world.model,
        standins=tuple(sorted(standins)),
        environment=world.isolation.environment(),
    )


def _info(error: Exception) -> ErrorInfo:
    """Any exception as data. What is not one of ours is never the agent's fault."""
    if isinstance(error, ArenaError):
        return error.info
    if isinstance(error, TimeoutError):
        return ErrorInfo(
            HOST_HARD_STOP, Fault.VALIDATOR, "the sandbox could not be stopped in time"
        )
    if isinstance(error, OSError):
        return ErrorInfo("validator.host_failed", Fault.VALIDATOR, str(error))
    _log.error("a run failed unexpectedly", exc_info=error)
    return ErrorInfo(UNEXPECTED, Fault.PLATFORM, f"{type(error).__name__}: {error}")
