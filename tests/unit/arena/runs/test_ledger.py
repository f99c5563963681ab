"""One hotkey, one chain: no fork and no gap, wherever processes and machines die."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.exceptions import SealError
from arena.runs import ledger as ledger_module
from arena.runs.frames import read_spool
from arena.runs.ledger import HEAD_FILE, LOCK_FILE, Head, Ledger, seal_after
from arena.runs.record import EncodedRecord
from arena.runs.seal import BlockRef, Sealed, SealedRecord, signing_message
from arena.runs.signing import KeypairSigner, verify_signature
from arena.runs.spool import FILE_NAME, SpoolSink
from tests.unit.arena.runs.faulty_disk import DeadError, FaultyDisk

SIGNER = KeypairSigner("//Alice")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _record(number: int, size: int = 0) -> EncodedRecord:
    return EncodedRecord(b'{"kind":"run","n":%d,"schema":1,"text":"%s"}' % (number, b"x" * size))


class Process:
    """A process that seals into a spool of its own."""

    def __init__(self, directory: Path, name: str, **more: object) -> None:
        (directory / name).mkdir(exist_ok=True)
        self.path = directory / name / FILE_NAME
        ledger = Ledger(directory / "ledger", SIGNER, **more)  # type: ignore[arg-type]
        self.spool = SpoolSink(directory / name, ledger)
        self.loaded = [found for _, found in self.spool.load()]

    def seal(self, record: EncodedRecord) -> Sealed:
        """Seal and write; what is returned is confirmed."""
        entry = self.spool._append(record)
        (frame,) = read_spool(self.path, entry.offset)
        return frame.content.sealed.sealed

    def killed(self) -> None:
        """What the kernel does for it."""
        with suppress(OSError):
            os.close(self.spool._fd)


def _assert_one_chain(sealed: list[Sealed]) -> None:
    by_number = {one.seal.sequence: one for one in sealed}
    assert {one.hash for one in sealed} == {one.hash for one in by_number.values()}, "a fork"
    assert sorted(by_number) == list(range(1, len(by_number) + 1)), "a gap"
    for number, one in by_number.items():
        assert one.seal.previous == (by_number[number - 1].hash if number > 1 else None)
        assert number == 1 or one.seal.time >= by_number[number - 1].seal.time
        assert verify_signature(SIGNER.address, signing_message(one.content), one.signature)


def _whole(path: Path) -> Iterator[SealedRecord]:
    for frame in read_spool(path):
        yield frame.content.sealed


def _found(directory: Path) -> Iterator[SealedRecord]:
    for path in sorted(directory.glob(f"*/{FILE_NAME}")):
        yield from _whole(path)


APPEND = st.tuples(
    st.just("append"),
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(0, 14)),
    st.floats(0, 1),
    st.booleans(),
)
CLOSE = st.tuples(st.just("close"), st.sampled_from("abc"))
DELETE = st.tuples(st.just("delete"), st.sampled_from("abc"))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=st.lists(st.one_of(APPEND, APPEND, APPEND, CLOSE, DELETE), max_size=14))
def test_wherever_processes_and_machines_die_the_chain_neither_forks_nor_has_gaps(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[object, ...]]
) -> None:
    """Up to three processes seal by turns. Each may be killed at any write, sync or rename,
    the machine may lose power there, and directories of races that are over are deleted."""
    directory = tmp_path_factory.mktemp("chain")
    confirmed: dict[bytes, Sealed] = {}
    alive: dict[str, Process] = {}
    with pytest.MonkeyPatch.context() as patch:
        disk = FaultyDisk(patch)
        for number, action in enumerate(actions):
            match action:
                case ("close", str(name)) if name in alive:
                    alive.pop(name).spool.close()
                case ("delete", str(name)) if name not in alive:
                    path = directory / name / FILE_NAME
                    if path.exists():
                        # Only what the head has moved past may go, and a killed process
                        # may have left more of it than it could confirm.
                        _ = Ledger(directory / "ledger", SIGNER).head
                        for one in _whole(path):
                            confirmed[one.record.content] = one.sealed
                        path.unlink()
                case ("append", str(name), step, float(cut), bool(power)):
                    assert step is None or isinstance(step, int)
                    disk.die_at(step, cut)
                    try:
                        if name not in alive:
                            alive[name] = Process(directory, name)
                        record = _record(number, 50 * number)
                        confirmed[record.content] = alive[name].seal(record)
                    except DeadError:
                        if name in alive:
                            alive.pop(name).killed()
                        if power:
                            for other in list(alive):
                                alive.pop(other).killed()
                            disk.lose_power(cut)
                            for path in directory.glob(f"*/{FILE_NAME}"):
                                disk.cut_unsynced(path, cut)
                    disk.die_at(None)
        for name in "abc":  # every race is gone on with
            if name not in alive:
                alive[name] = Process(directory, name)
        last = alive["a"].seal(_record(10_000))
        for process in alive.values():
            process.spool.close()
    found = [one.sealed for one in _found(directory)]
    _assert_one_chain([*confirmed.values(), *found])
    assert Ledger(directory / "ledger", SIGNER).head == Head.of(last)


def test_a_chain_never_goes_back_in_time_or_blocks(tmp_path: Path) -> None:
    times = iter([NOON, NOON - timedelta(hours=1), NOON + timedelta(seconds=1)])
    blocks = iter([BlockRef(7, "0x" + "07" * 32), BlockRef(5, "0x" + "05" * 32), None])
    process = Process(tmp_path, "a", now=lambda: next(times), block=lambda: next(blocks))
    seals = [process.seal(_record(n)).seal for n in range(3)]
    assert [s.time for s in seals] == [NOON, NOON, NOON + timedelta(seconds=1)]
    assert [s.block.number if s.block else None for s in seals] == [7, 7, 7]


def test_a_seal_says_what_was_sealed(tmp_path: Path) -> None:
    record = _record(1)
    seal = Process(tmp_path, "a").seal(record).seal
    assert (seal.record, seal.size, seal.kind.value) == (record.hash, len(record.content), "run")
    assert (seal.validator, seal.sequence, seal.previous) == (SIGNER.address, 1, None)


def test_two_races_of_one_hotkey_take_turns(tmp_path: Path) -> None:
    processes = [Process(tmp_path, name) for name in "ab"]

    def work(process: Process) -> None:
        for number in range(20):
            process.seal(_record(number))

    threads = [threading.Thread(target=work, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [one.sealed for one in _found(tmp_path)]
    assert len(found) == 40
    _assert_one_chain(found)


def _seal_until_killed(
    directory: Path, name: str, ready: multiprocessing.synchronize.Event
) -> None:
    process = Process(directory, name)
    process.seal(_record(0))
    ready.set()
    for number in range(1, 1_000_000):
        process.seal(_record(number, number % 3000))


def test_processes_killed_in_the_middle_leave_one_chain(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        ready = [context.Event() for _ in "ab"]
        running = [
            context.Process(target=_seal_until_killed, args=(tmp_path, name, event))
            for name, event in zip("ab", ready, strict=True)
        ]
        for process in running:
            process.start()
        for event in ready:
            assert event.wait(60)
        for process in running:
            process.kill()
            process.join()
    for name in "ab":
        Process(tmp_path, name).spool.close()
    found = [one.sealed for one in _found(tmp_path)]
    assert len(found) >= 4
    _assert_one_chain(found)
    assert Ledger(tmp_path / "ledger", SIGNER).head.sequence == len(found)


def test_a_process_that_keeps_its_turn_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "TURN_S", 0.05)
    process = Process(tmp_path, "a")
    other = Ledger(tmp_path / "ledger", SIGNER)
    with (
        process.spool._ledger.turn(process.path),  # type: ignore[union-attr]
        pytest.raises(SealError, match="another process has sealed with 5Grw") as caught,
    ):
        _ = other.head
    assert LOCK_FILE in (caught.value.remedy or "")


def test_a_lost_ledger_is_found_again_in_the_spool(tmp_path: Path) -> None:
    first = Process(tmp_path, "a")
    last = [first.seal(_record(n)) for n in range(3)][-1]
    first.spool.close()
    for file in (tmp_path / "ledger" / SIGNER.address).iterdir():
        file.unlink()
    again = Process(tmp_path, "a")
    assert again.seal(_record(3)).seal.previous == last.hash


def test_seals_of_another_hotkey_in_the_spool_are_not_this_chain(tmp_path: Path) -> None:
    process = Process(tmp_path, "a")
    process.seal(_record(0))
    process.spool.close()
    bob = Ledger(tmp_path / "ledger", KeypairSigner("//Bob"))
    spool = SpoolSink(tmp_path / "a", bob)
    assert len(list(spool.load())) == 1
    assert bob.head == Head()
    spool.close()


def test_a_spool_with_a_fork_is_refused(tmp_path: Path) -> None:
    process = Process(tmp_path, "a")
    process.seal(_record(0))
    fork = seal_after(Head(), _record(1), SIGNER, now=NOON, block=None).sealed
    with pytest.raises(SealError, match="forks at number 1"):
        Ledger(tmp_path / "ledger", SIGNER).enter(tmp_path / "b", 0, fork)


def test_a_forged_seal_moves_no_head(tmp_path: Path) -> None:
    sealed = seal_after(Head(), _record(1), SIGNER, now=NOON, block=None).sealed
    with pytest.raises(SealError, match="not signed by"):
        Ledger(tmp_path, SIGNER).enter(tmp_path / "b", 0, Sealed(sealed.content, bytes(64)))
    assert Ledger(tmp_path, SIGNER).head == Head()


def test_a_broken_head_is_an_error_and_no_new_chain(tmp_path: Path) -> None:
    process = Process(tmp_path, "a")
    process.seal(_record(0))
    (tmp_path / "ledger" / SIGNER.address / HEAD_FILE).write_bytes(b"{")
    with pytest.raises(SealError, match="cannot be read"):
        process.seal(_record(1))


def test_a_chain_goes_on_from_a_seal_stored_elsewhere_only_when_it_is_new(tmp_path: Path) -> None:
    stored = seal_after(
        Head(4, "ab" * 32, "2026-01-01T00:00:00+00:00"), _record(1), SIGNER, now=NOON, block=None
    ).sealed
    ledger = Ledger(tmp_path / "ledger", SIGNER)
    ledger.adopt(stored)
    assert ledger.head == Head.of(stored)
    with pytest.raises(SealError, match="a chain of its own"):
        ledger.adopt(stored)
    bob = Ledger(tmp_path / "ledger", KeypairSigner("//Bob"))
    with pytest.raises(SealError):
        bob.adopt(stored)


def test_a_spool_that_was_closed_is_not_looked_at_again(tmp_path: Path) -> None:
    process = Process(tmp_path, "a")
    process.seal(_record(0))
    process.spool.close()
    head = (tmp_path / "ledger" / SIGNER.address / HEAD_FILE).read_text()
    assert FILE_NAME not in head
