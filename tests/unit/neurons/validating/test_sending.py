"""A spool reaches the arena whole, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import zstandard

from arena.client.backoff import ONCE
from arena.client.exceptions import UnavailableError
from arena.client.validator import TakenRecord, ValidatorClient
from arena.runs.frames import read_spool
from arena.runs.ledger import Ledger
from arena.runs.signing import KeypairSigner
from arena.runs.spool import FILE_NAME, SpoolSink
from arena.work.types import Evaluation
from neurons.validating.exceptions import ChainForkedError
from neurons.validating.sending import Sender, Sent, is_sent, read_sent, write_sent
from tests.unit.arena.api.world import World
from tests.unit.arena.builders import problem
from tests.unit.arena.builders import record as built
from tests.unit.neurons.validating.wire import Time, Wire, arena, client_of, refused


async def spooled(directory: Path, records: int = 5, **fields: Any) -> list[int]:
    """A spool of sealed records; where each ends."""
    os.makedirs(directory, exist_ok=True)
    ledger = Ledger(directory.parent / "ledger", KeypairSigner("//Alice"))
    sink = SpoolSink(directory, ledger)
    list(sink.load())
    for number in range(1, records + 1):
        made = built(problem(number, "q"), run_id=f"run-{number}", race_id="r", **fields)
        await sink.put(made.encode())
    sink.close()
    return [frame.end for frame in read_spool(directory / FILE_NAME)]


def lines(request: httpx.Request) -> int:
    """How many records a request holds."""
    reader = zstandard.ZstdDecompressor().stream_reader(request.content, read_across_frames=True)
    return reader.read().count(b"\n") // 2


def taken(request: httpx.Request, reason: str | None = None) -> httpx.Response:
    one = {"counted": reason is None, "reason": reason}
    return httpx.Response(200, json={"counted": 0, "records": [one] * lines(request)})


async def test_all_is_sent_once_and_what_was_sent_stands_on_disk(tmp_path: Path) -> None:
    ends = await spooled(tmp_path / "e")
    wire = Wire(records=taken)
    heard: list[TakenRecord] = []
    assert not is_sent(tmp_path / "e")
    await Sender(client_of(wire), tmp_path / "e", told=heard.append).send_all()
    assert [lines(request) for request in wire.asked] == [5]
    assert len(heard) == 5
    assert read_sent(tmp_path / "e") == Sent(ends[-1], ends[-1])
    assert is_sent(tmp_path / "e")
    await Sender(client_of(wire), tmp_path / "e").send_all()
    assert len(wire.asked) == 1


@pytest.mark.parametrize(("name", "value"), [("MAX_RECORDS", 2), ("MAX_PACKED", 1)])
async def test_batches_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    await spooled(tmp_path / "e")
    monkeypatch.setattr(f"neurons.validating.sending.{name}", value)
    wire = Wire(records=taken)
    await Sender(client_of(wire), tmp_path / "e").send_all()
    assert [lines(r) for r in wire.asked] == ([2, 2, 1] if value == 2 else [1] * 5)


async def test_killed_between_answer_and_disk_the_batch_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await spooled(tmp_path / "e")
    monkeypatch.setattr("neurons.validating.sending.MAX_RECORDS", 2)

    def killed(directory: Path, sent: Sent) -> None:
        raise KeyboardInterrupt

    wire = Wire(records=taken)
    sender = Sender(client_of(wire), tmp_path / "e")
    with monkeypatch.context() as dying:
        dying.setattr("neurons.validating.sending.write_sent", killed)
        with pytest.raises(KeyboardInterrupt):
            await sender.send_all()
    first = wire.asked[0].content
    await Sender(client_of(wire), tmp_path / "e").send_all()
    assert wire.asked[1].content == first
    assert [lines(r) for r in wire.asked] == [2, 2, 2, 1]


@pytest.mark.parametrize("broken", [b"", b"{}", b"[1]", b'{"stored": "x"}', b"\xff"])
async def test_a_broken_state_file_means_sending_again(tmp_path: Path, broken: bytes) -> None:
    await spooled(tmp_path / "e")
    (tmp_path / "e" / "sent.json").write_bytes(broken)
    wire = Wire(records=taken)
    await Sender(client_of(wire), tmp_path / "e").send_all()
    assert [lines(r) for r in wire.asked] == [5]


async def test_what_did_not_count_is_sent_again_under_the_next_claim(tmp_path: Path) -> None:
    ends = await spooled(tmp_path / "e")

    def lost_from_the_third(request: httpx.Request) -> httpx.Response:
        records = [
            {"counted": n < 2, "reason": None if n < 2 else "LEASE_EXPIRED"} for n in range(5)
        ]
        return httpx.Response(200, json={"records": records})

    wire = Wire(records=lost_from_the_third)
    await Sender(client_of(wire), tmp_path / "e", claimed="a").send_all()
    assert read_sent(tmp_path / "e") == Sent(ends[-1], ends[1], claimed="a")
    await Sender(client_of(wire), tmp_path / "e").send_all()  # nobody claimed it: nothing to do
    assert len(wire.asked) == 1
    wire.answers["records"] = taken
    await Sender(client_of(wire), tmp_path / "e", claimed="b").send_all()
    assert lines(wire.asked[1]) == 3
    assert read_sent(tmp_path / "e").settled == ends[-1]


@pytest.mark.parametrize("reason", ["VERDICT", "OPEN", "RECORD_CONFLICT"])
async def test_what_never_counts_is_settled(tmp_path: Path, reason: str) -> None:
    ends = await spooled(tmp_path / "e")
    wire = Wire(records=lambda request: taken(request, reason))
    await Sender(client_of(wire), tmp_path / "e", claimed="a").send_all()
    assert read_sent(tmp_path / "e").settled == ends[-1]


@pytest.mark.parametrize("bad", range(5))
@pytest.mark.parametrize("says_which", [True, False])
async def test_a_refused_record_is_passed_over_and_the_others_go(
    tmp_path: Path, bad: int, says_which: bool
) -> None:
    ends = await spooled(tmp_path / "e")
    starts = [0, *ends]
    contents = [f.content.record.content for f in read_spool(tmp_path / "e" / FILE_NAME)]
    stored: list[bytes] = []

    def picky(request: httpx.Request) -> httpx.Response:
        reader = zstandard.ZstdDecompressor().stream_reader(
            request.content, read_across_frames=True
        )
        sent = reader.read().split(b"\n")[:-1:2]
        if contents[bad] in sent:
            which = {"index": sent.index(contents[bad])} if says_which else {}
            return refused(400, "INVALID_RECORD", **which)
        stored.extend(sent)
        return taken(request)

    sender = Sender(client_of(Wire(records=picky)), tmp_path / "e")
    await sender.send_all()
    assert stored == [content for n, content in enumerate(contents) if n != bad]
    assert sender.refusal is not None
    assert "INVALID_RECORD" in sender.refusal.message
    assert read_sent(tmp_path / "e").refused == (starts[bad],)
    assert is_sent(tmp_path / "e")


async def test_a_forked_chain_is_told_and_nothing_is_passed_over(tmp_path: Path) -> None:
    await spooled(tmp_path / "e")
    wire = Wire(records=refused(409, "SEAL_CHAIN_FORK", index=0))
    with pytest.raises(ChainForkedError, match="one validator a hotkey"):
        await Sender(client_of(wire), tmp_path / "e").send_all()
    assert read_sent(tmp_path / "e") == Sent()


@pytest.mark.parametrize("code", ["NOT_REGISTERED", "TIMESTAMP_SKEW", "BANNED"])
async def test_a_refused_validator_keeps_its_records_until_it_is_let_in(
    tmp_path: Path, code: str
) -> None:
    await spooled(tmp_path / "e")
    time, answers = Time(), [refused(403, code)] * 5
    wire = Wire(records=lambda request: answers.pop() if answers else taken(request))
    sender = Sender(client_of(wire, time), tmp_path / "e", sleep=time.sleep)
    await _runs_dry(sender)
    assert is_sent(tmp_path / "e")
    assert read_sent(tmp_path / "e").refused == ()
    assert len(time.slept) == 5


async def test_a_half_written_end_is_not_sent(tmp_path: Path) -> None:
    ends = await spooled(tmp_path / "e")
    spool = tmp_path / "e" / FILE_NAME
    spool.write_bytes(spool.read_bytes()[:-3])
    wire = Wire(records=taken)
    await Sender(client_of(wire), tmp_path / "e").send_all()
    assert lines(wire.asked[0]) == 4
    assert read_sent(tmp_path / "e").stored == ends[3]
    assert is_sent(tmp_path / "e")


async def test_an_answer_about_other_records_is_not_believed(tmp_path: Path) -> None:
    await spooled(tmp_path / "e")
    wire = Wire(records=httpx.Response(200, json={"records": []}))
    with pytest.raises(Exception, match="another number"):
        await Sender(client_of(wire), tmp_path / "e").send_all()
    assert read_sent(tmp_path / "e") == Sent()


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    sent = Sent(7, 5, (1, 3), "run")
    write_sent(tmp_path, sent)
    assert read_sent(tmp_path) == sent
    assert json.loads((tmp_path / "sent.json").read_bytes())["stored"] == 7


async def _runs_dry(sender: Sender) -> None:
    """Until all that it has is sent."""
    task = asyncio.create_task(sender.run())
    waiting = asyncio.create_task(sender.wait_sent())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.database
async def test_an_arena_that_is_away_for_an_hour_has_every_record_afterwards(
    world: World, tmp_path: Path
) -> None:
    world.settings = world.settings.model_copy(update={"metagraph_max_age": 86_400})
    evaluation = await world.open(problems=4, needed=1)
    time, alice = Time(world.clock()), world.validators[0].signer
    start, directory = time.now, tmp_path / "e"
    down = lambda: timedelta(0) < time.now - start < timedelta(hours=1)  # noqa: E731
    world.clock = time  # type: ignore[assignment]
    async with arena(world, alice, time, down) as client:
        run = await _claimed(client)
        await _sealed(world, directory, evaluation)
        time.now += timedelta(seconds=1)
        sender = Sender(client, directory, claimed=str(run), sleep=time.sleep)
        await _runs_dry(sender)
        assert time.now - start > timedelta(hours=1)
        assert max(time.slept) <= 360
        # The lease is over long since: they are stored, and count when the run is ours again.
        assert await world.rows("records") == 4
        assert await world.rows("counted_records") == 0
        again = await _claimed(client)
        await _runs_dry(Sender(client, directory, claimed=str(again)))
        assert await world.rows("counted_records") == 4
        assert await world.rows("records") == 4


async def _claimed(client: ValidatorClient) -> UUID:
    claim = await client.claim([])
    assert claim is not None
    return claim.run_id


async def _sealed(world: World, directory: Path, evaluation: Evaluation) -> None:
    os.makedirs(directory)
    ledger = Ledger(directory.parent / "ledger", world.validators[0].signer, now=world.clock)
    sink = SpoolSink(directory, ledger)
    list(sink.load())
    for number in range(1, len(evaluation.problems) + 1):
        await sink.put(world.record(evaluation, number).encode())
    sink.close()


async def test_an_outage_ends_the_tries_where_they_are_bounded(tmp_path: Path) -> None:
    await spooled(tmp_path / "e")
    wire = Wire(records=httpx.Response(503))
    with pytest.raises(UnavailableError):
        await Sender(client_of(wire), tmp_path / "e", backoff=ONCE).send_all()
    assert read_sent(tmp_path / "e") == Sent()


async def test_two_that_send_one_spool_at_once_do_each_other_no_harm(tmp_path: Path) -> None:
    """What an earlier run left is still being sent when its next one begins."""
    ends = await spooled(tmp_path / "e")
    wire = Wire(records=taken)
    client = client_of(wire)
    await asyncio.gather(
        *(Sender(client, tmp_path / "e", claimed=run).send_all() for run in ("a", "b", "c"))
    )
    assert read_sent(tmp_path / "e").stored == ends[-1]
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == [FILE_NAME, "sent.json"]
