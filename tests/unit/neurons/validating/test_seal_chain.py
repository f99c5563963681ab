"""A validator that lost its ledger goes on behind what the arena has; a fork stays one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from arena.client.validator import ValidatorClient
from arena.runs.frames import read_spool
from arena.runs.ledger import Head, Ledger
from arena.runs.signing import KeypairSigner
from arena.runs.spool import FILE_NAME, SpoolSink
from arena.work.types import Evaluation
from neurons.validating.exceptions import ChainForkedError
from neurons.validating.seal_chain import SealChain
from neurons.validating.sending import Sender
from tests.unit.arena.api.world import World, frames
from tests.unit.neurons.validating.wire import Time, Wire, arena, client_of

pytestmark = pytest.mark.database


class Machine:
    """A validator's data directory, and the run that it holds."""

    def __init__(self, root: Path, world: World, client: ValidatorClient, on: Evaluation) -> None:
        self.root = root / "validator"
        self.root.mkdir(parents=True)
        self.world, self.client, self.evaluation = world, client, on
        self.ledger = Ledger(root / "ledger", world.validators[0].signer)
        self.chain = SealChain(client, self.ledger, self.root)

    async def sealed(self, *numbers: int, into: str = "e") -> Path:
        """Records of these problems, sealed into a spool."""
        directory = self.root / into
        directory.mkdir(exist_ok=True)
        spool = SpoolSink(directory, self.ledger)
        list(spool.load())
        for number in numbers:
            made = self.world.record(self.evaluation, number, f"alice-{self.root.parent.name}")
            await spool.put(made.encode())
        spool.close()
        return directory

    async def sent(self, *numbers: int, into: str = "e") -> None:
        await Sender(self.client, await self.sealed(*numbers, into=into)).send_all()


def _warnings(logs: Sequence[EventDict]) -> list[EventDict]:
    """The API in this process logs its requests."""
    return [line for line in logs if line["log_level"] == "warning"]


@pytest.fixture
async def held(world: World) -> AsyncIterator[tuple[ValidatorClient, Evaluation]]:
    """A client of a real app whose hotkey holds a run of six problems."""
    evaluation, alice = await world.open(problems=6, needed=1), world.validators[0]
    async with arena(world, alice.signer, Time(world.clock())) as client:
        lease = timedelta(minutes=5)
        claimed = await world.queue.claim(alice.hotkey, capacity=1, now=world.clock(), lease=lease)
        assert claimed is not None
        yield client, evaluation


async def test_a_lost_ledger_goes_on_behind_the_arenas_head(
    world: World, tmp_path: Path, held: tuple[ValidatorClient, Evaluation]
) -> None:
    before = Machine(tmp_path / "before", world, *held)
    await before.chain.tick()
    assert before.chain.gate() is None
    await before.sent(1, 2)
    await before.sealed(3, into="never-sent")

    after = Machine(tmp_path / "after", world, *held)
    assert after.chain.gate() is not None
    with capture_logs() as logs:
        await after.chain.tick()
        await after.chain.tick()
    assert after.chain.gate() is None
    (line,) = _warnings(logs)
    assert line["event"].endswith("never sent is lost")
    assert (line["here"], line["arena"], line["goes_on_after"]) == (0, 2, 2)
    await after.sent(3, 4)
    assert await world.rows("seals") == 4
    # Without the comparison it would have been the fork that the old disk is now.
    with pytest.raises(ChainForkedError):
        await Sender(before.client, before.root / "never-sent").send_all()
    assert await world.rows("seals") == 4


async def test_an_old_ledger_goes_on_and_what_lies_unsent_in_a_spool_is_kept(
    world: World, tmp_path: Path, held: tuple[ValidatorClient, Evaluation]
) -> None:
    machine = Machine(tmp_path / "one", world, *held)
    await machine.sent(1)
    head = machine.ledger.directory / "head.json"
    old = head.read_bytes()
    await machine.sent(2)
    left = await machine.sealed(3, into="left")
    head.write_bytes(old)  # put back from a backup, from before the second record

    again = SealChain(machine.client, Ledger(tmp_path / "one/ledger", machine.ledger.signer),
                      machine.root)  # fmt: skip
    await again.tick()
    assert machine.ledger.head.sequence == 3
    await Sender(machine.client, left).send_all()
    await machine.sent(4, into="next")
    assert await world.rows("seals") == 4


async def test_spools_of_a_lost_ledger_are_enough_when_the_arena_has_nothing(
    world: World, tmp_path: Path, held: tuple[ValidatorClient, Evaluation]
) -> None:
    machine = Machine(tmp_path / "one", world, *held)
    left = await machine.sealed(1, 2)
    (machine.ledger.directory / "head.json").unlink()
    await machine.chain.tick()
    last = list(read_spool(left / FILE_NAME))[-1].content.sealed.sealed
    assert machine.ledger.head == Head.of(last)


async def test_another_seal_with_the_same_number_stays_a_fork(
    world: World, tmp_path: Path, held: tuple[ValidatorClient, Evaluation]
) -> None:
    one = Machine(tmp_path / "one", world, *held)
    await one.sent(1, 2)
    equal = Machine(tmp_path / "equal", world, *held)
    await equal.sealed(3, 4)
    behind = Machine(tmp_path / "behind", world, *held)
    await behind.sealed(5)
    for other in (equal, behind):
        head = other.ledger.head
        with pytest.raises(ChainForkedError, match=f"forks at number {head.sequence}"):
            await other.chain.tick()
        assert other.ledger.head == head
        assert other.chain.gate() is not None


async def test_a_chain_that_is_ahead_or_even_is_left_alone(
    world: World, tmp_path: Path, held: tuple[ValidatorClient, Evaluation]
) -> None:
    machine = Machine(tmp_path / "one", world, *held)
    await machine.sent(1)
    for more in (2, 3):
        head = machine.ledger.head
        again = SealChain(machine.client, machine.ledger, machine.root)
        with capture_logs() as logs:
            await again.tick()
        assert (machine.ledger.head, _warnings(logs), again.gate()) == (head, [], None)
        await machine.sealed(more, into="unsent")


async def test_nobody_hears_of_anothers_chain(world: World) -> None:
    evaluation = await world.open()
    alice, bob = world.validators
    lease = timedelta(minutes=5)
    await world.queue.claim(alice.hotkey, capacity=1, now=world.clock(), lease=lease)
    async with world.client() as client:
        sealed = alice.seal(world.record(evaluation, 1).encode())
        sent = await client.post(
            "/v1/validator/records", content=frames([sealed]), headers=alice.headers()
        )
        assert sent.status_code == 200
        path = "/v1/validator/chain-head?sequence=1"
        own = (await client.get(path, headers=alice.headers())).json()
        assert own["sequence"] == 1
        assert own["hash"] == own["asked"] == sealed.sealed.hash
        assert own["sealed"].encode() == sealed.sealed.to_line()
        none = {"sequence": 0, "hash": None, "sealed": None, "asked": None}
        assert (await client.get(path, headers=bob.headers())).json() == none
        refused = await client.get(path, headers=world.miner.headers())
        assert refused.json()["error_code"] == "NOT_REGISTERED_AS_VALIDATOR"
        for number in ("0", "-1", "9" * 30, "x"):
            path = f"/v1/validator/chain-head?sequence={number}"
            assert (await client.get(path, headers=alice.headers())).status_code == 422


async def test_a_head_that_is_not_ours_is_not_believed(world: World, tmp_path: Path) -> None:
    evaluation, bob = await world.open(), world.validators[1]
    foreign = bob.seal(world.record(evaluation, 1).encode()).sealed
    line = foreign.to_line().decode()
    forged = line.replace(bob.hotkey, world.validators[0].hotkey)
    for sealed in (line, forged):
        answer = {"sequence": 1, "hash": foreign.hash, "sealed": sealed, "asked": None}
        wire = Wire(**{"chain-head": httpx.Response(200, json=answer)})
        ledger = Ledger(tmp_path / "ledger", KeypairSigner("//Alice"))
        chain = SealChain(client_of(wire), ledger, tmp_path)
        with pytest.raises(ChainForkedError):
            await chain.tick()
        assert ledger.head == Head()


async def test_until_the_arena_answers_nothing_is_claimed(tmp_path: Path) -> None:
    wire = Wire(**{"chain-head": httpx.ConnectError("x")})
    ledger = Ledger(tmp_path / "ledger", KeypairSigner("//Alice"))
    chain = SealChain(client_of(wire), ledger, tmp_path)
    await chain.tick()
    assert chain.gate() is not None
    for broken in ({}, {"sealed": "x", "asked": None}, {"sealed": None, "asked": 7}):
        wire.answers["chain-head"] = httpx.Response(200, json=broken)
        await chain.tick()
        assert chain.gate() is not None
    wire.answers["chain-head"] = httpx.Response(200, json={"sealed": None, "asked": None})
    await asyncio.gather(chain.tick(), chain.tick())
    assert chain.gate() is None
