"""A whole network on this machine: chain, arena, validators, each a process of its own.

What an operator would start by hand is started here, with the same commands; they talk over
loopback HTTP and share nothing but the chain's file. The demonstration and the tests that
kill parts of it use it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx
from bittensor import wallets
from bittensor.wallet import Wallet

from arena.exceptions import ArenaError
from arena.season.rules import SeasonRules
from neurons.chain import LOCAL
from neurons.local_chain.cli import OWNER, enter
from neurons.local_chain.ledger import RAO, Ledger, Rules
from sandbox.terminal import plain

T = TypeVar("T")

NETUID = 15
RULES = Rules(netuid=NETUID, block_seconds=1.0, tempo=20, weights_rate_limit=5)
"""A quick chain: an epoch takes 20 seconds."""
STAKE = 2_000 * RAO
PATIENCE_S = 180.0
"""How long a process may take to answer for the first time, and to end."""
_LOOK_S = 0.2


class NetworkError(ArenaError):
    """A process of the network that ended or did not answer."""

    code = "demo.network"


@dataclass
class Member:
    """A process of the network. Its output goes to `log`."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    ready_s: float = 0.0
    """How long it took until it answered."""

    def check(self) -> None:
        """Raise NetworkError, with the end of its log, when it is over."""
        code = self.process.poll()
        if code is not None:
            raise NetworkError(
                f"{self.name} ended with {code}: {plain(_last_words(self.log), 600)}",
                remedy=f"its log is {self.log}",
            )

    def stop(self) -> None:
        """Ask it to end in good order."""
        if self.process.poll() is None:
            self.process.terminate()

    def end(self) -> None:
        """End it in good order and wait for that; killed when it takes too long."""
        self.stop()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut would. What it started itself goes on."""
        self.process.kill()
        self.process.wait()


@dataclass
class Network:
    """The folder of a network, and what runs of it.

    Directories: `data` (the arena's), `wallets`, `logs`, and one for each validator.
    """

    home: Path
    world: Path
    settings: Mapping[str, str]
    """`ARENA_…` variables for all processes."""
    members: dict[str, Member] = field(default_factory=dict)
    url: str = ""

    @property
    def chain(self) -> str:
        """The chain's name, for --subtensor.network."""
        return f"{LOCAL}{self.home / 'chain.sqlite'}"

    @property
    def data(self) -> Path:
        """The arena's data directory."""
        return self.home / "data"

    @property
    def wallets(self) -> Path:
        """Where the wallets lie."""
        return self.home / "wallets"

    def begin_chain(self) -> None:
        """A chain whose uid 0 is nobody's: what burns goes there."""
        self._on_chain(OWNER, 0)

    def register(self, hotkey: str, *, validates: bool = False) -> None:
        """Put a hotkey on the subnet, with stake when it is to validate."""
        self._on_chain(hotkey, STAKE if validates else 0)

    def join(self, name: str, *, validates: bool = False) -> str:
        """A wallet of this name, registered; with stake when it is to validate. Its hotkey."""
        path = str(self.wallets)
        wallet = Wallet(name, "default", path)
        if not Path(wallet.hotkey_file.path).exists():
            wallet = wallets.create(name, path=path, use_password=False, on_mnemonic=_unsaid)
        hotkey = str(wallet.hotkeypub.ss58_address)
        self.register(hotkey, validates=validates)
        return hotkey

    def start_arena(self, name: str = "arena", *options: str, **settings: str) -> Member:
        """`arena serve`. Its first start finds a port, and every later one takes the same."""
        port = self.url.rpartition(":")[2] or "0"
        command = ["serve", "--port", port, "--log-format", "json", *options]
        environment = {"ARENA_DATA_DIR": str(self.data), **settings}
        began = time.monotonic()
        member = self._start(name, ["-m", "neurons", *command, *self._subnet], environment)
        if "--conductor-only" in options:
            self.wait(lambda: _said(member.log, "driving the calendar"), member, name)
        else:
            told = self.wait(lambda: _said(member.log, "serving"), member, f"{name} to serve")
            self.url = str(told["address"])
            self.wait(self._healthy, member, f"{name} to answer")
        member.ready_s = time.monotonic() - began
        return member

    def start_calendar(self, rules: SeasonRules, **settings: str) -> Member:
        """The calendar's driver by these rules; one that runs makes way for it, as on the day
        of a change."""
        before = self.members.get("calendar")
        if before is not None:
            before.end()
        settings |= {"ARENA_CONDUCTOR_RULES": str(self.write_rules(rules))}
        return self.start_arena("calendar", "--conductor-only", **settings)

    def write_rules(self, rules: SeasonRules) -> Path:
        """The file that `ARENA_CONDUCTOR_RULES` names."""
        file = self.home / "rules.json"
        file.write_text(json.dumps(rules.to_json(), indent=1), encoding="utf-8")
        return file

    def start_validator(self, name: str, **settings: str) -> Member:
        """`python -m neurons.validator` of the wallet of this name."""
        command = ["-m", "neurons.validator", "--arena.url", self.url, "--catalog", str(self.world)]
        command += ["--metrics-port", "-1", "--log-json", *self._subnet, *self.wallet(name)]
        return self._start(name, command, {"ARENA_DATA_DIR": str(self.home / name), **settings})

    def wallet(self, name: str) -> list[str]:
        """The options that name a wallet."""
        return ["--wallet.name", name, "--wallet.path", str(self.wallets)]

    def wait(
        self, look: Callable[[], T | None], member: Member | None, what: str, seconds: float = 0.0
    ) -> T:
        """What `look` finds, asked until it finds something while every process lives.

        Raises NetworkError when it takes longer than `seconds` (default PATIENCE_S).
        """
        until = time.monotonic() + (seconds or PATIENCE_S)
        while (found := look()) is None:
            for watched in (member,) if member else self.members.values():
                watched.check()
            if time.monotonic() > until:
                raise NetworkError(f"waited in vain for {what}", remedy=f"see {self.home / 'logs'}")
            time.sleep(_LOOK_S)
        return found

    def get(self, path: str) -> object | None:
        """What the arena's public API answers; None while it does not, or refuses."""
        try:
            answer = httpx.get(f"{self.url}{path}", timeout=30.0)
        except httpx.HTTPError:
            return None
        return answer.json() if answer.is_success else None

    def stop(self) -> None:
        """End everything in good order, validators first."""
        for member in reversed(self.members.values()):
            member.end()
        self.members.clear()

    @property
    def _subnet(self) -> list[str]:
        return ["--subtensor.network", self.chain, "--netuid", str(NETUID)]

    def _healthy(self) -> bool | None:
        return True if self.get("/health") is not None else None

    def _start(self, name: str, arguments: list[str], settings: Mapping[str, str]) -> Member:
        log = self.home / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ARENA_", "BT_"))}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                cwd=self.home,
                env={**kept, **self.settings, **settings},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # An interrupt at the terminal is for the one who started the network.
                start_new_session=True,
            )
        member = self.members[name] = Member(name, process, log)
        return member

    def _on_chain(self, hotkey: str, stake: int) -> None:
        ledger = Ledger(self.home / "chain.sqlite", RULES)
        try:
            enter(ledger, hotkey, stake)
        finally:
            ledger.close()


def _said(log: Path, event: str) -> dict[str, object] | None:
    """The first line of a log, as JSON, that tells of the event."""
    for line in log.read_text("utf-8", "replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("event") == event:
            return found
    return None


def _last_words(log: Path) -> str:
    return " ".join(log.read_text("utf-8", "replace").split())[-600:]


def _unsaid(kind: str, mnemonic: str) -> None:
    """A key of a demonstration goes with it: its words are not shown."""
