"""Weights over the local chain: the SDK's own code, two validators, and everything that fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from arena.exceptions import ChainUnavailableError
from neurons.chain import SubtensorChain
from neurons.local_chain.ledger import RAO
from neurons.validating.chain_watch import ChainWatch
from neurons.validating.weights import Tick, WeightSetter
from scoring.weights import U16_MAX
from tests.unit.neurons.chain.local import RULES, Network, network, wallet
from tests.unit.neurons.validating.wire import Time, Wire, client_of, refused


def hotkey(name: str) -> str:
    return str(wallet(name).hotkey.ss58_address)


def salt(*finishers: tuple[str, float], epoch: int = 3, **more: Any) -> httpx.Response:
    """The arena's answer: finishers by name with their scores, best first."""
    standings = {
        "top_hotkey": hotkey(finishers[0][0]) if finishers else None,
        "t_burn": 0.75,
        "finishers": [
            {
                "miner_hotkey": hotkey(name),
                "agent_version_id": f"00000000-0000-0000-0000-00000000000{number}",
                "race_score": score,
            }
            for number, (name, score) in enumerate(finishers)
        ],
        "top_version": "00000000-0000-0000-0000-000000000000",
        "race_id": "race-1",
    }
    return httpx.Response(
        200, json={"epoch_index": epoch, "eligible": True, "epoch_standings": standings} | more
    )


@asynccontextmanager
async def subnet(tmp_path: Path) -> AsyncIterator[Network]:
    async with network(tmp_path) as net:
        await net.register("Owner")
        await net.register("Validator", stake=500 * RAO)
        await net.register("Other", stake=400 * RAO)
        await net.register("Miner")
        yield net


def setter(
    net: Network, name: str, wire: Wire, chain: SubtensorChain | None = None
) -> WeightSetter:
    @asynccontextmanager
    async def opened() -> AsyncIterator[SubtensorChain]:
        yield chain or net.chain(name)

    return WeightSetter(client_of(wire), ChainWatch(opened, Time()))


FOUR = (("Miner", 0.9), ("Other", 0.5), ("Validator", 0.4), ("Owner", 0.3))


async def test_two_validators_set_byte_equal_weights(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(*FOUR)})
    async with subnet(tmp_path) as net:
        for name in ("Validator", "Other"):
            assert await setter(net, name, wire).tick() is Tick.SET
            net.clock.blocks(3)
        first, second = net.ledger.weights().values()
    assert first == second
    assert dict(first) == {0: U16_MAX, 2: 1, 3: 21845}


async def test_the_champion_stands_before_a_better_score(tmp_path: Path) -> None:
    scores = (("Miner", 0.4), ("Other", 0.9), ("Validator", 0.3), ("Owner", 0.2))
    wire = Wire(**{"weight-salt": salt(*scores)})
    async with subnet(tmp_path) as net:
        assert await setter(net, "Validator", wire).tick() is Tick.SET
        assert dict(net.ledger.weights()[1]) == {0: U16_MAX, 2: 1, 3: 21845}


async def test_an_epoch_is_set_once_and_the_next_one_again(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(*FOUR)})
    async with subnet(tmp_path) as net:
        weights = setter(net, "Validator", wire)
        ticks = [await weights.tick(), await weights.tick()]
        wire.answers["weight-salt"] = salt(*FOUR, epoch=4)
        ticks.append(await weights.tick())  # too soon for the chain
        net.clock.blocks(RULES.weights_rate_limit)
        ticks.append(await weights.tick())
    assert ticks == [Tick.SET, Tick.UNCHANGED, Tick.RATE_LIMITED, Tick.SET]


async def test_a_winner_that_left_is_not_replaced(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(("Gone", 0.9), ("Miner", 0.8))})
    async with subnet(tmp_path) as net:
        assert await setter(net, "Validator", wire).tick() is Tick.SET
        assert net.ledger.weights() == {1: [(0, U16_MAX)]}


async def test_who_is_not_eligible_burns(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(*FOUR, eligible=False)})
    async with subnet(tmp_path) as net:
        assert await setter(net, "Validator", wire).tick() is Tick.SET
        assert net.ledger.weights() == {1: [(0, U16_MAX)]}


async def test_without_a_completed_race_nothing_is_set(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(epoch_standings=None)})
    async with subnet(tmp_path) as net:
        assert await setter(net, "Validator", wire).tick() is Tick.NO_RACE
        assert net.ledger.weights() == {}


async def test_a_validator_without_a_permit_is_told_so(tmp_path: Path) -> None:
    wire = Wire(**{"weight-salt": salt(*FOUR)})
    async with subnet(tmp_path) as net:
        assert await setter(net, "Miner", wire).tick() is Tick.REFUSED
        assert await setter(net, "Stranger", wire).tick() is Tick.REFUSED


@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectError("x"),
        httpx.Response(503),
        refused(403, "NOT_REGISTERED"),
        httpx.Response(200),
    ],
)
async def test_an_arena_that_does_not_answer_costs_nothing(tmp_path: Path, answer: Any) -> None:
    async with subnet(tmp_path) as net:
        weights = setter(net, "Validator", wire := Wire(**{"weight-salt": answer}))
        assert await weights.tick() is Tick.ARENA_AWAY
        wire.answers["weight-salt"] = salt(*FOUR)
        assert await weights.tick() is Tick.SET


@pytest.mark.parametrize("burn", [-1.0, 2.0])
async def test_standings_that_make_no_vector_are_left_alone(tmp_path: Path, burn: float) -> None:
    answer = salt(*FOUR).json()
    answer["epoch_standings"]["t_burn"] = burn
    async with subnet(tmp_path) as net:
        wire = Wire(**{"weight-salt": httpx.Response(200, json=answer)})
        assert await setter(net, "Validator", wire).tick() is Tick.ARENA_AWAY
        assert net.ledger.weights() == {}


async def test_a_burn_share_too_small_for_the_tail_is_told(tmp_path: Path) -> None:
    answer = salt(*FOUR).json()
    answer["epoch_standings"]["t_burn"] = 0.0
    async with subnet(tmp_path) as net:
        wire = Wire(**{"weight-salt": httpx.Response(200, json=answer)})
        weights = setter(net, "Validator", wire)
        assert await weights.tick() is Tick.BAD_STANDINGS
        assert net.ledger.weights() == {}


class Down(SubtensorChain):
    """A chain that is away."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def block(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "error", [ChainUnavailableError("no"), OSError("no"), RuntimeError("socket closed")]
)
async def test_a_chain_that_is_away_is_asked_again_over_a_new_connection(
    tmp_path: Path, error: Exception
) -> None:
    wire = Wire(**{"weight-salt": salt(*FOUR)})
    opened: list[str] = []
    async with subnet(tmp_path) as net:
        chains: list[SubtensorChain] = [net.chain("Validator"), Down(error)]

        @asynccontextmanager
        async def connect() -> AsyncIterator[SubtensorChain]:
            opened.append("open")
            yield chains.pop()
            opened.append("closed")

        weights = WeightSetter(client_of(wire), ChainWatch(connect, Time()))
        assert await weights.tick() is Tick.CHAIN_AWAY
        assert await weights.tick() is Tick.SET
    assert opened == ["open", "closed", "open"]
