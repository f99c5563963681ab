"""`arena demo`: honest and dishonest agents race on a generated world, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.problems.suite import write_suite
from arena.problems.synthesise import split_evenly, synthesise
from arena.races.cli import race_and_show
from arena.races.running import RaceOptions
from arena.runs.opening import SandboxKind, WorldOptions
from arena.settings import load_settings
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from sandbox.isolation import SandboxLimits
from sandbox.terminal import JsonFile, console

app = typer.Typer(rich_markup_mode=None, add_completion=False)

PRODUCTS = 3000
SEED = 15
AGENTS = Path(__file__).parent / "agents"

CONTENDERS: dict[str, tuple[Path, str]] = {
    "react": (AGENTS / "react.py", "the model drives: thinks, searches, compares, recommends"),
    "pipeline": (AGENTS / "pipeline.py", "code drives, the model only classifies and narrates"),
    "narrator": (
        AGENTS / "dishonest" / "narrator.py",
        "decides as react does, and its thinking is made by code",
    ),
    "first_hit": (AGENTS / "dishonest" / "first_hit.py", "takes the first search hit"),
    "hedger": (AGENTS / "dishonest" / "hedger.py", "recommends again and again"),
    "ventriloquist": (AGENTS / "dishonest" / "ventriloquist.py", "makes the model say its calls"),
    "spy": (AGENTS / "dishonest" / "spy.py", "looks for the answer outside the catalogue"),
    "glutton": (AGENTS / "dishonest" / "glutton.py", "takes memory and processes until stopped"),
}
"""Name → (file, what it does), in the order of the introduction."""

LIMITS = SandboxLimits(wall_s=60, memory_bytes=512 << 20, pids=64)
"""Tighter than a real race's, so that the glutton is stopped soon."""

LESSONS = """
What to see in it
  The score multiplies each success by a coefficient for the reasoning, which a
  judge reads from what the models wrote (here rules judge: the stand-in). The
  narrator decides as react does and succeeds as often; its fine sentences are
  written by code and count for nothing, and it loses.
  ASR counts strict successes: one recommendation, every constraint met, then
  terminate. axis A is the share of runs in which the model itself made the
  calls: only those are trained on. The ventriloquist's calls do stand in
  completions, but it dictated them. The spy found nothing: a sandbox holds no
  reward, and the gateway is all it reaches. The glutton failed by its own
  fault, and nobody beside it noticed.

Go on (my_agent.py is a file of yours: docs/miners.md)
  arena race run my_agent.py react \\
    --suite {suite} --catalog {world}
  arena agent run my_agent.py \\
    --suite {suite} --catalog {world}
"""


def make_world(directory: Path, problems: int) -> tuple[Path, Path]:
    """Write the generated catalogue and its suite; the same arguments, the same bytes."""
    world, suite = directory / "world.jsonl.gz", directory / "suite.jsonl"
    write_world(PRODUCTS, SEED, world)
    write_suite(synthesise(open_catalog(world), split_evenly(problems), seed=SEED), suite)
    return world, suite


@app.command()
def demo(
    problems: Annotated[int, typer.Option(min=3, max=3000, help="Over the three buckets.")] = 36,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    json: JsonFile = None,
) -> None:
    """Race honest and dishonest agents on a generated world: no network, no keys, no downloads.

    A product catalogue is generated, problems with checked solutions are made from it, and
    a rule-based stand-in answers for the models.

    Example: arena demo --problems 36
    """
    settings = load_settings()
    console.print(f"Making a world of {PRODUCTS:,} products and {problems} problems …")
    world, suite = make_world(settings.data_dir / "demo", problems)
    for name, (_, what) in CONTENDERS.items():
        console.print(f"  [bold]{name:14}[/] {what}")
    options = RaceOptions(
        agents=[str(file) for file, _ in CONTENDERS.values()],
        suites=[suite],
        world=WorldOptions(world, sandbox=sandbox, sandbox_limits=LIMITS),
    )
    race_and_show(options, settings, json)
    console.print(LESSONS.format(world=world, suite=suite), soft_wrap=True)
