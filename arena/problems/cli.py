"""`arena problems`: make and list problems. Reads catalogues and suites, writes suites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from arena.exceptions import SettingsError
from arena.problems.cluster_cli import cluster_command
from arena.problems.suite import check_against, load_suite, write_suite
from arena.problems.synthesise import split_evenly, synthesise
from sandbox.catalog import Catalog, open_catalog
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Bucket, Json

app = typer.Typer(
    help="Make and list problems.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)

app.command("cluster")(cluster_command)

CatalogOption = Annotated[
    Path, typer.Option("--catalog", help="Index directory, or a catalogue's .jsonl or .jsonl.gz.")
]


@app.command("synthesise")
def synthesise_command(
    catalog: CatalogOption,
    out: Annotated[Path, typer.Option(help="Suite to write: .jsonl or .jsonl.gz.")],
    count: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="How many problems, over the buckets.")
    ] = 90,
    bucket: Annotated[
        str | None,
        typer.Option(help="How many of each bucket instead: product=30,shop=30,voucher=30."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same problems.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Make problems of the three buckets from a catalogue, each with a checked solution.

    Example: arena problems synthesise --catalog world --count 90 --seed 7 --out suite.jsonl
    """
    counts = split_evenly(count) if bucket is None else _counts(bucket)
    products = _open(catalog)
    columns = (TextColumn("Making problems"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=sum(counts.values()))
        problems = synthesise(products, counts, seed=seed, advance=lambda: progress.advance(task))
    written = write_suite(problems, out)
    told = ", ".join(f"{n} {name.category}" for name, n in counts.items())
    console.print(
        f"{written} problems ({told}), each with a checked solution: {plain(str(out))}",
        soft_wrap=True,
    )
    result: dict[str, Json] = {
        "file": str(out),
        "problems": written,
        "by_bucket": {name.value: n for name, n in counts.items()},
        "seed": seed,
        "catalog_hash": products.content_hash,
    }
    write_json(result, json_file)


@app.command("list")
def list_command(
    files: Annotated[list[Path], typer.Argument(help="Suites: JSON Lines or a JSON array.")],
    catalog: Annotated[
        Path | None,
        typer.Option(help="Make sure that this catalogue has every rewarded product."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Read suites and count their problems by bucket.

    Example: arena problems list product.jsonl shop.jsonl voucher.jsonl
    """
    suites = [(path, load_suite(path)) for path in files]
    if catalog is not None:
        products = _open(catalog)
        for _, suite in suites:
            check_against(suite.problems, products)
    table = Table("suite", box=None, pad_edge=False)
    for name in (*Bucket, "problems"):
        table.add_column(str(name), justify="right")
    rows: list[Json] = []
    for path, suite in suites:
        counts = suite.counts()
        total = len(suite.problems)
        table.add_row(plain(str(path)), *(str(n) for n in counts.values()), str(total))
        by_bucket: dict[str, Json] = {name.value: n for name, n in counts.items()}
        rows.append({"file": str(path), "problems": total, "by_bucket": by_bucket})
    console.print(table)
    write_json({"suites": rows}, json_file)


def _open(path: Path) -> Catalog:
    with console.status(f"Opening {plain(str(path))} …"):
        return open_catalog(path)


def _counts(text: str) -> dict[Bucket, int]:
    """Read `product=30,shop=30`; a bucket that is not named gets none."""
    counts = dict.fromkeys(Bucket, 0)
    for part in text.split(","):
        name, _, number = part.partition("=")
        name, number = name.strip(), number.strip()
        if name not in set(Bucket) or not number.isdecimal() or len(number) > 7:
            raise SettingsError(
                f"--bucket: {part[:60]!r} is not of the form product=30,shop=30,voucher=30"
            )
        counts[Bucket(name)] = int(number)
    if not any(counts.values()):
        raise SettingsError("--bucket asks for no problem")
    return counts
