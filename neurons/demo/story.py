"""The demonstration's own arena, and the steps of its day.

Problems, season and races go through the same functions as the commands; what is done
with the records afterwards is done by the commands themselves, as anyone would type them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from arena.exceptions import ArenaError, RaceError
from arena.journal import Journal
from arena.problems.bank import Bank
from arena.problems.bank_store import open_journal
from arena.problems.pools import Pool
from arena.races.running import RaceOptions, RaceResult, run_race
from arena.records.chain_option import SN15
from arena.runs.opening import SandboxKind, WorldOptions
from arena.settings import ArenaSettings
from neurons.demo.bank import grow_bank, problems_in, write_problems
from neurons.demo.contenders import Contender
from neurons.demo.day import began_at
from neurons.local_chain.ledger import Ledger, Rules
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from sandbox.isolation import SandboxLimits
from sandbox.terminal import plain

PRODUCTS = 3000
SEED = 15
LIMITS = SandboxLimits(wall_s=60, memory_bytes=512 << 20, pids=64)
"""Tighter than a real race's, so that the glutton is stopped soon."""
CHAIN = "chain.sqlite"
_MARK = ".arena-demo"
"""A file that says that a folder is the demonstration's, to be made anew each time."""


@dataclass
class Story:
    """A folder with a world, a database, a bank and races, and where it is told."""

    settings: ArenaSettings
    people: Console
    sandbox: SandboxKind | None
    world: Path
    journal: Journal
    bank: Bank

    @property
    def home(self) -> Path:
        """The folder."""
        return self.settings.data_dir

    def suite(self, name: str, problem_ids: Sequence[str]) -> Path:
        """Write problems of the bank as a suite."""
        return write_problems(problems_in(self.bank, problem_ids), self.home / f"{name}.jsonl")

    async def race(self, agents: Sequence[Contender], suite: Path, name: str) -> RaceResult:
        """Race in a folder of its own; sealed, judged and stored as any race.

        Raises RaceError when it was given up or left something open.
        """
        options = RaceOptions(
            agents=[str(contender.file) for contender in agents],
            suites=[suite],
            world=WorldOptions(self.world, sandbox=self.sandbox, sandbox_limits=LIMITS),
            out=self.home / "races" / name,
        )
        result = await run_race(options, self.settings, self.people)
        if result.stopped is not None:
            raise result.stopped
        if not result.complete or result.unjudged or result.waiting:
            raise RaceError(
                f"{name}: {result.open} runs have no outcome, {result.unjudged} no verdict,"
                f" {result.waiting} are not in the database",
                code="race.incomplete",
                remedy="`arena doctor` checks the machine; then start the demonstration again",
            )
        return result

    def type(self, *arguments: str, may_refuse: bool = False) -> int:
        """Run an `arena` command in the folder, its line shown first; its exit code.

        Raises ArenaError when it fails; `may_refuse` allows the code 1, which says no.
        """
        shown = shlex.join(str(a).removeprefix(f"{self.home}/") for a in arguments)
        self.people.print(f"\n[bold]$ arena {plain(shown, 400)}[/]", soft_wrap=True)
        command = [sys.executable, "-m", "neurons", *arguments]
        code = subprocess.run(
            command, cwd=self.home, env=_environment(self.home), check=False
        ).returncode
        if code not in ((0, 1) if may_refuse else (0,)):
            raise ArenaError(f"arena {shown} ended with {code}", code="demo.command_failed")
        return code


@asynccontextmanager
async def begin(
    settings: ArenaSettings,
    sandbox: SandboxKind | None,
    people: Console,
    *,
    raced: int,
    opened: int,
) -> AsyncIterator[Story]:
    """A new world, database and bank; the folder of an earlier demonstration goes.

    Its database runs until the context ends, whoever opens it meanwhile.
    """
    home = _fresh(settings.data_dir.absolute() / "demo")
    own = settings.model_copy(
        update={
            "data_dir": home,
            "database_url": None,
            "wallet_name": None,
            "wallet_hotkey": None,
            "wallet_path": None,
        }
    )
    world = home / "world.jsonl.gz"
    write_world(PRODUCTS, SEED, world)
    async with open_journal(own) as journal:
        bank = await grow_bank(
            journal, open_catalog(world), raced=raced, opened=opened, seed=SEED, at=began_at()
        )
        yield Story(own, people, sandbox, world, journal, bank)


def begin_chain(file: Path, hotkey: str) -> None:
    """A local chain on which this hotkey is registered: only such a one may commit."""
    ledger = Ledger(file, Rules(netuid=SN15))
    try:
        ledger.fund(hotkey, ledger.rules.burn)
        with ledger.extrinsic(hotkey, "arena demo") as block:
            ledger.spend(hotkey, ledger.rules.burn)
            ledger.register(hotkey, hotkey, block)
    finally:
        ledger.close()


def open_problems(bank: Bank) -> list[str]:
    """The ids of the open pool, in order."""
    return sorted(holding.problem_id for holding in bank.live(Pool.OPEN))


def _fresh(home: Path) -> Path:
    """An empty folder for this demonstration.

    An earlier one's is made anew, unless its database still runs: then another is used.
    """
    if (home / _MARK).exists() and not (home / "postgres" / "postmaster.pid").exists():
        shutil.rmtree(home)
    if home.exists() and any(home.iterdir()):
        home = home.with_name(f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    home.mkdir(parents=True, exist_ok=True)
    (home / _MARK).touch()
    return home


def _environment(home: Path) -> Mapping[str, str]:
    """The commands work in the demonstration's folder, whatever else is set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ARENA_")}
    return kept | {"ARENA_DATA_DIR": str(home)}
