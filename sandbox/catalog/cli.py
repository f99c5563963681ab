"""`arena catalog`: build, generate and search product catalogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sandbox.exceptions import CatalogError
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, Product

app = typer.Typer(
    help="Build, generate and search product catalogues.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

SHOWN_COMPLAINTS = 10
"""Skipped lines that are shown one by one; all of them are counted."""


@app.command()
def build(
    files: Annotated[list[Path], typer.Argument(help=".jsonl or .jsonl.gz files.")],
    out: Annotated[Path, typer.Option(help="The index directory to write.")],
    engine: Annotated[str, typer.Option(help="native, or lucene (needs make lucene).")] = "native",
    skip_bad: Annotated[bool, typer.Option(help="Count bad lines and go on.")] = False,
    json: JsonFile = None,
) -> None:
    """Build an index of catalogue files.

    Example: arena catalog build documents.jsonl.gz --out var/catalog
    """
    from sandbox.catalog.builder import Engine, build_index

    skipped: Counter[str] = Counter()

    def complain(error: CatalogError) -> None:
        skipped[error.code] += 1
        if skipped.total() <= SHOWN_COMPLAINTS:
            console.print(f"[yellow]skipped[/] {plain(error.code)}: {plain(error.message)}")

    if engine not in list(Engine):
        raise CatalogError(f"no engine {engine!r}", remedy="native or lucene")
    size = sum(file.stat().st_size for file in files if file.is_file())
    with _progress("indexing", size) as advance:
        manifest = build_index(
            files,
            out,
            on_bad=complain if skip_bad else None,
            on_read=advance,
            engine=Engine(engine),
        )
    console.print(
        f"{manifest.documents:,} products of {manifest.shops:,} shops, "
        f"{manifest.terms:,} terms → {plain(str(out))}\ncontent {manifest.content_hash}"
    )
    for code, count in sorted(skipped.items()):
        console.print(f"[yellow]skipped[/] {count:,} × {plain(code)}")
    write_json(
        {
            "out": str(out),
            "products": manifest.documents,
            "shops": manifest.shops,
            "terms": manifest.terms,
            "engine": manifest.engine,
            "content_hash": manifest.content_hash,
            "skipped": dict[str, Json](skipped),
        },
        json,
    )


@app.command()
def generate(
    products: Annotated[int, typer.Option(min=1, help="How many products.")],
    out: Annotated[Path, typer.Option(help="A .jsonl or .jsonl.gz file to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    json: JsonFile = None,
) -> None:
    """Generate an offline world of products.

    Example: arena catalog generate --products 20000 --seed 7 --out world.jsonl.gz
    """
    from sandbox.catalog.generate import write_world

    with _progress("generating", products) as advance:
        digest = write_world(products, seed, out, on_product=advance)
    console.print(f"{products:,} products → {plain(str(out))}")
    write_json({"out": str(out), "products": products, "seed": seed, "sha256": digest}, json)


@app.command()
def search(
    index: Annotated[Path, typer.Argument(help="An index directory or a catalogue file.")],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    shop: Annotated[str | None, typer.Option(help="Only this shop id.")] = None,
    price: Annotated[str | None, typer.Option(help='"lo-hi", "lo-" or "-hi".')] = None,
    service: Annotated[
        str | None, typer.Option(help="official,freeShipping,COD,flashsale: all that must be.")
    ] = None,
    sort: Annotated[str | None, typer.Option(help="priceasc, pricedesc or order.")] = None,
    page: Annotated[int, typer.Option(help="1 to 5.")] = 1,
    json: JsonFile = None,
) -> None:
    """Search an index as the agents' find_product does.

    Example: arena catalog search var/catalog "blue cotton shirt" --price 100-300 --service COD
    """
    from sandbox.catalog.opening import open_catalog

    catalog = open_catalog(index)
    services = [s.strip() for s in (service or "").split(",") if s.strip()]
    found = catalog.find(query, page=page, shop_id=shop, price=price, sort=sort, service=services)
    _show(found)
    write_json([_row(product) for product in found], json)


def _show(products: list[Product]) -> None:
    """A table of products. All of their text is untrusted."""
    if not products:
        console.print("nothing found")
        return
    table = Table("id", "shop", "price", "sold", "services", "title")
    for p in products:
        services = plain(" ".join(p.service))
        sold = f"{p.sold_count:,}"
        table.add_row(plain(p.product_id), plain(p.shop_id), f"{p.price:,.2f}", sold, services,
                      plain(p.title, 120))  # fmt: skip
    console.print(table)


def _row(product: Product) -> dict[str, Json]:
    return {
        "product_id": product.product_id,
        "shop_id": product.shop_id,
        "title": product.title,
        "price": product.price,
        "service": list[Json](product.service),
        "sold_count": product.sold_count,
    }


@contextmanager
def _progress(what: str, total: int) -> Iterator[Any]:
    """A bar on a terminal, nothing elsewhere; yields the function that moves it."""
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=total or None)
        yield lambda done: bar.update(task, completed=done)
