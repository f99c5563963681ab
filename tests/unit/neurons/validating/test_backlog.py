"""What earlier runs left is sent, and removed when its time is over, never before."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest

from arena.runs.spool import FILE_NAME
from neurons.validating.backlog import Backlog
from neurons.validating.exceptions import ChainForkedError
from neurons.validating.metrics import Metrics
from neurons.validating.sending import is_sent
from tests.unit.neurons.validating.test_sending import spooled, taken
from tests.unit.neurons.validating.wire import Wire, client_of, refused


class World:
    def __init__(self, root: Path, wire: Wire) -> None:
        self.root = root
        self.wire = wire
        self.now = 0.0
        self.in_hand: list[UUID] = []
        self.backlog = Backlog(
            client_of(wire), root, lambda: self.in_hand, Metrics(), keep_s=60.0,
            now=lambda: self.now,
        )  # fmt: skip

    async def left(self, records: int = 2) -> Path:
        directory = self.root / str(uuid4())
        await spooled(directory, records)
        return directory


async def test_what_was_left_is_sent_and_kept_for_its_time(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(records=taken))
    one = await world.left()
    (tmp_path / "spending.json").write_bytes(b"{}")
    assert await world.backlog.tick() == 0
    assert is_sent(one)
    world.now = (one / "sent.json").stat().st_mtime + 59
    await world.backlog.tick()
    assert one.exists()
    world.now += 2
    await world.backlog.tick()
    assert not one.exists()
    assert (tmp_path / "spending.json").exists()


async def test_what_is_in_hand_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(records=taken))
    one = await world.left()
    world.in_hand, world.now = [UUID(one.name)], 1e12
    await world.backlog.tick()
    assert world.wire.asked == []
    assert one.exists()


async def test_unsent_records_are_never_removed(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(records=httpx.ConnectError("x")))
    one, two = await world.left(), await world.left()
    world.now = 1e12
    assert await world.backlog.tick() == 2
    assert one.exists()
    assert two.exists()
    assert len(world.wire.asked) == 2  # once each: it comes back by itself


async def test_a_damaged_spool_is_told_once_and_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(records=taken))
    one = await world.left()
    (one / FILE_NAME).write_bytes(b"no frame at all")
    world.now = 1e12
    for _ in range(3):
        assert await world.backlog.tick() == 0
    assert one.exists()


async def test_a_fork_ends_the_validator(tmp_path: Path) -> None:
    world = World(tmp_path, Wire(records=refused(409, "SEAL_CHAIN_FORK")))
    await world.left()
    with pytest.raises(ChainForkedError):
        await world.backlog.tick()
