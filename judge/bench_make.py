"""Records the labelled set: `python -m judge.bench_make [--out FILE]`.

Every trace is recorded by the real gateway while a project's own agent runs in a real
sandbox on a generated catalogue, with rule-based models behind the wire. The same code
gives the same file: times, which no judge reads, are set to zero.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from judge.bench_set import SHIPPED, Labelled, write_labelled
from judge.exceptions import Fault, JudgeError
from judge.labelled import models as labelled_models
from judge.labelled.recipes import RECIPES, Recipe
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from sandbox.catalog.interface import Catalog
from sandbox.gateway import HttpGateway
from sandbox.isolation import Isolation, SandboxLimits, SandboxSpec, open_isolation
from sandbox.models import ModelClient, discover
from sandbox.standin.process import running_standin
from sandbox.terminal import JsonFile, console, one_line_errors, write_json
from sandbox.trace import Trace
from scoring.types import AgentProblem, Product

PRODUCTS = 1500
SEED = 23
LIMITS = SandboxLimits(wall_s=120, memory_bytes=512 << 20, pids=64)


def wishes(catalog: Catalog) -> Iterator[str]:
    """Queries for products of the catalogue, always the same, without end."""
    rng = Random(SEED)  # noqa: S311 - chooses problems, guards nothing
    ids = list(catalog.ids())
    while True:
        product = catalog.product(rng.choice(ids))
        if product is not None:
            yield _wish(product, rng)


def _wish(product: Product, rng: Random) -> str:
    words = [w for w in product.title.split() if w.isascii() and w.isalnum()][:6]
    low, high = product.price * rng.uniform(0.5, 0.9), product.price * rng.uniform(1.2, 2)
    values = [v for vs in product.attributes.values() for v in vs if v.isascii()]
    text = f"I'm looking for a {' '.join(words).lower()}"
    if values:
        text += f", with {rng.choice(values).lower()}"
    return f"{text}, priced between {low:.0f} and {high:.0f} pesos."


async def record(
    gateway: HttpGateway, isolation: Isolation, recipe: Recipe, number: int, query: str
) -> Labelled:
    """Run one agent on one query. Raises JudgeError when the run failed."""
    name = f"{recipe.name}-{number}"
    async with gateway.session(name) as session:
        spec = SandboxSpec(
            run_id=name,
            agent_source=recipe.source(),
            problem=AgentProblem(name, query, "Product"),
            gateway_socket=session.socket,
            limits=LIMITS,
            env={"SANDBOX_MODEL": recipe.model},
            excused_s=session.excused_s,
        )
        result = await isolation.run(spec)
    if result.error is not None:
        raise JudgeError(
            f"{name}: {result.error.message}: {result.log[-500:]}",
            code="judge.bench_failed",
            fault=Fault.PLATFORM,
        )
    return Labelled(
        name=name,
        gate=recipe.gate,
        rule=recipe.rule,
        agent=recipe.agent,
        model=recipe.model,
        query=query,
        trace=_timeless(session.trace()),
        dialogue=result.dialogue or (),
    )


def _timeless(trace: Trace) -> Trace:
    events = []
    for event in trace.events:
        zero = replace(event, started_ms=0.0, elapsed_ms=0.0)
        events.append(replace(zero, waited_ms=0.0) if zero.kind == "llm" else zero)
    return replace(trace, events=tuple(events))


async def record_all(recipes: Sequence[Recipe], sandbox: str | None) -> list[Labelled]:
    """Record every recipe on its problems."""
    with tempfile.TemporaryDirectory() as directory:
        world = Path(directory) / "world.jsonl.gz"
        await asyncio.to_thread(write_world, PRODUCTS, SEED, world)
        catalog = await asyncio.to_thread(open_catalog, world)
        isolation = await open_isolation(sandbox)
        try:
            async with running_standin(load=[labelled_models.MODULE]) as url:
                client = ModelClient(await discover(url, server="stand-in", standin=True))
                gateway = HttpGateway(catalog, client)
                try:
                    return await _record(recipes, catalog, gateway, isolation)
                finally:
                    await gateway.close()
                    await client.close()
        finally:
            await isolation.close()


async def _record(
    recipes: Sequence[Recipe], catalog: Catalog, gateway: HttpGateway, isolation: Isolation
) -> list[Labelled]:
    queries = wishes(catalog)
    made: list[Labelled] = []
    for recipe in recipes:
        numbers = range(1, recipe.problems + 1)
        made += [await record(gateway, isolation, recipe, n, next(queries)) for n in numbers]
        console.print(f"{recipe.name:16} {recipe.problems} traces, gate {recipe.gate.value}")
    return made


def main(
    out: Annotated[Path, typer.Option(help="File to write.")] = SHIPPED,
    sandbox: Annotated[str | None, typer.Option(help="docker or bubblewrap.")] = None,
    json_file: JsonFile = None,
    debug: Annotated[bool, typer.Option(help="Show tracebacks.")] = False,
) -> None:
    """Record the labelled set with real sandboxes and stand-in models.

    Example: python -m judge.bench_make --out labelled.jsonl.zst
    """
    with one_line_errors(debug=lambda: debug):
        made = asyncio.run(record_all(RECIPES, sandbox))
        size = write_labelled(made, out)
        console.print(f"{len(made)} traces, {size:,} bytes in {out}")
        write_json({"traces": len(made), "bytes": size}, json_file)


if __name__ == "__main__":
    typer.run(main)
