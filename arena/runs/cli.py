"""`arena agent`: try an agent locally, without a database."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated, cast

import structlog
import typer

from arena.exceptions import ArenaError, Fault
from arena.problems.suite import check_against, load_suite
from arena.problems.titles import DEFAULT_MODEL, TitleMode
from arena.runs.agent import AgentFile, read_agents
from arena.runs.attempts import RetryPolicy, run_until_closed
from arena.runs.execution import World
from arena.runs.opening import SandboxKind, WorldOptions, open_world
from arena.runs.options import JudgeModels, JudgeOption
from arena.runs.record import EncodedRecord, RunRecord
from arena.settings import load_settings
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, JsonObject, Problem

_LOG_LINES = 40

app = typer.Typer(
    help="Try an agent locally.", rich_markup_mode=None, no_args_is_help=True, add_completion=False
)


@app.callback()
def _group() -> None:
    """Try an agent locally."""


@app.command()
def run(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="FILE", help="Your agent, or a shipped name.")],
    suite: Annotated[Path, typer.Option(help="A suite of problems.")],
    catalog: Annotated[Path, typer.Option(help="A product file, or a built index.")],
    problem: Annotated[
        list[str] | None, typer.Option(help="Only this problem; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="ID", help="Print this problem's full record as JSON.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Show the agent's own log always.")] = False,
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server; without one, the stand-in.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that the agent is told of.")] = None,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    title: Annotated[TitleMode, typer.Option(help="How titles are compared.")] = TitleMode.NONE,
    title_model: Annotated[
        str, typer.Option(help="For --title embedding: a sentence-transformers name or folder.")
    ] = DEFAULT_MODEL,
    judge: JudgeOption = None,
    judge_model: JudgeModels = None,
    json: JsonFile = None,
) -> None:
    """Run your agent on a suite, in the sandbox that validators use; one line a problem.

    Exit code 0 means that every problem was run to an outcome, good or bad.

    Example: arena agent run my_agent.py --suite product.jsonl --catalog documents.jsonl.gz
    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    if trace and str(json) == "-":
        raise ArenaError(
            "--trace and --json - would both write to standard output",
            code="arena.two_outputs",
            fault=Fault.CALLER,
            remedy="give --json a file",
        )
    shipped = (ctx.obj or {}).get("shipped_agents", {})
    (file,) = read_agents([agent], shipped)
    wanted = [trace] if trace and not problem else list(problem or ())
    problems = choose(load_suite(suite).problems, wanted, limit)
    options = WorldOptions(
        catalog,
        model_url,
        model,
        sandbox,
        title,
        title_model,
        judge=True if judge_model else judge,
        judge_models=tuple(judge_model or ()),
    )
    try:
        records = asyncio.run(_run_all(options, file, problems, show_log=log))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    _print_trace(records, trace)
    write_json([_result(record) for record in records], json)
    _check_closed(records)


def choose(problems: tuple[Problem, ...], ids: list[str], limit: int | None) -> tuple[Problem, ...]:
    """The problems asked for. Raises ArenaError for an id that the suite lacks."""
    known = {problem.problem_id: problem for problem in problems}
    if missing := [problem_id for problem_id in ids if problem_id not in known]:
        raise ArenaError(f"the suite has no problem {missing[0]}", code="arena.no_such_problem")
    chosen = tuple(known[problem_id] for problem_id in ids) if ids else problems
    return chosen[:limit]


class _Nowhere:
    """A sink for a local test, which keeps what it needs itself."""

    async def put(self, record: EncodedRecord) -> None:
        """Keep nothing."""


async def _run_all(
    options: WorldOptions,
    agent: AgentFile,
    problems: tuple[Problem, ...],
    *,
    show_log: bool,
) -> list[RunRecord]:
    settings = load_settings()
    policy = RetryPolicy(settings.attempts, settings.retry_seconds)
    async with open_world(options, lambda line: console.print(line, markup=False)) as opened:
        check_against(problems, opened.world.catalog)
        records = []
        for problem in problems:
            record = await _run_one(opened.world, agent, problem, policy)
            records.append(record)
            console.print(line_of(record), soft_wrap=True)
            if show_log or record.failure is not None:
                _print_log(record)
    successes = sum(_success(record) for record in records)
    console.print(f"{successes} of {len(records)} problems solved")
    return records


async def _run_one(
    world: World, agent: AgentFile, problem: Problem, policy: RetryPolicy
) -> RunRecord:
    return await run_until_closed(world, agent, problem, _Nowhere(), policy=policy, phase="local")


def line_of(record: RunRecord) -> str:
    """A run in one line: whether it succeeded, why not, how long it took, its axis."""
    mark = "[green]✓[/]" if _success(record) else "[red]✗[/]" if record.closed else "[yellow]?[/]"
    reason = ""
    if record.failure is not None:
        whose = "" if record.closed else f" ({record.failure.fault.value}'s fault, not counted)"
        # An exception's last line names it; the log below has the whole of it.
        last = (record.failure.message.strip().splitlines() or [""])[-1]
        reason = f"{record.failure.code}{whose}: {last}"
    elif record.outcome is not None and record.outcome["reason"]:
        reason = str(record.outcome["reason"])
    axis = f"axis {record.axis['axis']}" if record.axis else ""
    parts = (
        plain(record.problem.problem_id, 60),
        record.problem.bucket,
        f"{record.timing.wall_s:.1f} s",
        axis,
        _judged(record),
        plain(reason, 300),
    )
    return "  ".join((mark, *(part for part in parts if part)))


def _judged(record: RunRecord) -> str:
    if record.coefficient is not None:
        return f"coefficient {record.coefficient:.3f}"
    return "unjudged" if record.unjudged is not None else ""


def _print_log(record: RunRecord) -> None:
    """The end of the agent's own log: its words, marked as such."""
    for text in record.log_tail.splitlines()[-_LOG_LINES:]:
        console.print(f"    | {plain(text, 300)}", soft_wrap=True)


def _print_trace(records: list[RunRecord], problem_id: str | None) -> None:
    for record in records:
        if record.problem.problem_id == problem_id:
            write_json(cast("Json", record.encode().value), Path("-"))


def _success(record: RunRecord) -> bool:
    return bool(record.outcome and record.outcome["success"])


def _result(record: RunRecord) -> JsonObject:
    return {
        "problem_id": record.problem.problem_id,
        "bucket": record.problem.bucket,
        "closed": record.closed,
        "success": _success(record) if record.closed else None,
        "outcome": record.outcome,
        "axis": record.axis,
        "verdict": record.verdict,
        "unjudged": record.unjudged,
        "coefficient": record.coefficient,
        "final_score": record.final_score,
        "failure": cast("Json", record.failure.to_json()) if record.failure else None,
        "wall_s": round(record.timing.wall_s, 3),
    }


def _check_closed(records: list[RunRecord]) -> None:
    left = [record for record in records if not record.closed]
    if left:
        raise ArenaError(
            f"{len(left)} of {len(records)} problems could not be run, by no fault of the agent",
            code="run.incomplete",
            remedy="arena doctor checks this machine",
        )
