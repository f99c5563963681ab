"""`arena problems`: make problems, and keep the bank.

Suites are files. The bank is a journal in the arena's database; `bank_store` reads and
writes it, and everything that is decided about it is pure.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from arena.exceptions import BankError, SettingsError
from arena.journal import Event
from arena.problems import bank_show
from arena.problems.bank import Bank
from arena.problems.bank_store import (
    LoadedBank,
    change_bank,
    file_provenance,
    load_bank,
    open_journal,
)
from arena.problems.cluster_cli import cluster_command
from arena.problems.decisions import retire
from arena.problems.growth import (
    DEFAULT_MIX,
    Growth,
    GrowthPlan,
    grow,
    grow_reworded,
    secret_seed,
)
from arena.problems.holdings import NOTHING_CAME, read_pool
from arena.problems.identity import LOCAL_KEY
from arena.problems.intake import Intake, Taken
from arena.problems.options import read_counts, read_mix
from arena.problems.pools import Pool
from arena.problems.rotation import Rotation, rotate
from arena.problems.settings import bank_key, load_bank_settings
from arena.problems.suite import check_against, load_suite, write_suite
from arena.problems.synthesise import split_evenly, synthesise
from arena.settings import load_settings
from sandbox.catalog import Catalog, open_catalog
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Bucket, Json, JsonObject

app = typer.Typer(
    help="Make problems, and keep the bank.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)

app.command("cluster")(cluster_command)

CatalogOption = Annotated[
    Path, typer.Option("--catalog", help="Index directory, or a catalogue's .jsonl or .jsonl.gz.")
]


class BankPool(StrEnum):
    """The pools in which the bank grows."""

    HELD_OUT = "held_out"
    OPEN = "open"

    @property
    def pool(self) -> Pool:
        """The pool itself."""
        return Pool(f"bank:{self.value}")


@app.command("synthesise")
def synthesise_command(
    catalog: CatalogOption,
    out: Annotated[Path | None, typer.Option(help="Suite to write: .jsonl or .jsonl.gz.")] = None,
    to: Annotated[BankPool | None, typer.Option(help="Grow this pool of the bank instead.")] = None,
    count: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="How many problems, over the buckets.")
    ] = 90,
    bucket: Annotated[
        str | None,
        typer.Option(help="How many of each bucket instead: product=30,shop=30,voucher=30."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="The same seed gives the same problems. Default: 0; for the bank a secret one."
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(help="With --to, shares of difficulty: easy=0.4,medium=0.4,hard=0.2."),
    ] = None,
    reuse: Annotated[
        bool, typer.Option(help="With --to, problems may join clusters that stand in this pool.")
    ] = False,
    reword_model: Annotated[
        str | None,
        typer.Option(help="With --to, let this model reword the queries; each is checked."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Make problems of the three buckets from a catalogue, each with a checked solution.

    With --out they are written to a suite; with --to they come to the bank: of products that
    answer no problem there, each a leak cluster of its own.

    Example: arena problems synthesise --catalog world --count 90 --seed 7 --out suite.jsonl

    Example: arena problems synthesise --catalog world --count 30 --to held_out
    """
    counts = split_evenly(count) if bucket is None else read_counts(bucket)
    if (out is None) == (to is None):
        raise SettingsError("give one of --out FILE and --to held_out or open")
    products = _open(catalog)
    if to is not None:
        shares = DEFAULT_MIX if mix is None else read_mix(mix)
        plan = GrowthPlan(counts, to.pool, seed or 0, shares, reuse)
        write_json(asyncio.run(_grow(products, plan, seed, reword_model)), json_file)
        return
    if mix is not None or reuse or reword_model is not None:
        raise SettingsError("--mix, --reuse and --reword-model are for --to")
    assert out is not None
    with _progress("Making problems", sum(counts.values())) as advance:
        problems = synthesise(products, counts, seed=seed or 0, advance=lambda: advance(1))
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
        "seed": seed or 0,
        "catalog_hash": products.content_hash,
    }
    write_json(result, json_file)


async def _grow(
    products: Catalog, plan: GrowthPlan, seed: int | None, model: str | None
) -> JsonObject:
    settings, bank_settings = load_settings(), load_bank_settings()
    key = bank_key(bank_settings, settings.data_dir)
    rewording: JsonObject = {}

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], Growth]:
        bank = loaded.bank
        secret = secret_seed(key, f"growth/{bank.entries}")
        decided = GrowthPlan(
            plan.counts, plan.pool, secret if seed is None else seed, plan.mix, plan.reuse
        )
        with console.status("Looking for leak clusters …"):
            clusters = loaded.clusters
        growth = Growth(bank, clusters, products, decided, key=key, at=_now())
        with _progress("Growing the bank", sum(plan.counts.values())) as advance:
            if model is None:
                grow(growth, advance)
            else:
                # Only here: the SDKs of model providers take seconds to load.
                from arena.problems.rewording import open_reworder

                async with open_reworder(model) as reworder:
                    await grow_reworded(growth, reworder, advance)
                    rewording.update(reworder.tally.to_json())
        return growth.taken.events, growth

    async with open_journal(settings) as journal:
        _, growth = await change_bank(journal, decide)
    bank_show.tell_taken(growth.taken, plan.pool)
    result = bank_show.growth_json(growth) | bank_show.taken_json(growth.taken)
    if model is not None:
        result["rewording"] = {"model": model, "admitted": growth.reworded, **rewording}
        bank_show.people().print(
            f"{growth.reworded} of them in the words of {plain(model)}; refused rewordings:"
            f" {rewording['refused']}, without an answer: {rewording['failed']}; those keep the"
            " generator's words",
            soft_wrap=True,
        )
    return result


@app.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(help="Suites: JSON Lines or a JSON array.")],
    pool: Annotated[
        str, typer.Option(help="suite:v1, suite:v2, suite:v3, bank:open or bank:held_out.")
    ],
    catalog: Annotated[
        Path | None,
        typer.Option(help="Make sure that this catalogue has every rewarded product."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Bring problems from files: public suites, which the bank must not overlap, or one's own.

    A suite stays out of training and of the bank: problems of the bank that share a leak
    cluster with it retire, and the command says which. Problems that stand already, with the
    same content, are no error.

    Example: arena problems import product.jsonl shop.jsonl voucher.jsonl --pool suite:v1
    """
    target = read_pool(pool)
    settings = load_settings()
    key = LOCAL_KEY if target.is_suite else bank_key(load_bank_settings(), settings.data_dir)
    suites = [(file_provenance(path), load_suite(path, key=key)) for path in files]
    if catalog is not None:
        products = _open(catalog)
        for _, suite in suites:
            check_against(suite.problems, products)

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], Taken]:
        with console.status("Looking for leak clusters …"):
            intake = Intake(loaded.bank, loaded.clusters, _now())
        with _progress("Importing", sum(len(s.problems) for _, s in suites)) as advance:
            for provenance, suite in suites:
                for problem in suite.problems:
                    intake.bring(problem, target, provenance)
                    advance(1)
        return intake.taken.events, intake.taken

    async def change() -> Taken:
        async with open_journal(settings) as journal:
            return (await change_bank(journal, decide))[1]

    taken = asyncio.run(change())
    bank_show.tell_taken(taken, target)
    write_json({"pool": target.value, **bank_show.taken_json(taken)}, json_file)
    if not taken.admitted and not taken.already:
        raise BankError("nothing was let in", code=NOTHING_CAME)


@app.command("list")
def list_command(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Suites to count; without any, the bank.")
    ] = None,
    catalog: Annotated[
        Path | None,
        typer.Option(help="Make sure that this catalogue has every rewarded product."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="The problems of this pool of the bank, one by one.")
    ] = None,
    reveal: Annotated[
        bool, typer.Option(help="With --pool, show the texts of held-out problems, too.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Count the problems of suites by bucket, or those of the bank by pool and bucket.

    Example: arena problems list product.jsonl shop.jsonl voucher.jsonl

    Example: arena problems list --pool bank:open
    """
    if files:
        if pool is not None or reveal:
            raise SettingsError("--pool and --reveal are for the bank: give no file")
        _list_files(files, catalog, json_file)
        return
    chosen = None if pool is None else read_pool(pool)
    bank = asyncio.run(_load())
    if chosen is None:
        rows = bank_show.counts(bank)
        if rows:
            bank_show.people().print(bank_show.counts_table(rows))
        else:
            console.print("the bank is empty: arena problems import, or synthesise --to held_out")
        write_json({"bank": [*rows], "entries": bank.entries}, json_file)
        return
    held = bank_show.holdings_in(bank, chosen)
    bank_show.people().print(bank_show.problems_table(held, reveal=reveal))
    listed: list[Json] = [bank_show.problem_row(holding, reveal=reveal) for holding in held]
    write_json({"pool": chosen.value, "problems": listed}, json_file)


async def _load() -> Bank:
    async with open_journal(load_settings()) as journal:
        return (await load_bank(journal)).bank


def _list_files(files: Sequence[Path], catalog: Path | None, json_file: Path | None) -> None:
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


@app.command("retire")
def retire_command(
    problem_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Problems by id.")],
    reason: Annotated[str, typer.Option(help="Why; it stays in the problem's history.")],
    json_file: JsonFile = None,
) -> None:
    """Take problems of the bank out of use, for good. Their traces may then be released.

    Example: arena problems retire 0c1f… --reason "its product is gone from the catalogue"
    """

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], int]:
        events = retire(loaded.bank, problem_ids, reason, _now())
        return events, sum(not loaded.bank.need(i).retired for i in set(problem_ids))

    async def change() -> int:
        async with open_journal(load_settings()) as journal:
            return (await change_bank(journal, decide))[1]

    retired = asyncio.run(change())
    already = len(set(problem_ids)) - retired
    console.print(f"retired: {retired}" + (f"; retired before: {already}" if already else ""))
    write_json({"retired": retired, "retired_before": already, "reason": reason}, json_file)


@app.command("rotate")
def rotate_command(
    seed: Annotated[
        str | None, typer.Option(help="Chooses what opens. Default: a new secret, recorded.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would move.")] = False,
    early: Annotated[bool, typer.Option("--early", help="Also before it is due.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Rotate by leak cluster: held-out ones open, those open longest retire.

    What races have drawn opens first. How much, how often, and what must stay held out is in
    the settings ARENA_BANK_OPENS, _RETIRES, _ROTATE_HOURS, _HELD_OUT_MIN and _OPEN_MIN. With
    too little held out the rotation is refused; grow the bank first.

    Example: arena problems rotate --dry-run
    """
    rule = load_bank_settings().rotation
    chosen = seed if seed is not None else secrets.token_hex(16)

    async def decide(loaded: LoadedBank) -> tuple[Sequence[Event], Rotation]:
        at = _now()
        rotation = rotate(loaded.bank, rule, seed=chosen, at=at, early=early)
        return () if dry_run else rotation.events(at), rotation

    async def change() -> Rotation:
        async with open_journal(load_settings()) as journal:
            return (await change_bank(journal, decide))[1]

    rotation = asyncio.run(change())
    bank_show.people().print(bank_show.rotation_table(rotation))
    console.print("nothing was moved: --dry-run" if dry_run else f"rotated; seed {plain(chosen)}")
    moves: JsonObject = {move.bucket.value: move.to_json() for move in rotation.moves}
    write_json({"seed": chosen, "applied": not dry_run, "buckets": moves}, json_file)


def _now() -> datetime:
    return datetime.now(UTC)


def _open(path: Path) -> Catalog:
    with console.status(f"Opening {plain(str(path))} …"):
        return open_catalog(path)


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; what moves it on."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.advance(task, done)
