"""The demonstration's own arena: a folder, the network in it, and how its day is told.

Nothing here reaches into a running process: agents are submitted as miners submit them, and
what is known of the season is read from its journal, as an operator's commands read it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from arena.exceptions import ArenaError, RaceError
from arena.journal import Journal
from arena.problems.bank import Bank
from arena.problems.bank_store import open_journal
from arena.problems.pools import Pool
from arena.races.running import RaceOptions, RaceResult, run_race
from arena.runs.opening import SandboxKind, WorldOptions
from arena.settings import ArenaSettings
from arena.wallets import open_hotkey
from neurons.demo.bank import grow_bank, problems_in, write_problems
from neurons.demo.contenders import Contender
from neurons.demo.network import Network
from sandbox.catalog import open_catalog
from sandbox.catalog.generate import write_world
from sandbox.isolation import SandboxLimits
from sandbox.terminal import plain

PRODUCTS = 3000
SEED = 15
VALIDATORS = ("validator-1", "validator-2")
LIMITS = SandboxLimits(wall_s=60, memory_bytes=512 << 20, pids=64)
"""Tighter than a real race's, so that the glutton is stopped soon."""
_MARK = ".arena-demo"
"""A file that says that a folder is the demonstration's, to be made anew each time."""


@dataclass
class Story:
    """A network that runs, its journal, and where it is told."""

    settings: ArenaSettings
    people: Console
    sandbox: SandboxKind | None
    network: Network
    journal: Journal
    bank: Bank
    operator: str
    """The hotkey that closes the log and commits its root."""
    validators: Mapping[str, str]
    """Hotkeys by wallet name."""
    versions: dict[str, str] = field(default_factory=dict)
    """Agents by version id, as they were let in."""

    @property
    def home(self) -> Path:
        """The folder."""
        return self.network.home

    def suite(self, name: str, problem_ids: Sequence[str]) -> Path:
        """Write problems of the bank as a suite."""
        return write_problems(problems_in(self.bank, problem_ids), self.home / f"{name}.jsonl")

    async def race_outside(self, agents: Sequence[Contender], suite: Path) -> RaceResult:
        """Race agents on this machine alone, out of competition, in a database of its own.

        Raises RaceError when it was given up or left something open.
        """
        outside = self.settings.model_copy(update={"data_dir": self.home / "outside"})
        options = RaceOptions(
            agents=[str(contender.file) for contender in agents],
            suites=[suite],
            world=WorldOptions(
                self.network.world, sandbox=self.sandbox, sandbox_limits=LIMITS, judge=False
            ),
            out=outside.data_dir / "races" / suite.stem,
        )
        result = await run_race(options, outside, self.people)
        if result.stopped is not None:
            raise result.stopped
        if not result.complete:
            raise RaceError(
                f"{suite.stem}: {result.open} runs have no outcome",
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
        command = [sys.executable, "-P", "-m", "neurons", *arguments]
        environment = _environment(self.network)
        code = subprocess.run(command, cwd=self.home, env=environment, check=False).returncode
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
    variables: Mapping[str, str],
) -> AsyncIterator[Story]:
    """A new world, bank, chain and network, ended with the context; an earlier one's folder goes.

    `variables` are the settings of its processes. Its database runs as long.
    """
    home = _fresh(settings.data_dir.absolute() / "demo")
    world = home / "world.jsonl.gz"
    write_world(PRODUCTS, SEED, world)
    network = Network(home, world, dict(variables))
    network.begin_chain()
    own = settings.model_copy(
        update={
            "data_dir": network.data,
            "database_url": None,
            "wallet_name": None,
            "wallet_hotkey": None,
            "wallet_path": None,
        }
    )
    async with open_journal(own) as journal:
        at = datetime.now(UTC) - timedelta(hours=1)
        bank = await grow_bank(
            journal, open_catalog(world), raced=raced, opened=opened, seed=SEED, at=at
        )
        operator = open_hotkey(own).signer.address
        network.register(operator)
        validators = {name: network.join(name, validates=True) for name in VALIDATORS}
        try:
            yield Story(own, people, sandbox, network, journal, bank, operator, validators)
        finally:
            network.stop()


def open_problems(bank: Bank) -> list[str]:
    """The ids of the open pool, in order."""
    return sorted(holding.problem_id for holding in bank.live(Pool.OPEN))


def _fresh(home: Path) -> Path:
    """An empty folder for this demonstration.

    An earlier one's is made anew, unless its database still runs: then another is used.
    """
    if (home / _MARK).exists() and not (home / "data" / "postgres" / "postmaster.pid").exists():
        shutil.rmtree(home)
    if home.exists() and any(home.iterdir()):
        home = home.with_name(f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    home.mkdir(parents=True, exist_ok=True)
    (home / _MARK).touch()
    return home


def _environment(network: Network) -> dict[str, str]:
    """The commands work in the demonstration's folder, whatever else is set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ARENA_", "BT_"))}
    return {**kept, "ARENA_DATA_DIR": str(network.data)}
