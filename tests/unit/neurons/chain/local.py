"""A local chain whose clock stands still until a test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import bittensor as bt
from bittensor import calls
from bittensor.keyfiles import Keypair

from neurons.chain import SubtensorChain
from neurons.local_chain.ledger import RAO, Ledger, Rules
from neurons.local_chain.substrate import LocalSubstrate

RULES = Rules(
    netuid=15, block_seconds=1.0, tempo=10, weights_rate_limit=5, max_uids=4, min_stake=100 * RAO,
    immunity=20,
)  # fmt: skip


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def blocks(self, number: int) -> None:
        self.now += number * RULES.block_seconds


@dataclass(frozen=True)
class Wallet:
    """As much of an SDK wallet as signing needs."""

    hotkey: Any
    coldkey: Any

    @property
    def coldkeypub(self) -> Any:
        return self.coldkey

    @property
    def hotkeypub(self) -> Any:
        return self.hotkey


def wallet(name: str) -> Wallet:
    return Wallet(Keypair.create_from_uri(f"//{name}"), Keypair.create_from_uri(f"//{name}/cold"))


@dataclass
class Network:
    ledger: Ledger
    clock: Clock
    client: Any

    def chain(self, name: str | None = None) -> SubtensorChain:
        return SubtensorChain(self.client, RULES.netuid, wallet(name) if name else None)

    async def register(self, name: str, stake: int = 0) -> None:
        keys = wallet(name)
        self.ledger.fund(keys.coldkey.ss58_address, RULES.burn + stake)
        hotkey = keys.hotkey.ss58_address
        call = calls.SubtensorModule.burned_register(netuid=RULES.netuid, hotkey=hotkey)
        (await self.client.submit_call(call, keys)).raise_for_failure()
        if stake:
            staking = calls.SubtensorModule.add_stake(
                hotkey=hotkey, netuid=RULES.netuid, amount_staked=stake
            )
            (await self.client.submit_call(staking, keys)).raise_for_failure()


@asynccontextmanager
async def network(directory: Path, rules: Rules = RULES) -> AsyncIterator[Network]:
    clock = Clock()
    ledger = Ledger(directory / "chain.sqlite", rules, now=clock)
    try:
        client = bt.Client("local", substrate=cast("Any", LocalSubstrate(ledger)))
        yield Network(ledger, clock, client)
    finally:
        ledger.close()
