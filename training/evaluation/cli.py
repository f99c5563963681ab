"""`arena eval`: how good a model is, against the paper's table and against another run."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import structlog
import typer
from rich.console import RenderableType
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from arena.problems.suite import Suite, check_against, load_suite
from arena.problems.titles import DEFAULT_MODEL, TitleMode
from arena.races.inputs import draw
from arena.runs.agent import read_agents
from arena.runs.attempts import RetryPolicy
from arena.runs.opening import SandboxKind, WorldOptions, open_world
from arena.settings import load_settings
from sandbox.isolation import workers_that_fit
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, Problem
from training.evaluation.directory import read_evaluation
from training.evaluation.held_out import held_out
from training.evaluation.picture import picture
from training.evaluation.report import Comparison, Report, against, report
from training.evaluation.results import SampleResult
from training.evaluation.running import Job, evaluate, file_results
from training.evaluation.sampled import SampleSettings
from training.evaluation.table import report_markdown, table
from training.evaluation.target import open_target
from training.exceptions import EvaluationError
from training.files import write_file, write_json_file

app = typer.Typer(
    help="Evaluate a model.", rich_markup_mode=None, no_args_is_help=True, add_completion=False
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a person asked for."""

    target: str
    problems: tuple[Problem, ...]
    world: WorldOptions
    agent: str
    settings: SampleSettings
    workers: int | None
    label: str | None
    out: Path


@app.command("eval")
def evaluation(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Its directory; the same again goes on with it.")],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL|DIR|standin]",
            help="An OpenAI-compatible server, or a checkpoint; without one, only report.",
        ),
    ] = None,
    suite: Annotated[
        list[Path] | None, typer.Option(help="A suite of problems; may be repeated.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="A product file, or a built index.")] = None,
    model: Annotated[str | None, typer.Option(help="Which of the server's models.")] = None,
    recipe: Annotated[
        str | None, typer.Option(help="How to sample: a shipped recipe's name, or a file.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="What drives the model: a shipped agent, or a file."
            " Default: distilled for a checkpoint, else react."
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, max=256, help="Samples of each problem; default 1.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0.0, max=2.0, help="Instead of the agent's own; 0.9 with samples."),
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(min=0.01, max=1.0, help="Instead of the agent's own.")
    ] = None,
    turn_tokens: Annotated[
        int | None, typer.Option(min=16, help="The most that one answer may have.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples; default 0.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Only problems that this corpus holds out.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many of each suite.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="What tables call it.")] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--against", help="An earlier evaluation to compare with; may be repeated."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at once.")] = None,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    title: Annotated[TitleMode, typer.Option(help="How titles are compared.")] = TitleMode.NONE,
    title_model: Annotated[
        str, typer.Option(help="For --title embedding: a sentence-transformers name or folder.")
    ] = DEFAULT_MODEL,
    json: JsonFile = None,
) -> None:
    """Evaluate a model through the race's sandbox and strict scorer.

    Writes results.jsonl (a line a sample), records.jsonl.zst (the full runs), report.json,
    report.md and table.svg. Interrupted, it goes on when started again with the same --out.
    Exit code 0 means that every sample of every problem has an outcome.

    Example: arena eval http://127.0.0.1:8000/v1 --suite held_out.jsonl
    --catalog documents.jsonl.gz --samples 8 --out evals/mine --against evals/base
    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    if target is None:
        found = report(read_evaluation(out), file_results(out))
    else:
        if not suite or catalog is None:
            raise EvaluationError("an evaluation needs problems", remedy="give --suite, --catalog")
        chosen = _chosen(recipe, agent, samples, temperature, top_p, turn_tokens, seed, target)
        suites: Sequence[Suite] = [load_suite(path) for path in suite]
        if corpus is not None:
            suites = held_out(suites, corpus)
        asked = _Asked(
            target=target,
            problems=draw(suites, limit),
            world=WorldOptions(catalog, None, model, sandbox, title, title_model, judge=False),
            agent=chosen.agent,
            settings=chosen.settings,
            workers=workers,
            label=label,
            out=out,
        )
        try:
            found = asyncio.run(_evaluate(asked, (ctx.obj or {}).get("shipped_agents", {})))
        except KeyboardInterrupt:
            console.print(f"interrupted; go on with the same command and --out {plain(str(out))}")
            raise typer.Exit(130) from None
    earlier = [report(read_evaluation(path), file_results(path)) for path in beside or ()]
    _finish(found, earlier, out, json)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Who drives the model, and how it samples."""

    agent: str
    settings: SampleSettings


def _chosen(
    recipe: str | None,
    agent: str | None,
    samples: int | None,
    temperature: float | None,
    top_p: float | None,
    turn_tokens: int | None,
    seed: int | None,
    target: str,
) -> _Chosen:
    """What the options say; where they say nothing, the recipe; without one, the defaults."""
    if recipe is not None:
        # Here: recipes need the extra, evaluating a server does not.
        from training.evaluation.recipe import EvalRecipe
        from training.extra import require_extra
        from training.recipe import load_recipe_of

        require_extra()
        said = load_recipe_of(EvalRecipe, recipe)
        agent, samples = agent or said.eval.agent, samples or said.eval.samples
        temperature = said.eval.temperature if temperature is None else temperature
        top_p = said.eval.top_p if top_p is None else top_p
        turn_tokens = said.eval.turn_tokens if turn_tokens is None else turn_tokens
        seed = said.seed if seed is None else seed
    samples = samples or 1
    if samples > 1 and temperature is None:
        temperature = 0.9  # an agent's own is mostly 0, and k times that is one sample
    own = "distilled" if Path(target).is_dir() else "react"
    settings = SampleSettings(samples, temperature, top_p, seed or 0, turn_tokens)
    return _Chosen(agent or own, settings)


async def _evaluate(asked: _Asked, shipped: dict[str, Path]) -> Report:
    (agent,) = read_agents([asked.agent], shipped)
    arena = load_settings()

    def tell(line: str) -> None:
        console.print(plain(line, 500), soft_wrap=True)

    async with open_target(asked.target, asked.world.model, tell) as target:
        options = WorldOptions(
            catalog=asked.world.catalog,
            model_url=target.url,
            model=target.model,
            sandbox=asked.world.sandbox,
            titles=asked.world.titles,
            title_model=asked.world.title_model,
            judge=False,
        )
        async with open_world(options, lambda _: None) as opened:
            check_against(asked.problems, opened.world.catalog)
            job = Job(
                out=asked.out,
                label=asked.label or target.label,
                agent=agent,
                problems=asked.problems,
                settings=asked.settings,
                policy=RetryPolicy(arena.attempts, arena.retry_seconds),
                workers=asked.workers or workers_that_fit(options.sandbox_limits),
                checkpoint=target.checkpoint,
            )
            total = len(asked.problems) * asked.settings.samples
            tell(
                f"{job.label}: {len(asked.problems)} problems, {asked.settings.samples} samples"
                f" each, driven by {agent.ref.label}; results in {asked.out}"
            )
            with _progress(total) as done:
                return await evaluate(job, opened, target.routes, tell, done)


def _finish(found: Report, earlier: Sequence[Report], out: Path, json: Path | None) -> None:
    """Write and show the report; raise for what was asked and is not done."""
    comparisons = [against(one, found) for one in earlier] if found.complete else []
    rows = table([*earlier, found])
    text = report_markdown([*earlier, found], comparisons)
    value = _value(found, comparisons) | {"table": [row.to_json() for row in rows]}
    write_file(out / "report.md", text.encode("utf-8", "replace"))
    write_file(out / "table.svg", picture(rows))
    write_json_file(out / "report.json", value)
    console.print(_readable(text))
    console.print(f"report: {plain(str(out / 'report.md'))}", soft_wrap=True)
    write_json(value, json)
    if not found.complete:
        raise EvaluationError(
            f"{found.overall.open} of {found.overall.samples} samples have no outcome, by no fault"
            " of the model; its rates are incomplete",
            code="evaluation.incomplete",
            remedy=f"start it again with --out {out}",
        )


def _value(found: Report, comparisons: Sequence[Comparison]) -> dict[str, Json]:
    return found.to_json() | {"comparisons": [cast("Json", one.to_json()) for one in comparisons]}


def _readable(text: str) -> RenderableType:
    """Labels may come from anywhere: control characters are none of Markdown's business."""
    return Markdown("".join(c if c.isprintable() or c == "\n" else "�" for c in text))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[SampleResult], None]]:
    """A bar on a terminal, about twenty lines elsewhere; open samples are told at once."""
    counts = {"done": 0, "won": 0, "open": 0}

    def count(result: SampleResult) -> str:
        counts["done"] += 1
        counts["won"] += result.success
        counts["open"] += result.outcome is None
        if result.outcome is None and result.failure is not None:
            name, why = plain(result.problem_id, 60), plain(result.failure.message, 200)
            console.print(f"open: {name}: {why}", soft_wrap=True)
        still = f", {counts['open']} open" if counts["open"] else ""
        return f"✓ {counts['won']}{still}"

    if not console.is_terminal:
        every = max(1, total // 20)

        def lines(result: SampleResult) -> None:
            text = count(result)
            if counts["done"] % every == 0:
                console.print(f"{counts['done']}/{total}  {text}")

        yield lines
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[tally]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as bars:
        task = bars.add_task("", total=total, tally="")

        def bar(result: SampleResult) -> None:
            bars.update(task, advance=1, tally=count(result))

        yield bar
