"""An arena to validate for: its API behind a real server over a real database, a local chain,
a tiny catalogue with a model server, and validators as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid5

from bittensor.wallet import Wallet

from arena.api.inputs import open_evaluation
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.problems.suite import load_suite
from arena.work.types import Evaluation, EvaluationKind
from neurons.local_chain.cli import enter
from neurons.local_chain.ledger import RAO, Ledger, Rules
from scoring.types import Problem
from tests.integration.racing import AGENTS, ModelServer, write_world
from tests.unit.arena.api.world import NAMESPACE, Validator, World

RULES = Rules(netuid=15, block_seconds=0.2, tempo=1_000_000, weights_rate_limit=0)
STAKE = 5_000


class Place(World):
    """A `World` whose evaluations can really be run, with the files that validators need."""

    def __init__(self, database: Database, directory: Path, model: ModelServer) -> None:
        super().__init__(database, directory, ApiSettings(data_dir=directory / "api"))
        self.model = model
        write_world(directory, products=4)
        suite = load_suite(directory / "suite.jsonl").problems
        self.problems = [
            replace(one, problem_id=str(uuid5(NAMESPACE, one.query)), pool="bank:open")
            for one in suite
        ]
        self.chain_file = directory / "chain.sqlite"
        with self.ledger() as ledger:
            for one in self.validators:
                enter(ledger, one.hotkey, STAKE * RAO)
            enter(ledger, self.miner.hotkey, 0)
        for one in (*self.validators, self.stranger):
            self._wallet(one)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        ledger = Ledger(self.chain_file, RULES)
        try:
            yield ledger
        finally:
            ledger.close()

    async def wanted(
        self,
        agent: str = "asker",
        *,
        problems: int | None = None,
        needed: int = 1,
        number: int = 1,
        kind: EvaluationKind = EvaluationKind.QUALIFYING,
        changed: Callable[[Problem], Problem] = lambda problem: problem,
    ) -> Evaluation:
        """An evaluation of one of the agents of `racing`."""
        return await open_evaluation(
            self.queue,
            self.inputs,
            uuid5(NAMESPACE, f"version {number}"),
            kind,
            "race-1" if kind is EvaluationKind.RACE else None,
            name=f"{agent}\x1b[31m",
            source=AGENTS[agent].encode(),
            problems=[changed(problem) for problem in self.problems[:problems]],
            suite=7,
            needed=needed,
            at=self.clock(),
        )

    def environment(self, who: Validator, data: str = "data", **more: str) -> dict[str, str]:
        """What a validator's process is set to."""
        return {
            "ARENA_DATA_DIR": str(self.directory / data),
            "ARENA_MODEL_URL": self.model.url,
            "ARENA_JUDGE_MODELS": "oracle",
            "ARENA_JUDGE_TRIES": "1",
            "ARENA_JUDGE_BACKOFF_S": "0.01",
            "ARENA_VALIDATOR_SANDBOX": "bubblewrap",
            "ARENA_VALIDATOR_WORKERS": "2",
            "ARENA_VALIDATOR_POLL_SECONDS": "0.3",
            "ARENA_VALIDATOR_HEARTBEAT_SECONDS": "0.5",
            "ARENA_VALIDATOR_RETRY_FIRST_SECONDS": "0.2",
            "ARENA_VALIDATOR_RETRY_LONGEST_SECONDS": "1",
            "ARENA_VALIDATOR_METRICS_PORT": "0",
            "ARENA_VALIDATOR_DISK_FLOOR_GIB": "0",
            "ARENA_VALIDATOR_WEIGHTS_SECONDS": "1",
            "ARENA_VALIDATOR_LOG_JSON": "true",
            "BT_WALLET": self.wallet_of(who),
            "BT_WALLET_PATH": str(self.directory / "wallets"),
            "BT_NETWORK": f"local-chain:{self.chain_file}",
            **more,
        }

    def wallet_of(self, who: Validator) -> str:
        return who.hotkey[-8:]

    def _wallet(self, who: Validator) -> None:
        wallet = Wallet(self.wallet_of(who), "default", str(self.directory / "wallets"))
        Path(wallet.hotkey_file.path).parent.mkdir(parents=True)
        wallet._set_hotkey(who.pair, False, False, False, None)


@dataclass
class Line:
    """A line of a validator's log."""

    value: dict[str, Any]

    @property
    def event(self) -> str:
        return str(self.value.get("event"))


class ValidatorProcess:
    """`python -m neurons.validator`, with what it logs."""

    def __init__(self, url: str, directory: Path, env: dict[str, str], *more: str) -> None:
        base = {k: v for k, v in os.environ.items() if not k.startswith(("ARENA_DATA", "BT_"))}
        catalog = directory / "catalog.jsonl"
        arguments = ["--arena.url", url, "--catalog", str(catalog), "--netuid", "15", *more]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "neurons.validator", *arguments],
            cwd=Path(__file__).parents[2],
            env=base | env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[Line] = []
        self.other = ""
        self._watchdog = threading.Timer(180, self._process.kill)
        self._watchdog.start()

    def until(self, event: str, times: int = 1) -> Line:
        """Read its log until an event came so many times. Fails when it ends before."""
        for line in self._read():
            if line.event == event:
                times -= 1
                if times == 0:
                    return line
        raise AssertionError(f"it ended without {event!r}:\n{self.said}")

    def kill(self) -> None:
        """-9, and wait for it."""
        if self._process.poll() is None:
            self._process.kill()
        self.end()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        if self._process.stderr is not None and not self._process.stderr.closed:
            for _ in self._read():
                pass
        code = self._process.wait()
        self._watchdog.cancel()
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    @property
    def said(self) -> str:
        """All it logged."""
        return "\n".join(json.dumps(line.value) for line in self.lines) + self.other

    def _read(self) -> Iterator[Line]:
        assert self._process.stderr is not None
        for text in self._process.stderr:
            try:
                value = json.loads(text)
            except ValueError:
                self.other += text
                continue
            self.lines.append(Line(value))
            yield self.lines[-1]
