"""`arena corpus`: from records to a corpus, proofs of it, and its statistics."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from corpus_export.gates import MAX_TOKENS, MIN_COEFFICIENT
from corpus_export.ranking import RankingSettings
from corpus_export.settings import ExportOptions
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import JsonObject

app = typer.Typer(
    help="Export, verify and describe corpora of trajectories.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)

_SHOWN = 50
"""Findings told on the terminal; --json has all."""

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="An export.")]


class _Progress:
    """The stages of an export on a terminal."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: int | None = None

    def stage(self, name: str, total: int | None = None) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)  # type: ignore[arg-type]
        self._task = self._bars.add_task(name, total=total)

    def advance(self, count: int) -> None:
        assert self._task is not None
        self._bars.advance(self._task, count)  # type: ignore[arg-type]


@app.command()
def export(
    out: Annotated[Path, typer.Option(help="Directory to write; it is there when it is whole.")],
    catalog: Annotated[
        list[Path], typer.Option(help="The catalogue that was raced on; may be repeated.")
    ],
    day: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Runs that finished on this day (UTC)."),
    ] = None,
    race: Annotated[
        list[Path] | None, typer.Option(help="A race's directory instead of the database.")
    ] = None,
    records: Annotated[
        list[Path] | None, typer.Option(help="A records export instead of the database.")
    ] = None,
    suite: Annotated[
        list[Path] | None, typer.Option(help="Problems that race or database do not hold.")
    ] = None,
    partition: Annotated[
        Path | None,
        typer.Option(help="The partition to go on with, with --race or --records."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="The trainer's tokenizer.json; without one, tokens are estimated."),
    ] = None,
    min_coefficient: Annotated[
        float, typer.Option(min=0.3, max=1.0, help="Least reasoning coefficient that passes.")
    ] = MIN_COEFFICIENT,
    keep: Annotated[
        int, typer.Option(min=1, max=2, help="Trajectories kept of a problem and axis.")
    ] = 2,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="The trainer's context; what is longer is refused.")
    ] = MAX_TOKENS,
    seed: Annotated[str, typer.Option(help="Evaluation is drawn with it, once.")] = "0",
    public: Annotated[
        bool, typer.Option("--public", help="Only what is released, for everybody.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one for each core.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Export the records of a day as a corpus: Parquet and JSON Lines, with a manifest.

    The same command again finds it made; after an interruption it goes on. Without --public
    the export also holds what is not released, and says so.

    Example: arena corpus export --day 2026-11-20 --catalog world --out corpus/2026-11-20
    """
    from corpus_export.opening import Inputs, open_job
    from corpus_export.pipeline import export as run_export

    options = ExportOptions(
        out=out.absolute(),
        day=day.date() if day else None,
        min_coefficient=min_coefficient,
        max_tokens=max_tokens,
        ranking=RankingSettings(keep=keep),
        public=public,
        **({} if workers is None else {"workers": workers}),
    )
    inputs = Inputs(
        catalogs=tuple(catalog),
        races=tuple(race or ()),
        records=tuple(records or ()),
        suites=tuple(suite or ()),
        partition=partition,
        tokenizer=tokenizer,
        seed=seed,
    )
    with _progress() as bars:
        opened = open_job(inputs, options)
        with opened as job:
            result = run_export(job, _Progress(bars), lambda text: console.print(plain(text)))
    _show_result(result.manifest, result.made, out)
    write_json({"out": str(out), "made": result.made, "manifest": result.manifest}, json)


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@app.command()
def verify(
    directory: Directory,
    tokenizer: Annotated[
        Path | None, typer.Option(help="The tokenizer.json that counted: tokens are counted again.")
    ] = None,
    catalog: Annotated[
        list[Path] | None, typer.Option(help="Resolve recommendations again; may be repeated.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Prove from its files alone that an export holds what it says.

    Hashes, counts, columns, both formats, the partition, every row's gates and the card.
    Exit code 0 means that nothing was found.

    Example: arena corpus verify corpus/2026-11-20
    """
    from corpus_export.checking import verify as check
    from corpus_export.exceptions import CorpusInvalidError
    from corpus_export.tokens import open_tokens
    from sandbox.catalog import open_catalog

    catalogs = {c.content_hash: c for c in map(open_catalog, catalog or ())}
    counter = open_tokens(tokenizer) if tokenizer else None
    findings = []
    for finding in check(directory, counter=counter, catalogs=catalogs):
        findings.append(finding)
        if len(findings) <= _SHOWN:
            said = f"{finding.code.value}  {finding.where}: {finding.message}"
            console.print(plain(said), soft_wrap=True)
    write_json({"directory": str(directory), "findings": [f.to_json() for f in findings]}, json)
    if findings:
        more = f", {len(findings) - _SHOWN} of them not shown" if len(findings) > _SHOWN else ""
        raise CorpusInvalidError(
            f"{directory} does not hold what it says: {len(findings)} findings{more}"
        )
    console.print(f"{plain(str(directory))} holds what it says", soft_wrap=True)


@app.command()
def rewrite(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="Directory to write; it is there when it is whole.")],
    agents: Annotated[
        list[Path],
        typer.Option(help="A folder of released agents' files: of a race, or of an export."),
    ],
    model: Annotated[
        str | None, typer.Option(help="Who writes; without one, the rule-based stand-in.")
    ] = None,
    model_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible server, beside the operator's table.")
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="The trainer's tokenizer.json; without one, tokens are estimated."),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="The trainer's context; what is longer is refused.")
    ] = MAX_TOKENS,
    json: JsonFile = None,
) -> None:
    """Let a model write the reasoning between the calls of axis B rows, into a corpus of its own.

    Calls, arguments, observations and recommendation stay as they are, to the byte; thoughts
    that name what was not shown, or compare nothing, are refused. Every row is marked.

    Example: arena corpus rewrite corpus --agents races/today/agents --out corpus-rewritten
    """
    from corpus_export.rewriting.job import RewriteJob, rewrite_export
    from corpus_export.rewriting.opening import open_rewriter, sources_in
    from corpus_export.tokens import open_tokens

    async def run() -> JsonObject:
        async with open_rewriter(model, model_url) as (rewriter, standin):
            job = RewriteJob(
                directory,
                out.absolute(),
                rewriter,
                standin,
                sources_in(agents),
                open_tokens(tokenizer),
                max_tokens,
            )
            with _progress() as bars:
                task = bars.add_task("Rewriting", total=None)
                return await rewrite_export(job, lambda count: bars.advance(task, count))

    made = asyncio.run(run())
    who = f"the rule-based stand-in {made['model']}" if made["standin"] else str(made["model"])
    kept = cast("dict[str, int]", made["outcomes"]).get("rewritten", 0)
    console.print(
        f"{kept} of {made['read']} rows rewritten by {plain(who)}: {plain(str(out))}",
        soft_wrap=True,
    )
    write_json(made, json)


@app.command()
def stats(directory: Directory, json: JsonFile = None) -> None:
    """Show the funnel from records to rows, and how kept and rejected trajectories differ.

    Example: arena corpus stats corpus/2026-11-20
    """
    from corpus_export.exceptions import CorpusInvalidError
    from corpus_export.manifest import read_manifest
    from corpus_export.stats import UNREADABLE, statistics

    manifest = read_manifest(directory)
    try:
        found = statistics(directory, manifest)
    except UNREADABLE as error:
        raise CorpusInvalidError(
            f"{directory} cannot be read: {error!s:.200}",
            remedy=f"arena corpus verify {directory}",
        ) from error
    console.print(_funnel_table(cast("JsonObject", found["funnel"])))
    console.print(_comparison_table(found))
    write_json(found, json)


def _comparison_table(found: JsonObject) -> Table:
    """Kept against rejected, a line a measure."""
    from corpus_export.stats import MEASURES

    table = Table("", box=None, pad_edge=False)
    people = [cast("JsonObject", found[name]) for name in ("kept", "rejected")]
    for name in ("kept", "rejected"):
        table.add_column(name, justify="right")
    table.add_row("trajectories", *(str(p["trajectories"]) for p in people))
    for bucket in sorted({b for p in people for b in cast("JsonObject", p["buckets"])}):
        counts = [cast("JsonObject", p["buckets"]).get(bucket, 0) for p in people]
        table.add_row(f"  {plain(bucket)}", *map(str, counts))
    table.add_row("distinct sequences of tools", *(str(p["distinct_shapes"]) for p in people))
    table.add_row("verified before recommending", *(str(p["verified"]) for p in people))
    for measure in MEASURES:
        cells = []
        for population in people:
            of = cast("dict[str, JsonObject]", population["measures"])[measure.name]
            known = of["p50"] is not None
            cells.append(" / ".join(f"{of[q]:g}" for q in ("p10", "p50", "p90")) if known else "–")
        table.add_row(f"{measure.title.lower()} (p10 / p50 / p90)", *cells)
    return table


def _show_result(manifest: JsonObject, made: bool, out: Path) -> None:
    console.print(_funnel_table(cast("JsonObject", manifest["funnel"])))
    rows = cast("dict[str, dict[str, int]]", manifest["rows"])
    total = sum(n for counts in rows.values() for n in counts.values())
    parts = ", ".join(
        f"{split} {name} {n}" for split, counts in rows.items() for name, n in counts.items()
    )
    state = "written" if made else "there already, with the same inputs"
    console.print(f"{total} rows ({parts}) {state}: {plain(str(out))}", soft_wrap=True)


def _funnel_table(funnel: JsonObject) -> Table:
    table = Table("stage", box=None, pad_edge=False)
    for name in ("in", "refused", "out"):
        table.add_column(name, justify="right")
    table.add_column("reasons")
    for stage in cast("list[JsonObject]", funnel["stages"]):
        refused = cast("dict[str, int]", stage["refused"])
        why = ", ".join(f"{n} {r.partition('.')[2].replace('_', ' ')}" for r, n in refused.items())
        table.add_row(
            str(stage["stage"]),
            str(stage["in"]),
            str(sum(refused.values())),
            str(stage["out"]),
            why,
        )
    return table
